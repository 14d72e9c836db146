"""A ``ThresholdSearch`` driven by hand, as Tune drives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ray.tune.search import Searcher

from rgr_dist.search.tune.threshold_search import ThresholdSearch


def passing_from(threshold: int) -> Callable[[dict[str, Any]], float]:
    return lambda config: float(config["width"] >= threshold)


def search(**changes: Any) -> ThresholdSearch:
    asked = {"axis": "width", "values": range(1, 33), "target": 0.9, "metric": "f1", "seeds": 2}
    return ThresholdSearch(**{"max_concurrent": 2} | asked | changes)


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
        result = {"f1": score(config), "training_iteration": 1}
        searcher.on_trial_result(f"{name}{number}", result)
        searcher.on_trial_complete(f"{name}{number}", result | {"done": True})
    return configs
