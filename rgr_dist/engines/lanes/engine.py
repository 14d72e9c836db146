"""Many runs in one torch program, on any device; each lane stops for itself.

Lanes that have stopped are compacted away. On a GPU the step is captured as a CUDA graph, anew
after each compaction; this has not been run on a GPU, nor is it known how far the products of
cuBLAS there depend on a lane's neighbours.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import torch

from rgr_dist.engines.api import Engine, Outcome, Weights
from rgr_dist.engines.early_stopping import Checks
from rgr_dist.engines.lanes.evaluation import Evaluation
from rgr_dist.engines.lanes.own_layer import OwnLanes
from rgr_dist.engines.lanes.state import Lanes
from rgr_dist.study.cell import Run


class LanesEngine(Engine):
    """Batched training in torch: the engine for a GPU, and for layers of files.

    Args:
        compiled: whether the step of a layer of a file is compiled; by default where it can be.
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
        """Train every run until it stops, and say how it would have ended at smaller limits too."""
        outcomes: list[list[Outcome]] = [[] for _ in runs]
        if not runs:
            return outcomes
        lanes = self._lanes(runs)
        evaluation = Evaluation(lanes)
        checks = [Checks(lanes.cell, budgets) for _ in runs]
        seconds = [0.0] * len(runs)
        while True:
            began = time.perf_counter()
            ahead = checks[lanes.indices[0]]  # all that still run have the same limits before them
            lanes.advance(ahead.steps_to_next(lanes.steps))
            finite, above = lanes.is_finite(), ahead.above(lanes.steps)
            shared = (time.perf_counter() - began) / len(lanes)
            running = []
            for lane, index in enumerate(lanes.indices):
                began = time.perf_counter()
                val_score = evaluation.validate(lane, above) if finite[lane] else math.nan
                stop_reason, ends = checks[index].after(lanes.steps, val_score)
                outcome = None
                if stop_reason is not None:
                    outcome = evaluation.outcome(lane, stop_reason, val_score)
                seconds[index] += shared + time.perf_counter() - began
                if outcome is not None:
                    outcomes[index] += [replace(outcome, seconds=seconds[index])] * ends
                if checks[index].limits:
                    running.append(lane)
            if not running:
                return outcomes
            if len(running) < len(lanes):
                lanes.keep(running)

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[Weights]:
        """The weights after so many steps, without checks or stopping."""
        lanes = self._lanes(runs)
        lanes.advance(steps)
        return [lanes.weights(lane) for lane in range(len(runs))]

    def _lanes(self, runs: Sequence[Run]) -> Lanes | OwnLanes:
        if runs[0].cell.record.task == "own layer":
            lanes = OwnLanes(runs, self.device, self.dtype, self.compiled)
            self.name = "lanes" if lanes.program.compiled else "lanes, uncompiled"
            return lanes
        return Lanes(runs, self.device, self.dtype)
