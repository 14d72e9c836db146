"""How trials run on Tune's own loop where the memory runs out."""

from __future__ import annotations

from typing import Any

import pytest

from rgr_dist.search.tune import runner
from rgr_dist.search.tune.connect import NoRay
from rgr_dist.search.tune.lost_workers import LOW_ON_MEMORY
from rgr_dist.search.tune.runner import run_trials


def test_a_run_that_ends_for_its_memory_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = [RuntimeError(f"Caught unexpected exception: it was {LOW_ON_MEMORY}"), None, OSError()]
    told = []

    class Tuner:
        def __init__(self, *args: Any, **options: Any) -> None:
            """Takes whatever a Tuner takes."""

        def fit(self) -> None:
            if error := fits.pop(0):
                raise error

    class Searcher:
        def killed_for_memory(self) -> None:
            told.append("killed")

    monkeypatch.setattr(runner, "Tuner", Tuner)
    monkeypatch.setattr(runner, "TuneConfig", lambda **options: None)
    run_trials(object, Searcher(), None)
    assert told == ["killed"]
    with pytest.raises(OSError):  # noqa: PT011 (any other error is not ours)
        run_trials(object, Searcher(), None)


def test_a_ray_client_is_refused_before_a_tuner_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner.ray_client, "is_connected", lambda: True)
    monkeypatch.setattr(runner, "Tuner", None)
    with pytest.raises(NoRay, match=r"^a Ray client \(ray://\) cannot lead a search: [^\n]*$"):
        run_trials(object, None, None)
