"""Ways to train runs: the same numbers up to rounding, at very different speed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from rgr_dist.engines.engine import Engine, Outcome, Weights


class EngineError(ValueError):
    """There is no such engine; the message says which there are."""


ENGINES = ("reference", "lanes", "fused")
NOT_FUSED = ("transformer",)
"""Models that ``fused`` has no kernels for."""


def check_engine(name: str, models: Iterable[str] = (), gpus: float = 0.0) -> None:
    """Make sure that there is an engine of this name, and that it trains these models there.

    Raises:
        EngineError: there is none, or it does not.
    """
    if name not in ("auto", *ENGINES):
        raise EngineError(f"--engine {name}: unknown; valid: auto, {', '.join(ENGINES)}")
    if gpus and name not in ("auto", "lanes"):
        raise EngineError(f"--engine {name}: trains on CPUs alone; valid with --gpus: auto, lanes")
    for model in models:
        if name == "fused" and model in NOT_FUSED:
            raise EngineError(
                f"--engine fused: has no kernels for model {model}; valid: auto, reference, lanes"
            )


def make_engine(
    name: str = "auto", device: str = "cpu", threads: int = 1, model: str = "max"
) -> Engine:
    """The engine of a name; ``auto`` takes the fastest for the device and the model.

    Args:
        device: ``cpu``, or a torch device such as ``cuda``, which only ``lanes`` can use.
        threads: threads of a CPU engine.
        model: what it is to train.

    Raises:
        EngineError: there is no engine of that name, or it does not train the model.
    """
    check_engine(name, [model])
    _place_numba_cache()
    if name == "fused" or (name == "auto" and device == "cpu" and model not in NOT_FUSED):
        return _fused(threads)
    import torch

    torch.set_num_threads(threads)
    if model == "transformer":
        return _transformer(name, device)
    if name == "reference":
        from rgr_dist.engines.reference.edges import ReferenceEngine

        return ReferenceEngine()
    from rgr_dist.engines.lanes.engine import LanesEngine

    return LanesEngine(device)


def _place_numba_cache() -> None:
    """Send compiled code to the temporary folder where neither usual place can be written."""
    usual = (Path(__file__).parent, Path("~").expanduser())
    if "NUMBA_CACHE_DIR" not in os.environ and not any(os.access(p, os.W_OK) for p in usual):
        os.environ["NUMBA_CACHE_DIR"] = str(Path(tempfile.gettempdir(), f"rgr-numba-{os.getuid()}"))


def _transformer(name: str, device: str) -> Engine:
    if name == "reference":
        from rgr_dist.engines.reference.matching import TransformerReference

        return TransformerReference()
    from rgr_dist.engines.lanes.transformer import TransformerLanes

    return TransformerLanes(device)


def _fused(threads: int) -> Engine:
    from rgr_dist.engines.fused.engine import FusedEngine

    return FusedEngine(threads)


__all__ = ["ENGINES", "Engine", "EngineError", "Outcome", "Weights", "check_engine", "make_engine"]
