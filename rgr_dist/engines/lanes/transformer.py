"""Transformer runs side by side in one torch program, on any device.

Every lane trains for the same number of steps (Sec. 7.3). On a GPU the step is captured as a
CUDA graph and computes in mixed precision, bfloat16 products of float32 parameters; neither
has been run on a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch

from rgr_dist.engines.api import Engine, Outcome, Weights
from rgr_dist.engines.lanes.transformer_state import BlockLanes
from rgr_dist.problem.matching_task import Examples
from rgr_dist.study.cell import Run

AT_ONCE = 256
"""Examples of each lane that are scored at once, so that scores do not depend on the lanes."""


class TransformerLanes(Engine):
    """Batched training in torch.

    Args:
        mixed: whether to train in mixed precision; by default on a GPU alone.
    """

    def __init__(
        self, device: str = "cpu", dtype: torch.dtype = torch.float32, mixed: bool | None = None
    ) -> None:
        self.device, self.dtype = torch.device(device), dtype
        self.mixed = self.device.type == "cuda" if mixed is None else mixed
        self.name = "lanes, bfloat16" if self.mixed else "lanes"

    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        """Train every run to the end of each budget apart, and of its own limit."""
        apart = [self._train([run.with_limit(steps) for run in runs]) for steps in budgets]
        return [list(outcomes) for outcomes in zip(*apart, self._train(runs), strict=True)]

    def _train(self, runs: Sequence[Run]) -> list[Outcome]:
        """Train every run to the end, and test its best weights."""
        if not runs:
            return []
        began = time.perf_counter()
        training = runs[0].cell.training
        lanes = BlockLanes(runs, self.device, self.dtype, self.mixed)
        validation = np.stack([task.validation for task in lanes.tasks])
        best = [-1.0] * len(lanes)
        best_parameters = [p.detach().clone() for p in lanes.parameters]
        diverged: dict[int, int] = {}  # lane → the step at which it was seen
        while lanes.steps < training.max_steps and len(diverged) < len(lanes):
            lanes.advance(min(training.check_every, training.max_steps - lanes.steps))
            scores, better = score(lanes, validation), []
            for lane, is_finite in enumerate(lanes.is_finite()):
                if not is_finite:
                    diverged.setdefault(lane, lanes.steps)
                elif scores[lane][0] > best[lane]:
                    best[lane] = scores[lane][0]
                    better.append(lane)
            for p, kept in zip(lanes.parameters, best_parameters, strict=True):
                kept[better] = p.detach()[better]
        for p, kept in zip(lanes.parameters, best_parameters, strict=True):
            p.data.copy_(kept)
        tested = score(lanes, np.stack([task.test for task in lanes.tasks]))
        seconds = (time.perf_counter() - began) / len(runs)
        return [
            Outcome(steps=diverged[lane], stop_reason="diverged", seconds=seconds)
            if lane in diverged
            else Outcome(
                steps=training.max_steps,
                stop_reason="max_steps",
                seconds=seconds,
                score=tested[lane][0],
                val_score=best[lane],
                null_rate=tested[lane][1],
            )
            for lane in range(len(lanes))
        ]

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[Weights]:
        """The weights after so many steps, without checks."""
        lanes = BlockLanes(runs, self.device, self.dtype, self.mixed)
        lanes.advance(steps)
        return [lanes.weights(lane) for lane in range(len(lanes))]


def score(lanes: BlockLanes, examples_T: Examples) -> list[tuple[float, float]]:
    """Accuracy of each lane on its task's examples, and the share it answered with NULL.

    Args:
        examples_T: int32 [T, n_examples, 2l + 2].
    """
    examples = torch.from_numpy(examples_T).long().to(lanes.device)
    null = lanes.cell.m
    counts = torch.zeros(2, len(lanes), dtype=torch.int64, device=lanes.device)
    with torch.no_grad():
        for part in examples.split(AT_ONCE, 1):
            answers_LB = lanes.logits(part).argmax(2)
            counts[0] += (answers_LB == part[lanes.task_L, :, -1]).sum(1)
            counts[1] += (answers_LB == null).sum(1)
    n = examples.shape[1]
    return [(right / n, nulls / n) for right, nulls in counts.T.tolist()]
