"""A ``ThresholdSearch`` driven by hand, as Tune drives it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ray.tune.search import Searcher

from rgr_dist.search.tune.threshold_search import ThresholdSearch


def passing_from(threshold: int) -> Callable[[dict[str, Any]], float]:
    return lambda config: float(config["width"] >= threshold)


def search(**changes: Any) -> ThresholdSearch:
    asked = {"axis": "width", "values": range(1, 33), "target": 0.9, "metric": "f1", "seeds": 2}
    return ThresholdSearch(**{"max_concurrent": 2} | asked | changes)


def restored(one: ThresholdSearch, folder: Path, **changes: Any) -> ThresholdSearch:
    """A new search that goes on from what another one saved."""
    one.save(str(folder / "state"))
    other = search(**changes)
    other.restore(str(folder / "state"))
    return other


def end(searcher: Any, trial: str, f1: Any, iteration: Any = 1) -> None:
    """Let a trial end with this metric, as if it had reported it last."""
    result = {"f1": f1, "training_iteration": iteration}
    searcher.on_trial_result(trial, result)
    searcher.on_trial_complete(trial, result | {"done": True})


def drive(
    searcher: Any, score: Callable[[dict[str, Any]], float], most: int = 1000, name: str = "t"
) -> list[dict[str, Any]]:
    """Run trials one after another, as Tune does; returns their configs."""
    configs = []
    for number in range(most):
        config = searcher.suggest(f"{name}{number}")
        if config == Searcher.FINISHED:
            break
        assert isinstance(config, dict)
        configs.append(config)
        end(searcher, f"{name}{number}", score(config))
    return configs
