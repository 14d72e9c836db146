"""Many runs in one torch program, on any device; each lane stops for itself.

All lanes share (cell, h, d_k) and differ in their seed. The gradient of the max-over-heads
loss is written out by hand: only the winning head of a pair receives any. Lanes that have
stopped are compacted away.

Shapes in names: L lanes, l items of a context, d = d_model, h heads, k = d_k, D = h * k.

A lane's numbers do not depend on its neighbours. A kernel may round differently in its
vectorised body and its scalar tail, or on aligned and unaligned rows; so contexts are padded
with an item whose embedding is zero, and parameters with zeros, until each lane's share of
every buffer fills whole vector registers. The padding adds exact zeros.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rgr_dist.engines.engine import Outcome, StopReason, Weights
from rgr_dist.models.max_heads import score_contexts
from rgr_dist.problem.task import Task, initial_projections
from rgr_dist.study import Run

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


def _padded(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


class Lanes:
    """Training state of several runs that advance together.

    Attributes:
        places: which of the runs each lane trains.
        theta, first, second: parameters and AdamW moments, [L, P]: W_Q | W_K by rows of
            d_model, then tau, then padding that stays zero.
    """

    def __init__(self, runs: Sequence[Run], device: torch.device, dtype: torch.dtype) -> None:
        self.cell, self.h, self.d_k = runs[0].cell, runs[0].h, runs[0].d_k
        if any((r.cell, r.h, r.d_k) != (self.cell, self.h, self.d_k) for r in runs):
            raise ValueError("lanes of one program must share the cell, h and d_k")
        self.places = list(range(len(runs)))
        self.tasks = [Task.of(run.cell, run.seed) for run in runs]
        self.device = device
        self.steps = 0
        d, D = self.cell.d_model, runs[0].D_K
        self.size = d * 2 * D
        self.theta = torch.zeros(len(runs), _padded(self.size + 1, 64), dtype=dtype)
        for lane, run in enumerate(runs):
            both = np.concatenate(initial_projections(run), axis=1)
            self.theta[lane, : self.size] = torch.from_numpy(both).to(dtype).flatten()
        self.theta = self.theta.to(device)
        self.first = torch.zeros_like(self.theta)
        self.second = torch.zeros_like(self.theta)
        X = torch.stack([torch.from_numpy(t.embedding) for t in self.tasks]).to(device, dtype)
        self.X = torch.nn.functional.pad(X, (0, 0, 0, 1))  # item m is the padding: x = 0
        targets = torch.stack([torch.from_numpy(t.targets) for t in self.tasks]).to(device)
        self.targets = torch.nn.functional.pad(targets, (0, 1), value=-1)
        self.length = _padded(self.cell.context.length, 16)
        real = torch.arange(self.length, device=device) < self.cell.context.length
        self.real_pairs = (real.unsqueeze(1) & real).flatten().to(dtype)
        self._allocate()

    def __len__(self) -> int:
        return len(self.places)

    def _allocate(self) -> None:
        """Scratch for the current number of lanes."""
        self.gradient = torch.zeros_like(self.theta)
        self.score_gradient = self.theta.new_zeros(len(self), self.h, self.length**2)
        self.lane_index = torch.arange(len(self), device=self.device).unsqueeze(1)

    def projections(self, theta: Tensor) -> Tensor:
        """[W_Q | W_K] of every lane, a view [L, d, 2D] of a parameter buffer."""
        d = self.cell.d_model
        return theta[:, : self.size].view(len(theta), d, self.size // d)

    def advance(self, steps: int) -> None:
        """Take so many training steps in every lane."""
        drawn = np.stack([task.training_contexts(self.steps, steps) for task in self.tasks], axis=1)
        padding = ((0, 0), (0, 0), (0, self.length - self.cell.context.length))
        block = np.pad(drawn, padding, constant_values=self.cell.m)
        nodes = torch.from_numpy(block).to(self.device).long()
        for index in range(steps):
            self._step(nodes[index])

    def _step(self, nodes_Ll: Tensor) -> None:
        L, length = nodes_Ll.shape
        pairs = length * length
        D = self.h * self.d_k
        X_Lld = self.X[self.lane_index, nodes_Ll]
        P = torch.bmm(X_Lld, self.projections(self.theta))
        P_halves = P.view(L, length, 2, self.h, self.d_k)
        heads = P_halves.permute(2, 0, 3, 1, 4).reshape(2, L * self.h, length, self.d_k)
        Q, K = heads[0], heads[1]
        S = torch.bmm(Q, K.transpose(1, 2)).view(L, self.h, pairs)
        S_max, winner = S.max(dim=1)

        # dL/dS at the winning head: alpha / l^2 * [sigmoid(z) (1 + (w - 1) y) - w y], w = l - 1.
        alpha, weight = self.cell.training.sharpness, self.cell.context.length - 1
        tau = self.theta[:, self.size : self.size + 1]
        has_edge = self.targets[self.lane_index, nodes_Ll].unsqueeze(2) == nodes_Ll.unsqueeze(1)
        y = has_edge.view(L, pairs).to(S.dtype)
        G = torch.sigmoid((S_max - tau).mul_(alpha)).mul_(y * (weight - 1) + 1).sub_(y * weight)
        G.mul_(self.real_pairs * (alpha / self.cell.context.length**2))

        self.score_gradient.zero_().scatter_(1, winner.unsqueeze(1), G.unsqueeze(1))
        dS = self.score_gradient.view(L * self.h, length, length)
        dP = torch.stack([torch.bmm(dS, K), torch.bmm(dS.transpose(1, 2), Q)])
        dP = (
            dP.view(2, L, self.h, length, self.d_k).permute(1, 3, 0, 2, 4).reshape(L, length, 2 * D)
        )
        self.projections(self.gradient).copy_(torch.bmm(X_Lld.transpose(1, 2), dP))
        self.gradient[:, self.size] = -G.sum(dim=1)
        self._adamw()

    def _adamw(self) -> None:
        """AdamW without decay, operation by operation as torch.optim does it."""
        self.steps += 1
        rate = self.cell.training.learning_rate
        self.first.lerp_(self.gradient, 1 - BETA_1)
        self.second.mul_(BETA_2).addcmul_(self.gradient, self.gradient, value=1 - BETA_2)
        denominator = self.second.sqrt()
        denominator.div_((1 - BETA_2**self.steps) ** 0.5).add_(EPSILON)
        self.theta.addcdiv_(self.first, denominator, value=-rate / (1 - BETA_1**self.steps))

    def keep(self, lanes: Sequence[int]) -> None:
        """Drop every lane that is not listed."""
        index = torch.tensor(lanes, device=self.device)
        self.places = [self.places[lane] for lane in lanes]
        self.tasks = [self.tasks[lane] for lane in lanes]
        for name in ("theta", "first", "second", "X", "targets"):
            setattr(self, name, getattr(self, name).index_select(0, index))
        self._allocate()

    def is_finite(self) -> list[bool]:
        """Whether every parameter of each lane is a number."""
        return [bool(value) for value in torch.isfinite(self.theta).all(dim=1)]

    def tau(self, lane: int) -> float:
        """The learned threshold of a lane."""
        return float(self.theta[lane, self.size])

    def weights(self, lane: int) -> tuple[Tensor, Tensor]:
        """W_Q and W_K of a lane, each [d, D]."""
        W_Q, W_K = self.projections(self.theta)[lane].split(self.h * self.d_k, dim=1)
        return W_Q.contiguous(), W_K.contiguous()

    def score(self, lane: int, contexts: npt.NDArray[np.int32]) -> float:
        """Micro-F1 of a lane over a set of contexts."""
        return score_contexts(
            torch.from_numpy(contexts).to(self.device).long(),
            self.targets[lane],
            self.X[lane].clone(),  # aligned as a lone lane would be
            *self.weights(lane),
            self.theta[lane, self.size],
            self.h,
        )

    def outcome(self, lane: int, stop_reason: StopReason, val_score: float | None) -> Outcome:
        """How a lane ended, tested unless it diverged; its time is for the engine to fill in."""
        diverged = stop_reason == "diverged"
        return Outcome(
            score=None if diverged else self.score(lane, self.tasks[lane].test),
            val_score=val_score,
            tau=None if diverged else self.tau(lane),
            steps=self.steps,
            stop_reason=stop_reason,
            seconds=0.0,
        )


class LanesEngine:
    """Batched training in torch; the engine for a GPU, and for any model without a kernel."""

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
        outcomes: dict[int, Outcome] = {}
        good_checks, seconds = [0] * len(runs), [0.0] * len(runs)
        while True:
            began = time.perf_counter()
            lanes.advance(min(training.check_every, training.max_steps - lanes.steps))
            finite = lanes.is_finite()
            shared = (time.perf_counter() - began) / len(lanes)
            running = []
            for lane, place in enumerate(lanes.places):
                began_alone = time.perf_counter()
                val_score = (
                    lanes.score(lane, lanes.tasks[lane].validation) if finite[lane] else None
                )
                good = val_score is not None and val_score > training.stop_score
                good_checks[place] = good_checks[place] + 1 if good else 0
                stop_reason: StopReason | None = None
                if val_score is None:
                    stop_reason = "diverged"
                elif good_checks[place] == training.patience:
                    stop_reason = "converged"
                elif lanes.steps == training.max_steps:
                    stop_reason = "max_steps"
                else:
                    running.append(lane)
                if stop_reason is not None:
                    outcomes[place] = lanes.outcome(lane, stop_reason, val_score)
                seconds[place] += shared + time.perf_counter() - began_alone
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
