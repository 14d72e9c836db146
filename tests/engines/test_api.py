"""Which engines there are, and when checks stop a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from rgr_dist.engines.checks import Checks
from rgr_dist.engines.choose import ENGINES, EngineError, check_engine, make_engine
from rgr_dist.models.f1 import f1_cannot_exceed
from rgr_dist.study.cell import Cell
from rgr_dist.study.models import MODELS
from rgr_dist.study.study_file import parse_study


def stops_at(cell: Cell, scores: Sequence[float | None]) -> int | None:
    """Number of the check that stops the run."""
    checks = Checks(cell)
    return next((n for n, score in enumerate(scores, 1) if checks.after(n, score)), None)


@pytest.mark.parametrize("model", ["max", "softmax"])
@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([1.0, 1.0, 1.0], 3),
        ([1.0, 1.0, None, 1.0, 1.0, 1.0], 6),
        ([0.95, 0.95, 0.95], None),  # at the stopping score is not above it
        ([None, 0.96, 0.96, 0.2, 0.96, 0.96, 0.951, 0.3], 7),
        ([0.96, 0.96], None),
    ],
)
def test_a_score_stops_after_enough_checks_in_a_row_above(
    model: str, scores: list[float | None], expected: int | None
) -> None:
    cell = Cell(model=model, m=64, d_model=16, training={"patience": 3, "stop_score": 0.95})
    assert Checks(cell).above(1) == 0.95
    assert stops_at(cell, scores) == expected


def test_a_layer_of_facts_stops_at_the_first_check_without_an_error() -> None:
    database = {"family": "function", "keys": 6, "queries": 2, "values": 3}
    document = {"name": "x", "model": "facts", "database": database, "cells": [{"d_model": 4}]}
    search = {"mode": "grid", "heads": [1], "D_K": [4]}
    (cell,) = parse_study({**document, "search": search}).cells
    assert stops_at(cell, [0.5, 0.999, 1.0, 0.5]) == 3
    assert stops_at(cell, [0.5, 0.999, None]) is None


@pytest.mark.parametrize(
    ("tolerance", "scores", "expected"),
    [
        (0.0, [0.5, 0.5, 0.5, 0.5], 4),  # as good as the best is not better
        (0.0, [0.5, 0.6, 0.6, 0.49, 0.5, 0.5, 0.5], 7),
        (0.0, [0.5, 0.49, 0.48, 0.47, 0.46], None),
        (0.1, [0.5, 0.46, 0.46, 0.451], 4),  # never by more than a tenth below 0.5
        (0.1, [0.5, 0.46, 0.44, 0.42, 0.40, 0.39], None),  # slow, but 0.44 < 0.45 and 0.39 < 0.396
        (0.1, [0.5, 0.46, 0.44, 0.42, 0.40, 0.397], 6),
        (1.0, [0.5, 0.0, 0.0, 0.0], 4),
        (0.0, [0.0, 0.0, 0.0, 0.0], 4),
    ],
)
def test_an_error_stops_after_enough_checks_in_a_row_without_a_better_one(
    tolerance: float, scores: list[float], expected: int | None
) -> None:
    training = {"patience": 3, "tolerance": tolerance}
    cell = Cell(model="value", m=64, d_model=16, training=training)
    assert Checks(cell).above(1) is None
    assert stops_at(cell, scores) == expected


@pytest.mark.parametrize("model", MODELS)
def test_a_model_is_trained_by_the_engines_of_its_record_and_refused_by_others(model: str) -> None:
    engines = MODELS[model].engines
    assert make_engine("auto", model=model).name == engines[0]
    for name in ENGINES:
        if name in engines:
            torch.set_num_threads(2)
            assert make_engine(name, model=model).name == name
            assert torch.get_num_threads() == (2 if name == "fused" else 1)
        else:
            with pytest.raises(EngineError, match=f"--engine {name}: has no kernels for"):
                make_engine(name, model=model)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("lane",), "--engine lane: unknown; valid: auto, reference, compiled, fused"),
        (
            ("fused", ["max", "facts"]),
            "--engine fused: has no kernels for model facts; valid: auto, reference, compiled",
        ),
        (
            ("fused", ["max"], 0.5),
            "--engine fused: trains on CPUs alone; valid with --gpus: auto, compiled",
        ),
    ],
)
def test_a_refusal_names_what_is_valid(asked: tuple[Any, ...], told: str) -> None:
    with pytest.raises(EngineError) as error:
        check_engine(*asked)
    assert str(error.value) == told


def test_what_is_valid_is_accepted_and_made_for_its_device() -> None:
    check_engine("auto", ["ours", "max", "transformer"], 1)
    check_engine("compiled", ["softmax"], 0.5)
    for model in ("max", "transformer"):
        engines = [make_engine(name, "meta", model) for name in ("auto", "compiled")]
        assert {str(engine.device) for engine in engines} == {"meta"}
    assert make_engine().name == "fused"


@pytest.mark.parametrize(
    ("actual", "errors", "value", "settled"),
    [
        (10, 0, 1.0, False),  # nothing is wrong so far
        (10, 1, 1.0, True),
        (10, 5, 0.8, True),  # 20 / 25: at the value is not above it
        (10, 4, 0.8, False),
        (10, 5, 0.79, False),
        (10, 5, -1.0, False),
        (0, 3, 0.0, True),
    ],
)
def test_so_many_errors_keep_f1_from_exceeding_a_value(
    actual: int, errors: int, value: float, settled: bool
) -> None:
    assert f1_cannot_exceed(actual, errors, value) == settled
