"""Measures how many relations an attention layer can hold, and how that scales.

    import rgr_dist as rgr

    study = rgr.run("quickstart")    # or rgr.load, which trains nothing
    study.best(), study.thresholds(), study.fit(), study.curves(h=[1, 4]).plot()

Public names are imported on first use: importing the package itself starts nothing.
"""

from __future__ import annotations

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from rgr_dist.open_study import Study, compare, load, run
    from rgr_dist.search.tune.find_threshold import find_threshold
    from rgr_dist.search.tune.score_file import ScoreFile
    from rgr_dist.search.tune.threshold_search import ThresholdSearch
    from rgr_dist.store.store import Store
    from rgr_dist.study.yaml_document import shipped_studies as studies

    __version__: str

__all__ = [
    "ScoreFile",
    "Store",
    "Study",
    "ThresholdSearch",
    "__version__",
    "compare",
    "find_threshold",
    "load",
    "run",
    "studies",
]

_NAMES = {
    "ScoreFile": ("rgr_dist.search.tune.score_file", "ScoreFile"),
    "Store": ("rgr_dist.store.store", "Store"),
    "Study": ("rgr_dist.open_study", "Study"),
    "ThresholdSearch": ("rgr_dist.search.tune.threshold_search", "ThresholdSearch"),
    "compare": ("rgr_dist.open_study", "compare"),
    "find_threshold": ("rgr_dist.search.tune.find_threshold", "find_threshold"),
    "load": ("rgr_dist.open_study", "load"),
    "run": ("rgr_dist.open_study", "run"),
    "studies": ("rgr_dist.study.yaml_document", "shipped_studies"),
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> _typing.Any:
    if name == "__version__":
        metadata = _importlib.import_module("importlib.metadata")
        try:
            return metadata.version("rgr-dist")
        except metadata.PackageNotFoundError:  # shipped to a cluster as source
            return "source"
    if name not in _NAMES:
        raise AttributeError(f"module 'rgr_dist' has no attribute '{name}'")
    module, attribute = _NAMES[name]
    try:
        return getattr(_importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        why = f"rgr_dist.{name} needs {error.name}: pip install 'rgr-dist[study]'"
        raise ImportError(why) from None
