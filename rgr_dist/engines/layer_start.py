"""The parameters with which a layer from a file starts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rgr_dist.models.module_layer import ModuleLayer
from rgr_dist.models.own_layer import AttentionLayer
from rgr_dist.problem.edge_task import initial_parameters
from rgr_dist.problem.streams import Stream
from rgr_dist.study.run import Run


def start_of(layer: AttentionLayer, run: Run) -> dict[str, npt.NDArray[np.float64]]:
    """The parameters of a layer from a file at the start, float64, by name.

    They come from ``problem.edge_task.initial_parameters``; for a torch module, they are what its
    own initialisation draws from a seed of the run's, the trained ones times
    ``training.initial_scale``.
    """
    if not isinstance(layer, ModuleLayer):
        return initial_parameters(run, layer.parameters())
    stream = Stream.of(run.cell.problem_json, "module", run.seed)
    start = layer.start((stream.key0 << 32) | stream.key1)
    scaled = {name: start[name] * run.cell.training.initial_scale for name in layer.names}
    return start | scaled
