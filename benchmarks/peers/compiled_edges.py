"""The training of a layer of edges by torch.compile: a step of all lanes, gradient and AdamW.

What somebody would write who prefers not to write out gradients: the loss as in the paper,
differentiated and compiled by PyTorch, which needs a C++ compiler for that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from rgr_dist.engines.api import BETA_1, BETA_2, EPSILON
from rgr_dist.problem.edge_task import Task, initial_projections
from rgr_dist.study.run import Run

State = tuple[Tensor, ...]


class CompiledLanes:
    """Lanes of one (cell, h, d_k) that advance together."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.tasks = [Task.of(run.cell, run.seed) for run in runs]
        self.X = torch.from_numpy(np.stack([task.embedding for task in self.tasks])).float()
        self.targets = torch.from_numpy(np.stack([task.targets for task in self.tasks]))
        is_value = runs[0].cell.record.loss == "messages"
        V = [task.messages for task in self.tasks] if is_value else []
        self.V = torch.from_numpy(np.stack(V)).float() if is_value else self.X
        both = np.stack([np.concatenate(initial_projections(run), axis=1) for run in runs])
        theta = torch.from_numpy(both).float(), torch.zeros(len(runs))
        self.state = (*theta, *(torch.zeros_like(part) for part in theta * 2))
        self.steps = 0
        step = _step_of(runs[0])
        step.__code__ = step.__code__.replace()  # torch compiles a code object at most eight times
        self._step = torch.compile(step, dynamic=False)

    def advance(self, steps: int) -> None:
        """Take so many steps in every lane."""
        drawn = np.stack([task.training_contexts(self.steps, steps) for task in self.tasks], 1)
        for nodes in torch.from_numpy(drawn).long():
            self.steps += 1
            powers = torch.tensor([1 - BETA_1**self.steps, 1 - BETA_2**self.steps])
            self.state = self._step(self.state, self.X, self.V, self.targets, nodes, powers)

    def weights(self, lane: int) -> np.ndarray:
        """[W_Q | W_K] of a lane."""
        return self.state[0][lane].numpy()


def adamw(state: State, gradient: State, powers: Tensor, rate: float, decay: float = 0.0) -> State:
    """Parameters, first and second moments after a step of AdamW.

    Args:
        powers: 1 - beta^t of both betas at this step.
    """
    n = len(gradient)
    theta, first, second = state[:n], state[n : 2 * n], state[2 * n :]
    first = tuple(m + (1 - BETA_1) * (g - m) for m, g in zip(first, gradient, strict=True))
    second = tuple(BETA_2 * v + (1 - BETA_2) * g * g for v, g in zip(second, gradient, strict=True))
    size, root = rate / powers[0], powers[1].rsqrt()
    theta = tuple(
        w * (1 - rate * decay) - size * m / (v.sqrt() * root + EPSILON)
        for w, m, v in zip(theta, first, second, strict=True)
    )
    return theta + first + second


def _step_of(run: Run):
    h, d_k, length = run.h, run.d_k, run.cell.context.length
    alpha, rate = run.cell.training.sharpness, run.cell.training.learning_rate
    record = run.cell.record

    def loss(W_LdD: Tensor, tau_L: Tensor, X_Lld: Tensor, V_Lld: Tensor, y_Lll: Tensor) -> Tensor:
        Q, K = (X_Lld @ W_LdD).unflatten(2, (2, h, d_k)).permute(2, 0, 3, 1, 4)
        S_Lhll = Q @ K.mT
        if record.loss == "messages":
            errors = (S_Lhll.amax(1) @ V_Lld - y_Lll.float() @ V_Lld).square().sum(-1)
            counts = y_Lll.any(-1)
            each = errors.where(counts, 0.0).sum(1) / counts.sum(1).clamp(min=1)
            return each.sum()
        S_Lll = S_Lhll.amax(1) if record.heads == "max" else (S_Lhll / d_k**0.5).softmax(-1).sum(1)
        z = alpha * (S_Lll - tau_L[:, None, None])
        each = torch.where(y_Lll, (length - 1) * softplus(-z), softplus(z))
        return each.mean((1, 2)).sum()

    def step(
        state: State,
        X_Lmd: Tensor,
        V_Lmd: Tensor,
        targets_Lm: Tensor,
        nodes_Ll: Tensor,
        powers: Tensor,
    ) -> State:
        lanes = torch.arange(len(nodes_Ll))[:, None]
        y_Lll = targets_Lm[lanes, nodes_Ll][:, :, None] == nodes_Ll[:, None, :]
        given = X_Lmd[lanes, nodes_Ll], V_Lmd[lanes, nodes_Ll], y_Lll
        gradient = torch.func.grad(loss, argnums=(0, 1))(*state[:2], *given)
        return adamw(state, gradient, powers, rate)

    return step
