"""``rgr bounds`` as it is called."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from rgr_dist.cli import call
from rgr_dist.study.cell import Cell
from rgr_dist.theory.construct import problem_of
from rgr_dist.theory.one_head import certificate_residual


def listed(capsys: pytest.CaptureFixture[str], *arguments: Any) -> dict[str, Any]:
    assert call(["bounds", *map(str, arguments), "--format", "json"]) == 0
    listing: dict[str, Any] = json.loads(capsys.readouterr().out)
    return listing


def test_bounds_are_rows_of_bits(capsys: pytest.CaptureFixture[str]) -> None:
    rows = listed(capsys, "--m", 64, "--d-model", 16)["rows"]
    assert {tuple(row) for row in rows} == {("graphs", "bits_per_parameter", "D_K")}
    by_kind = {(row["graphs"], row["bits_per_parameter"]): row["D_K"] for row in rows}
    bits = math.log2(math.comb(64 * 63, 64))
    assert by_kind["all", 1.0] == pytest.approx((bits - 1) / 32)
    bits = math.log2(math.factorial(64))
    assert by_kind["permutations", 2.0] == pytest.approx((bits / 2 - 1) / 32)
    rows = listed(capsys, "--m", 64, "--d-model", 16, "--edges", 100)["rows"]
    assert {row["graphs"] for row in rows} == {"all"}


def test_one_head_is_decided_draw_by_draw_with_what_proves_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ("--one-head", "--d-model", 4, "--draws", 3, "--m")
    listing = listed(capsys, *asked, 20)
    assert [row["separable"] for row in listing["rows"]] == [False] * 3
    assert listing["share_separable"] == listing["share_low"] == 0
    assert listing["share_high"] == pytest.approx(1 - 0.025 ** (1 / 3))
    for row in listing["rows"]:
        problem, weights = problem_of(Cell(m=20, d_model=4), row["draw"]), np.zeros((20, 20))
        for i, j, weight in row["certificate"]["pairs"]:
            weights[i, j] = weight
        assert certificate_residual(problem.X, problem.graph, weights) is not None
    listing = listed(capsys, *asked, 5)
    for row in listing["rows"]:
        small = Cell.model_validate({"m": 5, "d_model": 4, "context": {"length": 5}})
        problem = problem_of(small, row["draw"])
        scores = problem.X @ np.array(row["certificate"]["W"]) @ problem.X.T
        true = problem.graph.matrix
        np.testing.assert_array_equal(scores > row["certificate"]["tau"], true)
        signed = np.where(true, 1, -1) * (scores - row["certificate"]["tau"])
        assert signed.min() == pytest.approx(row["margin"])


def test_one_head_takes_regular_graphs_by_their_edges(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--one-head", "--d-model", 4, "--draws", 2, "--m", 12)
    ring = listed(capsys, *asked)["share_separable"]
    assert listed(capsys, *asked, "--edges", 48)["share_separable"] == 0 <= ring


@pytest.mark.parametrize("wrong", ["--m 4 --edges 13", "--m 4 --edges 6 --one-head", "--m 1"])
def test_what_no_graph_has_is_refused_in_one_line(
    wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["bounds", "--d-model", "2", *wrong.split()]) == 2
    assert capsys.readouterr().err.count("\n") == 1
