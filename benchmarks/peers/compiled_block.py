"""The transformer's training by torch.compile: a step of all lanes, its gradient and AdamW."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from peers.compiled_edges import adamw
from rgr_dist.models.transformer import block_logits, superpose
from rgr_dist.problem.matching_task import MatchingTask, initial_block
from rgr_dist.study.run import Run

NAMES = ("W_Q", "W_K", "W_V", "W_O", "W_1", "b_1", "W_2", "b_2")


class CompiledBlocks:
    """Lanes of one (cell, h, d_k) that advance together."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.tasks = [MatchingTask.of(run.cell, run.seed) for run in runs]
        tables = np.stack([task.table for task in self.tasks])
        self.tables = torch.from_numpy(tables).float()
        blocks = [initial_block(run) for run in runs]
        stacked = [np.stack([block[name] for block in blocks]) for name in NAMES]
        theta = tuple(torch.from_numpy(one).float() for one in stacked)
        self.state = theta + tuple(torch.zeros_like(part) for part in theta * 2)
        self.steps = 0
        step = _step_of(runs[0])
        step.__code__ = step.__code__.replace()  # torch compiles a code object at most eight times
        self._step = torch.compile(step, dynamic=False)

    def advance(self, steps: int) -> None:
        """Take so many steps in every lane."""
        drawn = np.stack([task.training_batches(self.steps, steps) for task in self.tasks], 1)
        for examples in torch.from_numpy(drawn).long():
            self.steps += 1
            powers = torch.tensor([1 - 0.9**self.steps, 1 - 0.999**self.steps])
            self.state = self._step(self.state, self.tables, examples, powers)

    def weights(self, lane: int) -> np.ndarray:
        """[W_Q | W_K] of a lane."""
        return torch.cat([self.state[0][lane], self.state[1][lane]], 1).numpy()


def _step_of(run: Run):
    h, training = run.h, run.cell.training

    def loss(theta: tuple[Tensor, ...], E_Vd: Tensor, examples: Tensor) -> Tensor:
        named = dict(zip(NAMES, theta, strict=True))
        logits = block_logits(superpose(E_Vd, examples), E_Vd, named, h)
        return torch.nn.functional.cross_entropy(logits, examples[:, -1])

    gradient_of = torch.func.vmap(torch.func.grad(loss))

    def step(
        state: tuple[Tensor, ...], tables: Tensor, examples: Tensor, powers: Tensor
    ) -> tuple[Tensor, ...]:
        gradient = gradient_of(state[: len(NAMES)], tables, examples)
        return adamw(state, gradient, powers, training.learning_rate, training.weight_decay or 0.0)

    return step
