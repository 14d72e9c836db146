"""Measures how many relations an attention layer can hold, and how that scales.

    import rgr_dist as rgr

    study = rgr.run("quickstart")    # or rgr.load, which trains nothing
    study.best(), study.thresholds(), study.fit(), study.curves(h=[1, 4]).plot()

The public names are imported as they are first used: importing the package starts nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rgr_dist.open_study import OpenStudy, load, run
    from rgr_dist.store.store import Store
    from rgr_dist.study.study import Study
    from search.tune.find_threshold import find_threshold, find_thresholds

__all__ = ["OpenStudy", "Store", "Study", "find_threshold", "find_thresholds", "load", "run"]

_NAMES = {
    "OpenStudy": ("rgr_dist.open_study", "OpenStudy"),
    "Store": ("rgr_dist.store.store", "Store"),
    "Study": ("rgr_dist.study.study", "Study"),
    "find_threshold": ("search.tune.find_threshold", "find_threshold"),
    "find_thresholds": ("search.tune.find_threshold", "find_thresholds"),
    "load": ("rgr_dist.open_study", "load"),
    "run": ("rgr_dist.open_study", "run"),
}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'rgr_dist' has no attribute '{name}'")
    module, attribute = _NAMES[name]
    return getattr(import_module(module), attribute)


def _refuse_shadows() -> None:
    """Make sure that ``search`` and ``analysis`` are the packages installed beside this one.

    Raises:
        ImportError: a file or folder of that name comes first on ``sys.path``; names it.
    """
    for name in ("search", "analysis"):
        if name in sys.modules and getattr(sys.modules[name], "__file__", None):
            found = sys.modules[name].__file__
        else:
            spec = find_spec(name)
            found = spec.origin if spec is not None else None
        ours = Path(__file__).parent.parent / name / "__init__.py"
        if found is not None and Path(found).resolve() != ours.resolve():
            raise ImportError(
                f"{found} hides the package '{name}' that rgr_dist needs; "
                "rename that file, or run from another folder"
            )


_refuse_shadows()
