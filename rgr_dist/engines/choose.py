"""Which engines there are, and which one trains a model on a device."""

from __future__ import annotations

from collections.abc import Iterable

from rgr_dist.engines.api import Engine
from rgr_dist.faults import UserError
from rgr_dist.study.models import MODELS


class EngineError(UserError, ValueError):
    """No engine has this name, or it does not train this model; the message lists those that do."""


ENGINES = ("reference", "compiled", "fused")


def check_engine(name: str, models: Iterable[str] = (), gpus: float = 0.0) -> None:
    """Make sure that an engine of this name exists and trains these models on this hardware.

    Raises:
        EngineError: there is none, or it does not.
    """
    if name not in ("auto", *ENGINES):
        raise EngineError(f"--engine {name}: unknown; valid: auto, {', '.join(ENGINES)}")
    if gpus and name not in ("auto", "compiled"):
        raise EngineError(
            f"--engine {name}: trains on CPUs alone; valid with --gpus: auto, compiled"
        )
    for model in models:
        record = MODELS[model]
        if name not in ("auto", *record.engines):
            others = ", ".join(["auto", *(one for one in ENGINES if one in record.engines)])
            raise EngineError(f"--engine {name}: has no kernels for model {model}; valid: {others}")


def make_engine(name: str = "auto", device: str = "cpu", model: str = "max") -> Engine:
    """The engine of this name; ``auto`` takes the fastest for the device and the model.

    It runs on one thread, whatever the environment says, because processes share the cores.

    Args:
        device: ``cpu``, or a torch device such as ``cuda``, which only ``compiled`` can use.
        model: the model that it will train.

    Raises:
        EngineError: no engine has that name, or it does not train the model.
    """
    check_engine(name, [model])
    name = MODELS[model].engine(name, device)
    # An engine is imported only when it is made, because importing torch is slow.
    if name == "fused":
        from rgr_dist.engines.fused.engine import FusedEngine

        return FusedEngine()
    import torch

    torch.set_num_threads(1)
    if name == "construction":
        from rgr_dist.engines.constructions import ConstructionEngine

        return ConstructionEngine()
    if name == "reference":
        from rgr_dist.engines.reference import ReferenceEngine

        return ReferenceEngine()
    from rgr_dist.engines.compiled import CompiledEngine

    return CompiledEngine(device)
