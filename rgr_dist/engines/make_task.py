"""Which task of the torch engines a run is."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name

import torch

from rgr_dist.engines.relations import SharedEdges
from rgr_dist.engines.tasks import Edges, Matching, TorchTask, Value
from rgr_dist.study.run import Run


def make_task(run: Run, device: torch.device, dtype: torch.dtype, anew: bool = False) -> TorchTask:
    """The task of a run; ``anew`` runs the file of its layer again."""
    record = run.cell.record
    if record.room is not None:
        own: Callable[..., TorchTask] = resolve_name(record.room.task)
        return own(run, device, dtype)
    if record.task == "matching":
        return Matching(run, device, dtype)
    if record.loss == "messages":
        return Value(run, device, dtype)
    if run.cell.training.embeddings == "trained":
        return SharedEdges(run, device, dtype)
    return Edges(run, device, dtype, anew)
