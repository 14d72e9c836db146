"""Measures how many relations an attention layer can hold, and how that scales.

    import rgr_dist as rgr

    study = rgr.run("quickstart")    # or rgr.load, which trains nothing
    study.best(), study.thresholds(), study.fit(), study.curves(h=[1, 4]).plot()

The public names are imported as they are first used: importing the package starts nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rgr_dist.open_study import OpenStudy, load, run
    from rgr_dist.search.tune.find_threshold import find_threshold, find_thresholds
    from rgr_dist.search.tune.threshold_search import ThresholdSearch
    from rgr_dist.store.store import Store
    from rgr_dist.study.study import Study

__all__ = [
    "OpenStudy",
    "Store",
    "Study",
    "ThresholdSearch",
    "find_threshold",
    "find_thresholds",
    "load",
    "run",
]

_NAMES = {
    "OpenStudy": ("rgr_dist.open_study", "OpenStudy"),
    "Store": ("rgr_dist.store.store", "Store"),
    "Study": ("rgr_dist.study.study", "Study"),
    "ThresholdSearch": ("rgr_dist.search.tune.threshold_search", "ThresholdSearch"),
    "find_threshold": ("rgr_dist.search.tune.find_threshold", "find_threshold"),
    "find_thresholds": ("rgr_dist.search.tune.find_threshold", "find_thresholds"),
    "load": ("rgr_dist.open_study", "load"),
    "run": ("rgr_dist.open_study", "run"),
}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'rgr_dist' has no attribute '{name}'")
    module, attribute = _NAMES[name]
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        why = f"rgr_dist.{name} needs {error.name}: pip install 'rgr-dist[study]'"
        raise ImportError(why) from None
