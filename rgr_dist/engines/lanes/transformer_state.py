"""Transformer blocks that train side by side: their parameters, their batches, the step.

Lanes share a cell. They may differ in seed and in how W_Q and W_K are split: lanes of one
(h, d_k) stand together, and only their attention is computed by such groups. Autograd's
gradients of the summed loss are each lane's own, for lanes share no parameter.

The attention is that of ``models.transformer``, in an order that costs less: the embeddings
are frozen, so the norm of the input Z is no part of the gradient; and since one position
asks, a head's keys and values are applied to one vector each instead of n of them,
s = (W_K q) . Z and v = (p Z) W_V.

Shapes in names: L lanes, T tasks, U tables, B examples of a batch, n positions, d = d_model,
h heads, k = d_k, V = m + 1 answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, gelu, softmax

from rgr_dist.engines.engine import BlockWeights
from rgr_dist.engines.lanes.capture import Repeated
from rgr_dist.models.transformer import norm
from rgr_dist.problem.matching_task import MatchingTask, initial_block
from rgr_dist.study.study import Run

BATCHES = 32
"""Batches of each task that are drawn and sent to the device at once."""
SHARED = ("W_V", "W_O", "W_1", "b_1", "W_2", "b_2")
"""Parameters whose shape does not depend on the split."""


@dataclass(frozen=True)
class Group:
    """Lanes of one (h, d_k), which stand together."""

    lanes: slice
    h: int
    d_k: int


class BlockLanes:
    """Training state of several transformer blocks that advance together.

    Attributes:
        places: which of the runs each lane trains; lanes are ordered by (h, d_k).
        parameters: W_V to b_2 of all lanes, [L, …], then W_Q and W_K of each group.
        names, rows: the name of each, and which lanes it is of.
    """

    def __init__(
        self, runs: Sequence[Run], device: torch.device, dtype: torch.dtype, mixed: bool
    ) -> None:
        self.cell, self.device, self.mixed, self.steps = runs[0].cell, device, mixed, 0
        if any(run.cell != self.cell for run in runs):
            raise ValueError("lanes of one program must share the cell")
        self.places = sorted(range(len(runs)), key=lambda i: (runs[i].h, runs[i].d_k))
        lanes = [runs[i] for i in self.places]
        splits = [(run.h, run.d_k) for run in lanes]
        self.groups = []
        for h, d_k in dict.fromkeys(splits):
            first = splits.index((h, d_k))
            self.groups.append(Group(slice(first, first + splits.count((h, d_k))), h, d_k))

        seeds = list(dict.fromkeys(run.seed for run in lanes))
        self.tasks = [MatchingTask.of(self.cell, seed) for seed in seeds]
        self.task_L = torch.tensor([seeds.index(run.seed) for run in lanes], device=device)
        tables = [self.tasks[0].table]  # a table from a file is the same at every seed
        if any(not np.array_equal(task.table, tables[0]) for task in self.tasks):
            tables = [task.table for task in self.tasks]
        self.E_UVd = torch.from_numpy(np.stack(tables)).to(device, dtype)
        alone = len(tables) == 1
        self.E_LVd = self.E_UVd.expand(len(lanes), -1, -1) if alone else self.E_UVd[self.task_L]
        first_T = torch.arange(len(self.tasks), device=device) * (0 if alone else len(tables[0]))
        self.first_row_T = first_T.view(-1, 1, 1)

        start = [initial_block(run) for run in lanes]

        def stacked(name: str, of: slice) -> Tensor:
            values = np.stack([theta[name] for theta in start[of]])
            return torch.from_numpy(values).to(device, dtype).requires_grad_()

        self.names = [*SHARED, *("W_Q", "W_K") * len(self.groups)]
        self.rows = [slice(0, len(lanes))] * len(SHARED)
        self.rows += [group.lanes for group in self.groups for _ in ("W_Q", "W_K")]
        self.parameters = [stacked(*pair) for pair in zip(self.names, self.rows, strict=True)]
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.adamw_steps = torch.zeros((), device=device)  # float32, as torch.optim keeps it

        batch = self.tasks[0].training_batches(0, 1).shape[1:]
        shape = (BATCHES, len(self.tasks), *batch)
        self.block = torch.zeros(shape, dtype=torch.int64, device=device)
        self.cursor = torch.zeros(1, dtype=torch.int64, device=device)
        self.repeated = Repeated(device)

    def __len__(self) -> int:
        return len(self.places)

    def advance(self, steps: int) -> None:
        """Take so many training steps in every lane."""
        for done in range(0, steps, BATCHES):
            count = min(BATCHES, steps - done)
            drawn = [task.training_batches(self.steps, count) for task in self.tasks]
            self.block[:count].copy_(torch.from_numpy(np.stack(drawn, 1)))
            self.cursor.zero_()
            for _ in range(count):
                self.repeated(self._step)
            self.steps += count

    def _step(self) -> None:
        examples = torch.index_select(self.block, 0, self.cursor)[0]
        self.cursor.add_(1)
        labels_LB = examples[self.task_L, :, -1]
        with torch.autocast(self.device.type, torch.bfloat16, self.mixed, cache_enabled=False):
            logits_LBV = self.logits(examples)
            loss = cross_entropy(logits_LBV.flatten(0, 1), labels_LB.flatten(), reduction="sum")
        gradients = torch.autograd.grad(loss / labels_LB.shape[1], self.parameters)
        self.adamw_steps.add_(1)
        with torch.no_grad():
            torch._fused_adamw_(
                self.parameters,
                [gradient.contiguous() for gradient in gradients],
                *(self.first, self.second, []),
                [self.adamw_steps] * len(self.parameters),
                lr=self.cell.training.learning_rate,
                beta1=0.9,
                beta2=0.999,
                eps=1e-8,
                weight_decay=self.cell.training.weight_decay or 0.0,
                amsgrad=False,
                maximize=False,
            )

    def logits(self, examples_TB: Tensor) -> Tensor:
        """Logits of every lane on its task's examples, [L, B, V].

        Args:
            examples_TB: int64 [T, B, 2l + 2].
        """
        W_V, W_O, W_1, b_1, W_2, b_2 = self.parameters[: len(SHARED)]
        X_TBnd = self._inputs(examples_TB)
        Z_TBnd, query_LBd = norm(X_TBnd), X_TBnd[:, :, -1][self.task_L]
        halves, heads = iter(self.parameters[len(SHARED) :]), []
        for group, W_Q, W_K in zip(self.groups, halves, halves, strict=True):
            Z = Z_TBnd[self.task_L[group.lanes]]
            heads.append(_attend(Z, W_Q, W_K, W_V[group.lanes], group.h))
        attended_LBd = torch.baddbmm(query_LBd, torch.cat(heads), W_O)
        hidden = gelu(torch.baddbmm(b_1.unsqueeze(1), norm(attended_LBd), W_1))
        last_LBd = attended_LBd + torch.baddbmm(b_2.unsqueeze(1), hidden, W_2)
        return torch.bmm(last_LBd, self.E_LVd.transpose(1, 2))

    def _inputs(self, examples_TB: Tensor) -> Tensor:
        """``models.transformer.superpose`` of every task, [T, B, n, d]."""
        rows_TBi = examples_TB[..., :-1] + self.first_row_T
        E_TBid = self.E_UVd.flatten(0, 1).index_select(0, rows_TBi.flatten())
        E_TBid = E_TBid.view(*rows_TBi.shape, -1)
        slots = E_TBid[:, :, 1::2] + E_TBid[:, :, 2::2]
        null = self.E_UVd[:, None, -1:].expand(*slots.shape[:2], -1, -1)
        return torch.cat([slots, null, E_TBid[:, :, :1]], 2)

    def is_finite(self) -> list[bool]:
        """Whether every parameter of each lane is a number."""
        finite = torch.ones(len(self), dtype=torch.bool, device=self.device)
        for p, rows in zip(self.parameters, self.rows, strict=True):
            finite[rows] &= torch.isfinite(p).flatten(1).all(1)
        return [bool(value) for value in finite.tolist()]

    def weights(self, lane: int) -> BlockWeights:
        """The parameters of a lane, by name."""
        own = {}
        for name, p, rows in zip(self.names, self.parameters, self.rows, strict=True):
            if rows.start <= lane < rows.stop:
                own[name] = p[lane - rows.start].detach().cpu().numpy().copy()
        return own


def _attend(Z_LBnd: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, h: int) -> Tensor:
    """What the heads of some lanes, which share h, bring to the query: [L, B, d]."""
    L, B, n, d = Z_LBnd.shape
    k = W_Q.shape[2] // h
    Z = Z_LBnd.view(L * B, n, d)

    def by_head(W_LdD: Tensor) -> Tensor:
        return W_LdD.view(L, d, h, -1).transpose(1, 2).flatten(0, 1)

    def per_head(X_LBhe: Tensor) -> Tensor:
        return X_LBhe.transpose(1, 2).reshape(L * h, B, -1)

    def per_example(X: Tensor) -> Tensor:
        return X.view(L, h, B, -1).transpose(1, 2)

    Q = torch.bmm(Z_LBnd[:, :, -1], W_Q).view(L, B, h, k)
    R = torch.bmm(per_head(Q), by_head(W_K).transpose(1, 2))
    S = torch.bmm(per_example(R).reshape(L * B, h, d), Z.transpose(1, 2)) * k**-0.5
    mixed = torch.bmm(softmax(S, -1), Z).view(L, B, h, d)
    heads = torch.bmm(per_head(mixed), by_head(W_V))
    return per_example(heads).reshape(L, B, d)
