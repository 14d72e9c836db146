"""Every engine gives the same verdicts as the paper's loop, around real thresholds."""

from __future__ import annotations

import math
import statistics

import pytest

from rgr_dist.engines.choose import make_engine
from rgr_dist.search.seed_test import SeedTest
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run

PROBES = [
    # model, m, d_model, h and the widths d_k around the threshold at a target
    ("max", 64, 16, 2, (7, 8, 9, 10), 0.99),
    ("max", 64, 32, 1, (4, 5, 6, 7), 0.99),
    ("max", 64, 32, 2, (3, 4, 5), 0.99),
    ("max", 64, 64, 1, (2, 3, 4, 5), 0.99),
    ("max", 64, 64, 2, (2, 3), 0.99),
    ("max", 128, 64, 1, (6, 7, 8), 0.99),
    ("softmax", 32, 16, 2, (4, 5, 6), 0.95),
    ("value", 32, 16, 4, (3, 4, 5), 0.3),
]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["fused", "compiled"])
@pytest.mark.parametrize(
    ("model", "m", "d_model", "h", "d_k", "target"),
    [(model, m, d, h, d_k, target) for model, m, d, h, d_ks, target in PROBES for d_k in d_ks],
)
def test_verdicts_and_means_are_those_of_the_reference(
    engine: str,
    model: str,
    m: int,
    d_model: int,
    h: int,
    d_k: int,
    target: float,
    reference: dict[Run, float],
) -> None:
    is_max = model == "max"
    training = {} if is_max else {"max_steps": 10_000}
    cell = Cell(model=model, m=m, d_model=d_model, training=training)
    runs = [Run(cell=cell, h=h, d_k=d_k, seed=seed) for seed in range(3 if is_max else 2)]
    for run in runs:
        if run not in reference:
            reference[run] = scores_of("reference", [run])[0]
    expected = [reference[run] for run in runs]
    found = scores_of(engine, runs)
    bounds = {"minimise": True, "high": None} if cell.record.minimised else {}
    test = SeedTest(target, len(runs), **bounds)
    assert test.verdict(dict(enumerate(found))) == test.verdict(dict(enumerate(expected)))
    standard_error = statistics.stdev(expected) / math.sqrt(len(runs))
    off = max(standard_error, 1e-6) if is_max else 0.01
    assert abs(statistics.mean(found) - statistics.mean(expected)) <= off


@pytest.fixture(scope="module")
def reference() -> dict[Run, float]:
    """Scores of the reference engine, kept for the other engines of a probe."""
    return {}


def scores_of(engine: str, runs: list[Run]) -> list[float]:
    scores = [outcome.score for outcome in make_engine(engine).train(runs)]
    assert None not in scores
    return [score for score in scores if score is not None]
