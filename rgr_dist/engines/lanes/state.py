"""The training state of lanes that advance together, and the step that moves them.

What depends on the model is in ``gradients``. A step works on buffers that are allocated once, and
reads from the device which step it is, so that it can be captured as a CUDA graph.

Shapes in names: L lanes, l items of a context, d = d_model, h heads, k = d_k, D = h * k.
Projections are kept transposed, [L, D, d], so that a head's queries are a block [k, l].

On a CPU a lane's numbers do not depend on its neighbours. A kernel may round differently in its
vectorised body and its scalar tail, on aligned and unaligned rows, or in short and long sums; so
l, d and k are padded with zeros to whole registers. The padding adds exact zeros and receives a
gradient of exactly zero, which AdamW leaves at zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from rgr_dist.engines.api import Weights, padded
from rgr_dist.engines.lanes.adamw import AdamW
from rgr_dist.engines.lanes.batches import BLOCK, REGISTER, Batches
from rgr_dist.engines.lanes.capture import Repeated
from rgr_dist.engines.lanes.gradients import HEADS, LOSSES
from rgr_dist.engines.schedule import learning_rates
from rgr_dist.engines.start import initial_weights
from rgr_dist.problem.edge_task import Task
from rgr_dist.study.run import Run

WIDTHS = 8
"""d_k is padded to a multiple of this."""


class Layer(NamedTuple):
    """One lane, to be scored: embeddings, projections [h * k, d], threshold, heads.

    Attributes:
        combine: combines the scores of all heads into one, [h, n, l, l] to [n, l, l].
    """

    X_md: Tensor
    W_Q: Tensor
    W_K: Tensor
    tau: Tensor
    h: int
    combine: Callable[[Tensor], Tensor]

    def project(self) -> tuple[Tensor, Tensor]:
        """Queries and keys of all items, each [h, m, k]."""
        Q, K = (
            (self.X_md @ W.T).unflatten(1, (self.h, -1)).transpose(0, 1).contiguous()
            for W in (self.W_Q, self.W_K)
        )
        return Q, K


class Lanes:
    """Training state of several runs that advance together.

    Attributes:
        indices: which of the runs each lane trains.
        width: what d_k is padded to.
        parameters, gradients: W_Q and W_K, [L, D, d], and tau in the first column of [L, 16].

    Raises:
        ValueError: the runs differ in more than their seed.
    """

    def __init__(self, runs: Sequence[Run], device: torch.device, dtype: torch.dtype) -> None:
        self.cell, self.h, self.d_k = runs[0].cell, runs[0].h, runs[0].d_k
        if any((run.cell, run.h, run.d_k) != (self.cell, self.h, self.d_k) for run in runs):
            raise ValueError("lanes of one program must share the cell, h and d_k")
        self.indices, self.width = list(range(len(runs))), padded(self.d_k, WIDTHS)
        by_seed = {run.seed: Task.of(run.cell, run.seed) for run in runs}
        self.tasks = [by_seed[run.seed] for run in runs]
        self.batches = Batches(self.tasks, device, dtype)
        self.device = device
        self.steps = 0

        W_QK = torch.zeros(2, len(runs), self.h, self.width, self.batches.d, dtype=dtype)
        tau = torch.zeros(len(runs), REGISTER, dtype=dtype)
        for lane, run in enumerate(runs):
            *projections, tau[lane, 0] = initial_weights(run)
            for half, W in zip(W_QK, projections, strict=True):
                rows = torch.from_numpy(W.T.copy()).view(self.h, self.d_k, -1)
                half[lane, :, : self.d_k, : self.cell.d_model] = rows
        self.parameters = [W.flatten(1, 2).to(device) for W in W_QK] + [tau.to(device)]
        self.adamw = AdamW(self.parameters, self.cell.training)
        self._allocate()

    def __len__(self) -> int:
        return len(self.indices)

    def _allocate(self) -> None:
        """Make buffers for the current lanes, and a step that has not been captured yet."""
        L, length, new = len(self), self.batches.length, self.parameters[0].new_empty
        self.queries_and_keys = [new(L, self.h * self.width, length) for _ in range(2)]
        self.their_gradients = [new(L, self.h * self.width, length) for _ in range(2)]
        self.S_Lhll = new(L, self.h, length, length)
        self.heads = HEADS[self.cell.record.heads](self.batches, self.h, self.d_k)
        self.loss = LOSSES[self.cell.record.loss](self.batches)
        self.gradients = [torch.zeros_like(p) for p in self.parameters]
        self.repeated = Repeated(self.device)

    def advance(self, steps: int) -> None:
        """Take ``steps`` training steps in every lane."""
        for done in range(0, steps, BLOCK):
            count = min(BLOCK, steps - done)
            self.batches.load(self.steps, count)
            for rate in learning_rates(self.cell.training, self.steps, count):
                self.adamw.take_rate(rate)
                self.repeated(self._step)
            self.steps += count

    def _step(self) -> None:
        self.batches.advance()
        X_Lld = self.batches.X_Lld
        for W, P_LDl in zip(self.parameters[:2], self.queries_and_keys, strict=True):
            torch.bmm(W, X_Lld.transpose(1, 2), out=P_LDl)
        by_head = (len(self) * self.h, self.width, self.batches.length)
        Q, K = (P.view(by_head) for P in self.queries_and_keys)
        S = self.S_Lhll.flatten(0, 1)
        torch.bmm(Q.transpose(1, 2), K, out=S)
        S_Lll = self.heads.forward(self.S_Lhll)
        tau_L, tau_gradient_L = self.parameters[2][:, 0], self.gradients[2][:, 0]
        G_Lll = self.loss.grad_scores(S_Lll, tau_L, tau_gradient_L)
        self.heads.backward(G_Lll, self.S_Lhll)  # S is dS from here on
        dQ, dK = (P.view(by_head) for P in self.their_gradients)
        torch.bmm(K, S.transpose(1, 2), out=dQ)
        torch.bmm(Q, S, out=dK)
        for P_LDl, gradient in zip(self.their_gradients, self.gradients[:2], strict=True):
            torch.bmm(P_LDl, X_Lld, out=gradient)
        self.adamw.step(self.parameters, self.gradients)

    def keep(self, lanes: Sequence[int]) -> None:
        """Drop every lane that is not listed."""
        index = torch.tensor(lanes, device=self.device)
        self.batches.keep(lanes)
        self.indices = [self.indices[lane] for lane in lanes]
        self.tasks = self.batches.tasks
        self.parameters = [p.index_select(0, index) for p in self.parameters]
        self.adamw.keep(index)
        self._allocate()

    def is_finite(self) -> list[bool]:
        """Whether every parameter of each lane is finite."""
        finite = [torch.isfinite(p).flatten(1).all(1) for p in self.parameters]
        return [bool(value) for value in torch.stack(finite).all(0).tolist()]

    def tau(self, lane: int) -> float:
        """The learned threshold of a lane."""
        return float(self.parameters[2][lane, 0])

    def weights(self, lane: int) -> Weights:
        """W_Q, W_K and tau of a lane, without padding."""
        W_Q, W_K = (
            W[lane].unflatten(0, (self.h, -1))[:, : self.d_k, : self.cell.d_model]
            for W in self.parameters[:2]
        )
        kept = {"W_Q": W_Q.flatten(0, 1).T, "W_K": W_K.flatten(0, 1).T}
        kept["tau"] = self.parameters[2][lane, 0]
        return {name: value.contiguous().cpu().numpy().copy() for name, value in kept.items()}

    def layer(self, lane: int) -> Layer:
        """A lane, to be scored."""
        W_Q, W_K, tau = (p[lane] for p in self.parameters)
        return Layer(self.batches.X_Lmd[lane], W_Q, W_K, tau[0], self.h, self.heads.combine)
