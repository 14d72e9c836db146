"""Which engines there are, and which one trains a model on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rgr_dist.engines.api import Engine
from rgr_dist.faults import UserError
from rgr_dist.study.models import MODELS


class EngineError(UserError, ValueError):
    """No engine has this name, or it does not train this model; the message lists those that do."""


ENGINES = ("reference", "lanes", "fused")


def check_engine(name: str, models: Iterable[str] = (), gpus: float = 0.0) -> None:
    """Make sure that an engine of this name exists and trains these models on this hardware.

    Raises:
        EngineError: it does not.
    """
    if name not in ("auto", *ENGINES):
        raise EngineError(f"--engine {name}: unknown; valid: auto, {', '.join(ENGINES)}")
    if gpus and name not in ("auto", "lanes"):
        raise EngineError(f"--engine {name}: trains on CPUs alone; valid with --gpus: auto, lanes")
    for model in models:
        valid = MODELS[model].engines
        if gpus and MODELS[model].task == "facts":
            raise EngineError(f"--gpus: model {model} trains on CPUs alone; leave it out")
        if name not in ("auto", *valid):
            others = ", ".join(["auto", *(engine for engine in ENGINES if engine in valid)])
            raise EngineError(f"--engine {name}: has no kernels for model {model}; valid: {others}")


def make_engine(
    name: str = "auto", device: str = "cpu", threads: int = 1, model: str = "max"
) -> Engine:
    """The engine of a name; ``auto`` takes the fastest for the device and the model.

    Args:
        device: ``cpu``, or a torch device such as ``cuda``, which only ``lanes`` can use.
        threads: threads of a CPU engine.
        model: what it is to train.

    Raises:
        EngineError: no engine has that name, or it does not train the model.
    """
    check_engine(name, [model])
    record = MODELS[model]
    if record.task == "construction":  # made in numpy, on the CPU, wherever the worker is
        from rgr_dist.engines.constructions import ConstructionEngine

        return ConstructionEngine()
    if name == "auto":
        on_gpu = device != "cpu" and "lanes" in record.engines
        name = "lanes" if on_gpu else record.engines[0]
    if name == "fused" and record.task == "facts":
        from rgr_dist.engines.fused.facts.engine import FactsEngine

        return FactsEngine(threads)
    if name == "fused":
        from rgr_dist.engines.fused.engine import FusedEngine

        return FusedEngine(threads)
    import torch

    torch.set_num_threads(threads)
    return _TORCH_ENGINES[name, record.task](device)


def _reference(device: str) -> Engine:
    from rgr_dist.engines.reference.edges import ReferenceEngine

    return ReferenceEngine()


def _transformer_reference(device: str) -> Engine:
    from rgr_dist.engines.reference.matching import TransformerReference

    return TransformerReference()


def _facts_reference(device: str) -> Engine:
    from rgr_dist.engines.reference.facts import FactsReference

    return FactsReference()


def _lanes(device: str) -> Engine:
    from rgr_dist.engines.lanes.engine import LanesEngine

    return LanesEngine(device)


def _transformer_lanes(device: str) -> Engine:
    from rgr_dist.engines.lanes.transformer import TransformerLanes

    return TransformerLanes(device)


_TORCH_ENGINES: dict[tuple[str, str], Callable[[str], Engine]] = {
    ("reference", "edges"): _reference,
    ("reference", "matching"): _transformer_reference,
    ("reference", "facts"): _facts_reference,
    ("lanes", "edges"): _lanes,
    ("lanes", "matching"): _transformer_lanes,
}
"""By the name of the engine and the task of the model; imported only when one is made."""
