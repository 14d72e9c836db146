"""Ways to train runs: the same numbers up to rounding, at very different speed."""

from __future__ import annotations

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


def make_engine(name: str = "auto", threads: int = 1) -> Engine:
    """The engine of a name; ``auto`` takes the fastest for the model and the device at hand.

    Raises:
        EngineError: there is no engine of that name.
    """
    check_engine(name)
    if name == "fused":
        return _fused(threads)
    import torch

    torch.set_num_threads(threads)
    if name == "reference":
        from rgr_dist.engines.reference import ReferenceEngine

        return ReferenceEngine()
    on_gpu = torch.cuda.is_available()
    if name == "auto" and not on_gpu:
        return _fused(threads)
    from rgr_dist.engines.lanes import LanesEngine

    return LanesEngine("cuda" if on_gpu else "cpu")


def _fused(threads: int) -> Engine:
    from rgr_dist.engines.fused import FusedEngine

    return FusedEngine(threads)


__all__ = ["ENGINES", "Engine", "EngineError", "Outcome", "Weights", "check_engine", "make_engine"]
