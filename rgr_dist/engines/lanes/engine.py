"""Many runs in one program, on any device; each lane stops on its own.

On a GPU, each lane of a layer of edges gets a thread block (``engines.cuda``) if it fits into one.
Otherwise torch runs the program: lanes that have stopped are compacted away, and on a GPU the step
of a layer of edges is captured as a CUDA graph, again after each compaction. How much cuBLAS
products there depend on a lane's neighbours is not known.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import torch

from rgr_dist.engines.api import Engine, Outcome, Weights
from rgr_dist.engines.cuda.kernels import KernelError
from rgr_dist.engines.cuda.lanes import CudaEvaluation, CudaLanes
from rgr_dist.engines.early_stopping import Checks
from rgr_dist.engines.lanes.evaluation import Evaluation
from rgr_dist.engines.lanes.own_layer import OwnLanes
from rgr_dist.engines.lanes.state import Lanes
from rgr_dist.study.run import Run


class LanesEngine(Engine):
    """Batched training in torch: the engine for a GPU, and for layers from files.

    Args:
        compiled: whether to compile the step of a layer from a file; by default, if possible.
    """

    name = "lanes"

    def __init__(
        self,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        compiled: bool | None = None,
    ) -> None:
        self.device = torch.device(device)
        self.dtype, self.compiled = dtype, compiled

    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        """Train every run until it stops, and report how it would have ended at smaller limits."""
        outcomes: list[list[Outcome]] = [[] for _ in runs]
        lanes, evaluation = self._start(runs)
        checks = [Checks(lanes.cell, budgets) for _ in runs]
        seconds = 0.0  # a lane's share of the time so far, the same for all that still run
        while True:
            began = time.perf_counter()
            lanes.advance(min(checks[at].steps_to_next(lanes.steps) for at in lanes.indices))
            finite = lanes.is_finite()
            running, ended, at = [], [], []
            for lane, index in enumerate(lanes.indices):
                own = checks[index]
                if own.is_due(lanes.steps):
                    above = own.above(lanes.steps)
                    val_score = evaluation.validate(lane, above) if finite[lane] else math.nan
                    if reasons := own.after(lanes.steps, val_score):
                        ended.append((lane, reasons[0], val_score))
                        at.append((index, reasons))
                if own.limits:
                    running.append(lane)
            tested = evaluation.outcomes(ended)
            seconds += (time.perf_counter() - began) / len(lanes)
            for (index, reasons), outcome in zip(at, tested, strict=True):
                outcomes[index] += [
                    replace(outcome, stop_reason=why, seconds=seconds) for why in reasons
                ]
            if not running:
                return outcomes
            if len(running) < len(lanes):
                lanes.keep(running)

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[Weights]:
        """The weights after ``steps`` steps, without checks or early stopping."""
        lanes, _ = self._start(runs)
        lanes.advance(steps)
        return [lanes.weights(lane) for lane in range(len(runs))]

    def _start(
        self, runs: Sequence[Run]
    ) -> tuple[Lanes | OwnLanes | CudaLanes, Evaluation | CudaEvaluation]:
        lanes: Lanes | OwnLanes
        if runs[0].cell.record.task == "own layer":
            lanes = OwnLanes(runs, self.device, self.dtype, self.compiled)
            self.name = "lanes" if lanes.program.compiled else "lanes, uncompiled"
            return lanes, Evaluation(lanes)
        if self.device.type == "cuda" and self.dtype == torch.float32:
            try:
                blocks = CudaLanes(runs)
            except KernelError:
                pass
            else:
                self.name = "lanes, in blocks"
                return blocks, CudaEvaluation(blocks)
        self.name = "lanes"
        lanes = Lanes(runs, self.device, self.dtype)
        return lanes, Evaluation(lanes)
