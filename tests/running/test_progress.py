"""What a study's run reports of itself."""

from __future__ import annotations

import pytest

from rgr_dist.running import progress
from rgr_dist.running.progress import Summary


def test_utilisation_counts_from_when_the_first_worker_is_there(
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
    summary.stop()
    assert summary.seconds == 15
    assert summary.worker_seconds == 20
    assert summary.utilisation == 0.75
