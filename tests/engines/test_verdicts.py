"""Every engine gives the same verdicts as the paper's loop, around real thresholds."""

from __future__ import annotations

import math
import statistics

import pytest

from rgr_dist.engines.choose import make_engine
from rgr_dist.study.cell import Cell, Run
from search.probe_verdict import SeedTest

SEEDS = 3
PROBES = [
    # m, d_model, h and the widths d_k around its threshold
    (64, 16, 2, (7, 8, 9, 10)),
    (64, 32, 1, (4, 5, 6, 7)),
    (64, 32, 2, (3, 4, 5)),
    (64, 64, 1, (2, 3, 4, 5)),
    (64, 64, 2, (2, 3)),
    (128, 64, 1, (6, 7, 8)),
]
OTHERS = [
    # model, h, target and the widths d_k around the threshold of a cell of 32 items
    ("softmax", 2, 0.95, (4, 5, 6)),
    ("value", 4, 0.3, (3, 4, 5)),
]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["fused", "lanes"])
@pytest.mark.parametrize(
    ("m", "d_model", "h", "d_k"), [(m, d, h, d_k) for m, d, h, d_ks in PROBES for d_k in d_ks]
)
def test_verdicts_and_means_are_those_of_the_reference(
    engine: str, m: int, d_model: int, h: int, d_k: int, reference: dict[Run, float]
) -> None:
    runs = [Run(cell=Cell(m=m, d_model=d_model), h=h, d_k=d_k, seed=seed) for seed in range(SEEDS)]
    for run in runs:
        if run not in reference:
            reference[run] = scores_of("reference", [run])[0]
    expected = [reference[run] for run in runs]
    found = scores_of(engine, runs)
    test = SeedTest(0.99, SEEDS)
    assert test.verdict(dict(enumerate(found))) == test.verdict(dict(enumerate(expected)))
    standard_error = statistics.stdev(expected) / math.sqrt(SEEDS)
    assert abs(statistics.mean(found) - statistics.mean(expected)) <= max(standard_error, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["fused", "lanes"])
@pytest.mark.parametrize(
    ("model", "h", "target", "d_k"),
    [(model, h, target, d_k) for model, h, target, d_ks in OTHERS for d_k in d_ks],
)
def test_verdicts_of_the_other_models_are_those_of_the_reference(
    engine: str, model: str, h: int, target: float, d_k: int, reference: dict[Run, float]
) -> None:
    cell = Cell(model=model, m=32, d_model=16, training={"max_steps": 10_000})
    runs = [Run(cell=cell, h=h, d_k=d_k, seed=seed) for seed in range(2)]
    for run in runs:
        if run not in reference:
            reference[run] = scores_of("reference", [run])[0]
    expected = [reference[run] for run in runs]
    found = scores_of(engine, runs)
    bounds = {"minimise": True, "high": None} if cell.minimised else {}
    test = SeedTest(target, len(runs), **bounds)
    assert test.verdict(dict(enumerate(found))) == test.verdict(dict(enumerate(expected)))
    assert statistics.mean(found) == pytest.approx(statistics.mean(expected), abs=0.01)


@pytest.fixture(scope="module")
def reference() -> dict[Run, float]:
    """Scores of the reference engine, kept for the other engines of a probe."""
    return {}


def scores_of(engine: str, runs: list[Run]) -> list[float]:
    scores = [outcome.score for outcome in make_engine(engine).train(runs)]
    assert None not in scores
    return [score for score in scores if score is not None]
