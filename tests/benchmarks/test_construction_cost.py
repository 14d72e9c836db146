"""The benchmark of what constructions cost: powers that are known, and widths of the proof."""

from __future__ import annotations

import math

import pytest

from construction_cost import measured, powers
from rgr_dist.study.cell import Cell
from rgr_dist.theory.draws import problem_of


def test_powers_that_are_known_are_found() -> None:
    rows = [
        {"m": m, "d_model": d, "seconds": 3e-7 * m**1.1 * d**0.7 * math.log(m)}
        for m in (64, 128, 512)
        for d in (16, 32, 128)
    ]
    found = powers(rows)
    assert found["power_m"] == pytest.approx([1.1] * 3)
    assert found["power_d_model"] == pytest.approx([0.7] * 3)
    rows[4]["seconds"] *= 1.5
    value, low, high = powers(rows)["power_m"]
    assert low < value < high


def test_a_row_has_the_width_of_the_proof() -> None:
    problem = problem_of(Cell.model_validate({"m": 64, "d_model": 16}), 0)
    row = measured("1", problem, repeats=1)
    assert (row["h"], row["d_k"]) == (4, math.ceil(40 * math.log(64)))
    assert row["seconds"] > 0
