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

from rgr_dist.engines.api import Outcome, StopReason, Weights
from rgr_dist.engines.early_stopping import EarlyStop
from rgr_dist.engines.lanes.evaluation import Evaluation
from rgr_dist.engines.lanes.state import Lanes
from rgr_dist.study.study import Run


class LanesEngine:
    """Batched training in torch: the engine for a GPU."""

    name = "lanes"

    def __init__(self, device: str = "cpu", dtype: torch.dtype = torch.float32) -> None:
        self.device = torch.device(device)
        self.dtype = dtype

    def train(self, runs: Sequence[Run]) -> list[Outcome]:
        """Train every run until it stops, test it, and return the outcomes in order."""
        if not runs:
            return []
        training = runs[0].cell.training
        lanes = Lanes(runs, self.device, self.dtype)
        evaluation = Evaluation(lanes)
        outcomes: dict[int, Outcome] = {}
        stops, seconds = [EarlyStop(lanes.cell) for _ in runs], [0.0] * len(runs)
        while True:
            began = time.perf_counter()
            lanes.advance(min(training.check_every, training.max_steps - lanes.steps))
            finite = lanes.is_finite()
            sound = [lane for lane, is_finite in enumerate(finite) if is_finite]
            last = lanes.steps == training.max_steps
            above = None if last else stops[0].above
            val_scores = dict(zip(sound, evaluation.validate(sound, above), strict=True))
            shared = (time.perf_counter() - began) / len(lanes)
            running = []
            for lane, index in enumerate(lanes.indices):
                began_alone = time.perf_counter()
                val_score = val_scores.get(lane)
                stop_reason: StopReason | None = None
                if lane not in val_scores or not math.isfinite(val_score or 0.0):
                    stop_reason, val_score = "diverged", None
                elif stops[index].after(val_score):
                    stop_reason = "converged"
                elif last:
                    stop_reason = "max_steps"
                else:
                    running.append(lane)
                if stop_reason is not None:
                    outcomes[index] = evaluation.outcome(lane, stop_reason, val_score)
                seconds[index] += shared + time.perf_counter() - began_alone
            if not running:
                return [replace(outcomes[i], seconds=seconds[i]) for i in range(len(runs))]
            if len(running) < len(lanes):
                lanes.keep(running)

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[Weights]:
        """The weights after so many steps, without checks or stopping."""
        lanes = Lanes(runs, self.device, self.dtype)
        lanes.advance(steps)
        result = []
        for lane in range(len(runs)):
            W_Q, W_K = (W.cpu().numpy() for W in lanes.weights(lane))
            result.append(Weights(W_Q, W_K, lanes.tau(lane)))
        return result
