"""Runs that diverged are told, since they look like a threshold that is out of reach."""

from __future__ import annotations

import pandas as pd

from rgr_dist.planning.listing import divergence


def test_diverged_runs_are_counted_among_all() -> None:
    told = divergence(pd.DataFrame({"stop_reason": ["diverged", "converged", "diverged"]}))
    assert told is not None
    assert told.startswith("2 of 3 runs diverged")
    assert "training.learning_rate" in told


def test_nothing_is_told_where_none_did() -> None:
    assert divergence(pd.DataFrame({"stop_reason": ["converged", "max_steps", "failed"]})) is None
