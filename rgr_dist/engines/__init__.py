"""Ways to train runs: the same numbers up to rounding, at very different speed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from rgr_dist.engines.engine import Engine, Outcome, Weights


class EngineError(ValueError):
    """There is no such engine; the message says which there are."""


ENGINES = ("reference", "lanes", "fused")


def check_engine(name: str) -> None:
    """Make sure that there is an engine of this name.

    Raises:
        EngineError: there is none.
    """
    if name not in ("auto", *ENGINES):
        raise EngineError(f"--engine {name}: unknown; valid: auto, {', '.join(ENGINES)}")


def make_engine(name: str = "auto", device: str = "cpu", threads: int = 1) -> Engine:
    """The engine of a name; ``auto`` takes the fastest for the device.

    Args:
        device: ``cpu``, or a torch device such as ``cuda``, which only ``lanes`` can use.
        threads: threads of a CPU engine.

    Raises:
        EngineError: there is no engine of that name.
    """
    check_engine(name)
    _place_numba_cache()
    if name == "fused" or (name == "auto" and device == "cpu"):
        return _fused(threads)
    import torch

    torch.set_num_threads(threads)
    if name == "reference":
        from rgr_dist.engines.reference import ReferenceEngine

        return ReferenceEngine()
    from rgr_dist.engines.lanes import LanesEngine

    return LanesEngine(device)


def _place_numba_cache() -> None:
    """Send compiled code to the temporary folder where neither usual place can be written."""
    usual = (Path(__file__).parent, Path("~").expanduser())
    if "NUMBA_CACHE_DIR" not in os.environ and not any(os.access(p, os.W_OK) for p in usual):
        os.environ["NUMBA_CACHE_DIR"] = str(Path(tempfile.gettempdir(), f"rgr-numba-{os.getuid()}"))


def _fused(threads: int) -> Engine:
    from rgr_dist.engines.fused import FusedEngine

    return FusedEngine(threads)


__all__ = ["ENGINES", "Engine", "EngineError", "Outcome", "Weights", "check_engine", "make_engine"]
