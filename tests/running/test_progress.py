"""What a study's run reports of itself."""

from __future__ import annotations

import pytest

from rgr_dist.running import progress
from rgr_dist.running.progress import Summary


def test_utilisation_counts_from_when_the_first_worker_is_there_and_the_tail_since_all_were_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    summary = Summary(train_seconds=15.0)
    summary.start(workers=2)
    now = 105.0
    summary.ready()
    now = 109.0
    summary.ready()
    now = 115.0
    summary.busy_until = 112.0
    summary.stop()
    assert summary.seconds == 10, "workers that start train nothing"
    assert summary.worker_seconds == 20
    assert (summary.utilisation, summary.tail) == (0.75, 3)
    summary.resize(5)
    now = 117.0
    summary.stop()
    assert (summary.worker_seconds, summary.workers) == (30, 5)
    assert Summary(train_seconds=1.0).utilisation == 0


def test_a_long_run_that_goes_on_does_not_make_the_study_look_slower(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 20.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    summary = Summary()
    assert summary.seconds_for(100.0) is None
    assert Summary(paced_from=10.0, reported=20.0).seconds_for(100.0) is None
    assert Summary(work=2.0).seconds_for(100.0) is None
    summary = Summary(work=2.0, paced_from=10.0, reported=20.0)
    assert summary.seconds_for(100.0) == 500
    now = 80.0
    assert summary.seconds_for(100.0) == 440
    assert summary.seconds_for(10.0) == 0
