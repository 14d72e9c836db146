"""Transformer blocks that train side by side in one torch program, on any device.

Every lane trains for the same number of steps (Sec. 7.3). On a GPU the step is captured as a
CUDA graph and computes in mixed precision, bfloat16 products of float32 parameters.

Autograd's gradients of the summed loss are each lane's own, because lanes share no parameter.

The attention is that of ``models.transformer``, in an order that costs less: the embeddings
are frozen, so no gradient goes through Z, the norm of the input; and since only one position
has a query, W_K and W_V of a head are each applied to one vector instead of n:
s = (W_K q) . Z and v = (p Z) W_V.

Shapes in names: L lanes, T tasks, U tables, B examples of a batch, n positions, d = d_model,
h heads, k = d_k, V = m + 1 answers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, gelu, softmax

from rgr_dist.engines.api import Engine, Outcome, Weights, trained_apart
from rgr_dist.engines.lanes.adamw import AdamW
from rgr_dist.engines.lanes.capture import Repeated
from rgr_dist.engines.schedule import learning_rates
from rgr_dist.models.transformer import norm
from rgr_dist.problem.matching_task import Examples, MatchingTask, initial_block
from rgr_dist.study.run import Run

AT_ONCE = 256
"""Examples of each lane scored at once; a constant, so that no score depends on other lanes."""
BATCHES = 32
"""Batches of each task that are drawn and sent to the device at once."""
NAMES = ("W_V", "W_O", "W_1", "b_1", "W_2", "b_2", "W_Q", "W_K")


class BlockLanes:
    """Training state of several transformer blocks that advance together.

    Attributes:
        tasks: one for each seed.
        task_L: which of the tasks each lane trains on.
        parameters: of all lanes, [L, …], in the order of ``NAMES``.

    Raises:
        ValueError: the runs differ in more than their seed.
    """

    def __init__(
        self, runs: Sequence[Run], device: torch.device, dtype: torch.dtype, mixed: bool
    ) -> None:
        self.cell, self.h, self.d_k = runs[0].cell, runs[0].h, runs[0].d_k
        if any((run.cell, run.h, run.d_k) != (self.cell, self.h, self.d_k) for run in runs):
            raise ValueError("lanes of one program must share the cell, h and d_k")
        self.device, self.mixed, self.steps = device, mixed, 0

        seeds = list(dict.fromkeys(run.seed for run in runs))
        self.tasks = [MatchingTask.of(self.cell, seed) for seed in seeds]
        self.task_L = torch.tensor([seeds.index(run.seed) for run in runs], device=device)
        tables = [self.tasks[0].table]  # a table from a file is the same at every seed
        if any(not np.array_equal(task.table, tables[0]) for task in self.tasks):
            tables = [task.table for task in self.tasks]
        self.E_UVd = torch.from_numpy(np.stack(tables)).to(device, dtype)
        alone = len(tables) == 1
        self.E_LVd = self.E_UVd.expand(len(runs), -1, -1) if alone else self.E_UVd[self.task_L]
        first_T = torch.arange(len(self.tasks), device=device) * (0 if alone else len(tables[0]))
        self.first_row_T = first_T.view(-1, 1, 1)

        blocks = [initial_block(run) for run in runs]
        self.parameters = []
        for name in NAMES:
            stacked = torch.from_numpy(np.stack([block[name] for block in blocks]))
            self.parameters.append(stacked.to(device, dtype).requires_grad_())
        self.adamw = AdamW(self.parameters, self.cell.training)

        batch = self.tasks[0].training_batches(0, 1).shape[1:]
        shape = (BATCHES, len(self.tasks), *batch)
        self.block = torch.zeros(shape, dtype=torch.int64, device=device)
        self.cursor = torch.zeros(1, dtype=torch.int64, device=device)
        self.repeated = Repeated(device)

    def __len__(self) -> int:
        return len(self.task_L)

    def advance(self, steps: int) -> None:
        """Take ``steps`` training steps in every lane."""
        for done in range(0, steps, BATCHES):
            count = min(BATCHES, steps - done)
            drawn = [task.training_batches(self.steps, count) for task in self.tasks]
            self.block[:count].copy_(torch.from_numpy(np.stack(drawn, 1)))
            self.cursor.zero_()
            for rate in learning_rates(self.cell.training, self.steps, count):
                self.adamw.take_rate(rate)
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
        with torch.no_grad():
            self.adamw.step(self.parameters, [gradient.contiguous() for gradient in gradients])

    def logits(self, examples_TB: Tensor) -> Tensor:
        """Logits of every lane on its task's examples, [L, B, V].

        Args:
            examples_TB: int64 [T, B, 2l + 2].
        """
        W_V, W_O, W_1, b_1, W_2, b_2, W_Q, W_K = self.parameters
        X_TBnd = self._inputs(examples_TB)
        Z_LBnd, query_LBd = norm(X_TBnd)[self.task_L], X_TBnd[:, :, -1][self.task_L]
        attended_LBd = torch.baddbmm(query_LBd, _attend(Z_LBnd, W_Q, W_K, W_V, self.h), W_O)
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
        """Whether every parameter of each lane is finite."""
        finite = [torch.isfinite(p).flatten(1).all(1) for p in self.parameters]
        return [bool(value) for value in torch.stack(finite).all(0).tolist()]

    def weights(self, lane: int) -> Weights:
        """The parameters of a lane, by name."""
        return {
            name: p[lane].detach().cpu().numpy().copy()
            for name, p in zip(NAMES, self.parameters, strict=True)
        }


def _attend(Z_LBnd: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, h: int) -> Tensor:
    """What the heads of each lane add at the query's position, [L, B, d]."""
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


class TransformerLanes(Engine):
    """Batched training in torch.

    Args:
        mixed: whether to train in mixed precision; by default only on a GPU.
    """

    def __init__(
        self, device: str = "cpu", dtype: torch.dtype = torch.float32, mixed: bool | None = None
    ) -> None:
        self.device, self.dtype = torch.device(device), dtype
        self.mixed = self.device.type == "cuda" if mixed is None else mixed
        self.name = "lanes, bfloat16" if self.mixed else "lanes"

    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        """Train every run to the end of each budget and of its own limit, separately."""
        apart = [self._train([run.with_limit(steps) for run in runs]) for steps in budgets]
        return [trained_apart(each) for each in zip(*apart, self._train(runs), strict=True)]

    def _train(self, runs: Sequence[Run]) -> list[Outcome]:
        """Train every run to the end, and test its best weights."""
        began = time.perf_counter()
        training = runs[0].cell.training
        lanes = BlockLanes(runs, self.device, self.dtype, self.mixed)
        validation = np.stack([task.validation for task in lanes.tasks])
        best = [-1.0] * len(lanes)
        best_parameters = [p.detach().clone() for p in lanes.parameters]
        diverged: dict[int, int] = {}  # lane → the step at which this was seen
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
        """The weights after ``steps`` steps, without checks."""
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
