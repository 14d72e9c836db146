"""What runs at one step limit tell at others."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from rgr_dist.planning.budgets import (
    at_larger_limits,
    missing_at_larger_limits,
    records,
    smaller_limits,
    trained_steps,
)
from rgr_dist.store.schema import RUNS
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from tests.planning.made_up_runs import runs_of, study_of
from tests.store.made_up_runs import run_row


def limits_study(**training: Any) -> Study:
    """A study of one cell at three step limits."""
    training = {"max_steps": [2000, 1000, 4000]} | training
    return study_of([{"m": 16, "d_model": 8, "training": training}], heads=[1])


def cells_of(study: Study) -> dict[int, Cell]:
    """The cells of a study by their step limits."""
    return {cell.training.max_steps: cell for cell in study.cells}


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_a_run_passes_the_smaller_limits_on_its_way_unless_its_rate_looks_ahead(
    schedule: str,
) -> None:
    study = limits_study(schedule=schedule)
    found = {cell.training.max_steps: smaller_limits(study, cell) for cell in study.cells}
    if schedule == "constant":
        assert found == {1000: [], 2000: [1000], 4000: [1000, 2000]}
    else:
        assert not any(found.values())


@pytest.mark.parametrize(
    ("how", "reached"),
    [
        ({"stop_reason": "converged", "steps": 500}, [2000, 4000]),
        ({"stop_reason": "diverged", "steps": 500, "score": None}, [2000, 4000]),
        ({"stop_reason": "max_steps", "steps": 1000}, []),
        ({"stop_reason": "failed", "steps": 0}, []),
        ({"stop_reason": "converged", "steps": 501}, []),  # no longer run has a check there
    ],
)
def test_a_run_that_ended_early_is_the_same_at_every_larger_limit(
    how: dict[str, Any], reached: list[int]
) -> None:
    study = limits_study(check_every=100)
    by_limit = cells_of(study)
    row = run_row(1, 4, 7, by_limit[1000], **how)
    larger = at_larger_limits(study, row)
    assert sorted(one["max_steps"] for one in larger) == reached
    for one in larger:
        run = Run(cell=by_limit[one["max_steps"]], h=1, d_k=4, seed=7)
        assert (one["run_id"], one["cell_id"]) == (run.run_id, run.cell.cell_id)
        assert (one["config"], one["seconds"], one["trained_to"]) == (run.config_json, 0.0, 1000)
        same = [name for name in RUNS.names if name not in CHANGED]
        assert [one[name] for name in same] == [row[name] for name in same]
    by_cosine = limits_study(check_every=100, schedule="cosine")
    first = cells_of(by_cosine)[1000]
    assert at_larger_limits(by_cosine, run_row(1, 4, 7, first, **how)) == []
    assert at_larger_limits(study, run_row(1, 4, 7, **how)) == [], "another study's cell"


CHANGED = ("run_id", "cell_id", "config", "seconds", "max_steps", "trained_to")


def test_what_is_read_off_a_run_says_where_that_was_trained() -> None:
    study = limits_study()
    by_limit = cells_of(study)
    early: dict[str, Any] = {"stop_reason": "converged", "steps": 500}
    (first, second) = at_larger_limits(study, run_row(1, 4, 0, by_limit[1000], **early))
    (last,) = at_larger_limits(study, {**first, "seconds": 3.0})
    assert (first["max_steps"], last["max_steps"], last["trained_to"]) == (2000, 4000, 1000)
    untold = run_row(1, 4, 0, by_limit[1000], **early) | {"trained_to": None}
    assert at_larger_limits(study, untold) == [first, second]


def test_what_a_longer_run_implies_takes_the_place_of_one_that_failed() -> None:
    training = {"max_steps": [1000, 2000]}
    study = study_of([{"m": 16, "d_model": 8, "training": training}], heads=[1])
    short, long = study.cells
    converged = run_row(1, 4, 0, short, steps=500, max_steps=1000, trained_to=1000)
    failed = run_row(1, 4, 0, long, stop_reason="failed", score=None, error="the worker died")
    (implied,) = missing_at_larger_limits(study, runs_of([converged, failed]))
    assert implied["run_id"] == failed["run_id"]
    again = run_row(1, 4, 0, long, steps=500, max_steps=2000, trained_to=1000)
    assert missing_at_larger_limits(study, runs_of([converged, again])) == []


def test_each_larger_limit_is_told_once_by_the_shortest_run() -> None:
    study = limits_study()
    by_limit = cells_of(study)
    rows = [
        run_row(1, 4, 0, by_limit[2000], steps=500, score=0.5),
        run_row(1, 4, 0, by_limit[1000], steps=500, score=1.0),
        run_row(1, 5, 0, by_limit[1000], stop_reason="max_steps", steps=1000),
        run_row(1, 6, 0, by_limit[1000], stop_reason="diverged", steps=500, score=None),
    ]
    implied = missing_at_larger_limits(study, runs_of(rows))
    assert [(row["d_k"], row["max_steps"], row["score"]) for row in implied] == [
        (4, 4000, 1.0),
        (6, 2000, None),
        (6, 4000, None),
    ]
    assert missing_at_larger_limits(study_of(), runs_of(rows)) == []


def test_rows_have_plain_values_and_none_where_one_is_missing() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, float("nan")], "c": ["x", None]})
    assert records(frame) == [{"a": 1, "b": 0.5, "c": "x"}, {"a": 2, "b": None, "c": None}]
    assert records(frame.iloc[:0]) == []


def test_steps_are_trained_once_however_many_limits_are_read_off() -> None:
    study = limits_study()
    by_limit = cells_of(study)
    rows = [
        run_row(1, 4, 0, by_limit[1000], steps=700, trained_to=1000),
        run_row(1, 4, 0, by_limit[2000], steps=700, trained_to=1000),
        run_row(1, 5, 0, by_limit[2000], steps=900, trained_to=None),
    ]
    assert list(trained_steps(runs_of(rows))) == [700, 0, 900]
