"""The training state of lanes that advance together, and the step that moves them.

What a model makes of the scores of its heads, and the gradient of that, stands in
``lanes_pulls``. A step works on buffers that are allocated once, and reads from the device
which step it is, so that it can be captured as a CUDA graph.

Shapes in names: L lanes, l items of a context, d = d_model, h heads, k = d_k, D = h * k.
Projections are kept transposed, [L, D, d], so that a head's queries are a block [k, l].

On a CPU a lane's numbers do not depend on its neighbours, nor on how much wider they are. A
kernel may round differently in its vectorised body and its scalar tail, on aligned and
unaligned rows, or in short and long sums; so l, d and k are padded with zeros to whole
registers. The padding adds exact zeros and receives a gradient of exactly zero, which AdamW
leaves at zero. That a product with more such zeros has the same bits depends on the library:
MKL's have, as tested; with another, a lane beside wider ones may differ from a lone one by
rounding, while lanes of equal d_k may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rgr_dist.engines.lanes.capture import Repeated
from rgr_dist.engines.lanes.checks import Checks
from rgr_dist.engines.lanes.contexts import BLOCK, REGISTER, WIDTHS, ContextFeed, padded
from rgr_dist.engines.lanes.pulls import make_pull
from rgr_dist.problem.edge_task import Task, initial_projections
from rgr_dist.study.study import Run

ADAMW: dict[str, Any] = {
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "weight_decay": 0.0,
    "amsgrad": False,
    "maximize": False,
}


class Lanes:
    """Training state of several runs that advance together.

    Attributes:
        places: which of the runs each lane trains.
        widths: d_k of each lane; ``width`` is what all are padded to.
        parameters, gradients, first, second: W_Q and W_K, [L, D, d], and tau in the first
            column of [L, 16]; their gradients and AdamW moments.
    """

    def __init__(self, runs: Sequence[Run], device: torch.device, dtype: torch.dtype) -> None:
        self.cell, self.h = runs[0].cell, runs[0].h
        if any((run.cell, run.h) != (self.cell, self.h) for run in runs):
            raise ValueError("lanes of one program must share the cell and h")
        self.places, self.widths = list(range(len(runs))), [run.d_k for run in runs]
        self.width = padded(max(self.widths), WIDTHS)
        by_seed = {run.seed: Task.of(run.cell, run.seed) for run in runs}
        self.tasks = [by_seed[run.seed] for run in runs]
        self.contexts = ContextFeed(self.tasks, device, dtype)
        self.device = device
        self.steps = 0

        W_QK = torch.zeros(2, len(runs), self.h, self.width, self.contexts.d, dtype=dtype)
        for lane, run in enumerate(runs):
            for half, W in zip(W_QK, initial_projections(run), strict=True):
                rows = torch.from_numpy(W.T.copy()).view(self.h, run.d_k, -1)
                half[lane, :, : run.d_k, : self.cell.d_model] = rows
        tau = torch.zeros(len(runs), REGISTER, dtype=dtype)
        self.parameters = [W.flatten(1, 2).to(device) for W in W_QK] + [tau.to(device)]
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.adamw_steps = torch.zeros((), device=device)  # float32, as torch.optim keeps it
        self._allocate()

    def __len__(self) -> int:
        return len(self.places)

    def _allocate(self) -> None:
        """Scratch for the present lanes, and a step that has not been captured."""
        L, length, new = len(self), self.contexts.length, self.parameters[0].new_empty
        self.queries_and_keys = [new(L, self.h * self.width, length) for _ in range(2)]
        self.their_gradients = [new(L, self.h * self.width, length) for _ in range(2)]
        self.S_Lhll = new(L, self.h, length, length)
        self.heads, self.demand = make_pull(self)
        self.gradients = [torch.zeros_like(p) for p in self.parameters]
        self.repeated = Repeated(self.device)

    def advance(self, steps: int) -> None:
        """Take so many training steps in every lane."""
        for done in range(0, steps, BLOCK):
            count = min(BLOCK, steps - done)
            self.contexts.load(self.steps, count)
            for _ in range(count):
                self.repeated(self._step)
            self.steps += count

    def _step(self) -> None:
        self.contexts.advance()
        X_Lld = self.contexts.X_Lld
        for W, P_LDl in zip(self.parameters[:2], self.queries_and_keys, strict=True):
            torch.bmm(W, X_Lld.transpose(1, 2), out=P_LDl)
        by_head = (len(self) * self.h, self.width, self.contexts.length)
        Q, K = (P.view(by_head) for P in self.queries_and_keys)
        S = self.S_Lhll.flatten(0, 1)
        torch.bmm(Q.transpose(1, 2), K, out=S)
        combined = self.heads.combine(self.S_Lhll)
        pull = self.demand.pull(combined, self.parameters[2][:, 0], self.gradients[2][:, 0])
        self.heads.spread(pull, self.S_Lhll)  # S is dS from here on
        dQ, dK = (P.view(by_head) for P in self.their_gradients)
        torch.bmm(K, S.transpose(1, 2), out=dQ)
        torch.bmm(Q, S, out=dK)
        for P_LDl, gradient in zip(self.their_gradients, self.gradients[:2], strict=True):
            torch.bmm(P_LDl, X_Lld, out=gradient)
        self._adamw()

    def _adamw(self) -> None:
        """AdamW without decay, in the one pass that torch.optim makes if told to fuse."""
        self.adamw_steps.add_(1)
        torch._fused_adamw_(
            *(self.parameters, self.gradients, self.first, self.second, []),
            [self.adamw_steps] * len(self.parameters),
            lr=self.cell.training.learning_rate,
            **ADAMW,
        )

    def keep(self, lanes: Sequence[int]) -> None:
        """Drop every lane that is not listed, and the columns that only those used."""
        index = torch.tensor(lanes, device=self.device)
        self.contexts.keep(lanes)
        self.places = [self.places[lane] for lane in lanes]
        self.widths = [self.widths[lane] for lane in lanes]
        self.tasks = self.contexts.tasks
        width = padded(max(self.widths), WIDTHS)
        for tensors in (self.parameters, self.first, self.second):
            for half in (0, 1):
                W_Lhkd = tensors[half].unflatten(1, (self.h, -1))[:, :, :width]
                tensors[half] = W_Lhkd.index_select(0, index).flatten(1, 2)
            tensors[2] = tensors[2].index_select(0, index)
        self.width = width
        self._allocate()

    def by_lane(self, tensors: Sequence[Tensor]) -> Tensor:
        """W_Q | W_K by rows of d_model, then tau: [L, P]; too wide for the narrower lanes."""
        halves = []
        for W_LDd in tensors[:2]:
            W_Lhkd = W_LDd.unflatten(1, (self.h, -1))[:, :, : max(self.widths)]
            halves.append(W_Lhkd.flatten(1, 2)[..., : self.cell.d_model].transpose(1, 2))
        return torch.cat([torch.cat(halves, 2).flatten(1), tensors[2][:, :1]], 1)

    @property
    def size(self) -> int:
        """Where tau stands in a row of ``theta``."""
        return 2 * self.cell.d_model * self.h * max(self.widths)

    @property
    def theta(self) -> Tensor:
        """A copy of the parameters, by lane."""
        return self.by_lane(self.parameters)

    @property
    def gradient(self) -> Tensor:
        """A copy of the last gradient, by lane."""
        return self.by_lane(self.gradients)

    def projections(self, theta: Tensor) -> Tensor:
        """[W_Q | W_K] of every lane, a view [L, d, 2D] of what ``by_lane`` returned."""
        return theta[:, : self.size].view(len(theta), self.cell.d_model, -1)

    def is_finite(self) -> list[bool]:
        """Whether every parameter of each lane is a number."""
        finite = [torch.isfinite(p).flatten(1).all(1) for p in self.parameters]
        return [bool(value) for value in torch.stack(finite).all(0).tolist()]

    def tau(self, lane: int) -> float:
        """The learned threshold of a lane."""
        return float(self.parameters[2][lane, 0])

    def weights(self, lane: int) -> tuple[Tensor, Tensor]:
        """W_Q and W_K of a lane, each [d, D], with its own d_k."""
        W_Q, W_K = (
            W[lane].unflatten(0, (self.h, -1))[:, : self.widths[lane], : self.cell.d_model]
            for W in self.parameters[:2]
        )
        return W_Q.flatten(0, 1).T.contiguous(), W_K.flatten(0, 1).T.contiguous()

    def score(self, lane: int, contexts: npt.NDArray[np.int32]) -> float:
        """Micro-F1 of a lane over a set of contexts."""
        return Checks(self).score(lane, contexts)
