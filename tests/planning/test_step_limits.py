"""What runs at one step limit tell at others."""

from __future__ import annotations

from rgr_dist.planning.budgets import missing_at_larger_limits
from tests.planning.made_up_runs import runs_of, study_of
from tests.store.made_up_runs import run_row


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
