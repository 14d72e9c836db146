"""The training state of lanes of a layer from a file; ``own_program`` takes their steps.

A layer sees its contexts as they are, without padding. A torch kernel may then process a lane's
numbers in its vectorised body or in its scalar tail, which round differently, depending on the
lane's position. A compiled kernel has no such tail; without one, lanes are stepped one at a time
unless contexts fill whole registers, and where a parameter does not, a multiple of ``UNSPLIT``
lanes are held. On a GPU the step is not captured.

Shapes in names: L lanes, l items of a context, d = d_model, n contexts, m items, B steps of a
block, R items of all lanes, r = the most out-neighbours of an item.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rgr_dist.engines.api import Weights, padded
from rgr_dist.engines.lanes.batches import BLOCK, REGISTER, Batches
from rgr_dist.engines.lanes.own_program import (
    Contexts,
    Program,
    Sizes,
    State,
    Theta,
    compiled_program,
    drawn,
    has_compiler,
    plain_program,
    zeros_like,
)
from rgr_dist.engines.layer_start import start_of
from rgr_dist.engines.schedule import adamw_factors
from rgr_dist.models.module_layer import ModuleLayer
from rgr_dist.models.own_layer import AttentionLayer, Parameters, make_layer
from rgr_dist.problem.edge_task import Task
from rgr_dist.study.run import Run

UNSPLIT = 2 * REGISTER
"""Numbers that a vectorised body takes at a time, two registers: a multiple leaves no tail."""


class OwnLane(NamedTuple):
    """One lane, to be scored."""

    X_md: Tensor
    layer: AttentionLayer
    p: Parameters
    tau: Tensor
    h: int

    def scores(self, nodes_nl: Tensor) -> Tensor:
        """Scores of the pairs of contexts, [n, l, l]."""
        with torch.no_grad():
            return self.layer.scores(self.X_md[nodes_nl], self.p)


class OwnLanes:
    """Training state of several runs that advance together.

    Attributes:
        indices: which of the runs each lane trains.
        each: of what number the lanes that are held are a multiple; None for any number.
        state: parameters and moments of the lanes, the last one repeated as ``_held`` says.
        parts: groups of as many lanes as the program takes, each with its state and contexts.

    Raises:
        ValueError: the runs differ in more than their seed.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        device: torch.device,
        dtype: torch.dtype,
        compiled: bool | None = None,
    ) -> None:
        self.cell, self.h, self.d_k = runs[0].cell, runs[0].h, runs[0].d_k
        if any((run.cell, run.h, run.d_k) != (self.cell, self.h, self.d_k) for run in runs):
            raise ValueError("lanes of one program must share the cell, h and d_k")
        self.indices, self.device, self.steps = list(range(len(runs))), device, 0
        compiled = has_compiler() if compiled is None else compiled
        self.own_layer = make_layer(self.cell, self.h, self.d_k)
        compiled &= not isinstance(self.own_layer, ModuleLayer)  # a module is run as it is
        by_seed = {run.seed: Task.of(run.cell, run.seed) for run in runs}
        self.program = self._program(compiled, [*by_seed.values()], dtype)
        self.together = self.program.compiled or self.cell.context.length % REGISTER == 0
        self.each = self.program.lanes
        if self.together and not self.program.compiled and device.type == "cpu":
            start = start_of(self.own_layer, runs[0])
            if any(value.size % UNSPLIT for value in start.values()):
                self.each = UNSPLIT
        shown = [runs[lane] for lane in self._held(self.indices)]
        self.batches = Batches([by_seed[run.seed] for run in shown], device, dtype)
        self.tasks = self.batches.tasks
        if isinstance(self.own_layer, ModuleLayer):
            self.own_layer.hold(self.batches.X_Lmd)
        starts = [start_of(self.own_layer, run) for run in shown]
        stacked = {name: np.stack([start[name] for start in starts]) for name in starts[0]}
        theta = {name: torch.from_numpy(one).to(device, dtype) for name, one in stacked.items()}
        theta["tau"] = torch.zeros(len(shown), device=device, dtype=dtype)
        self.state: State = theta, zeros_like(theta), zeros_like(theta)
        self.parts = self._parts()

    def _program(self, compiled: bool, tasks: list[Task], dtype: torch.dtype) -> Program:
        cell, make = self.cell, compiled_program if compiled else plain_program
        assert cell.layer is not None
        length, neighbours = cell.context.length, max(task.graph.table.shape[1] for task in tasks)
        sizes = Sizes(length, neighbours, cell.d_model, self.h, self.d_k, dtype, self.device)
        return make(cell.layer, cell.training.sharpness, cell.graph.balanced, sizes)

    def _held(self, lanes: Sequence[int]) -> list[int]:
        """The lanes, filled up with the last one: at least two, since one rounds differently."""
        count = max(2, len(lanes)) if self.each is None else padded(len(lanes), self.each)
        return [*lanes] + [lanes[-1]] * (count - len(lanes))

    def _parts(self) -> list[tuple[State, Contexts]]:
        """What the program takes in each call, as views that are made once for all steps."""
        batches, d, L = self.batches, self.cell.d_model, len(self.batches)
        X_Rd = batches.X_Lmd[:, :, :d].flatten(0, 1).contiguous()
        targets_Rr = batches.targets_Lmr.flatten(0, 1)
        each = self.program.lanes or L

        def part(first: int) -> tuple[State, Contexts]:
            theta, once, twice = (
                {name: value[first : first + each] for name, value in one.items()}
                for one in self.state
            )
            rows_BLl = batches.block.new_zeros(BLOCK, each, self.cell.context.length)
            cursor = torch.zeros_like(batches.cursor)
            contexts = Contexts(X_Rd, targets_Rr, batches.item_of_row, rows_BLl, cursor)
            return (theta, once, twice), contexts

        return [part(first) for first in range(0, L, each)]

    def _load(self, count: int) -> None:
        """Draw the contexts of the next ``count`` steps, at most BLOCK."""
        self.batches.load(self.steps, count)
        rows_BLl = self.batches.block.view(BLOCK, len(self.batches), -1)
        first = 0
        for _, contexts in self.parts:
            _, each, length = contexts.rows_BLl.shape
            contexts.rows_BLl.copy_(rows_BLl[:, first : first + each, :length])
            contexts.cursor.zero_()
            first += each

    @property
    def theta(self) -> Theta:
        """The parameters."""
        return self.state[0]

    def __len__(self) -> int:
        return len(self.indices)

    def advance(self, steps: int) -> None:
        """Take ``steps`` training steps in every lane."""
        for done in range(0, steps, BLOCK):
            count = min(BLOCK, steps - done)
            self._load(count)
            factors = torch.zeros(BLOCK, 3, dtype=torch.float64)
            now = adamw_factors(self.cell.training, self.steps, count)
            factors[:count] = torch.from_numpy(now.T)
            factors = factors.to(self.device, self.theta["tau"].dtype)
            for _ in range(count):
                for state, contexts in self.parts:
                    if self.together:
                        self.program.step(state, contexts, factors)
                    else:
                        self._step_by_lane(state, contexts, factors)
            self.steps += count

    def _step_by_lane(self, state: State, contexts: Contexts, factors: Tensor) -> None:
        X_Lld, y_Lll, now = drawn(contexts, factors)
        for lane in range(len(self)):
            pair = torch.tensor([lane, lane], device=self.device)
            moved = self.program.update(_chosen(state, pair), X_Lld[pair], y_Lll[pair], now)
            for kept, part in zip(state, moved, strict=True):
                for name, value in part.items():
                    kept[name][lane] = value[0]

    def keep(self, lanes: Sequence[int]) -> None:
        """Drop every lane that is not listed."""
        held = self._held(lanes)
        self.batches.keep(held)
        self.tasks = self.batches.tasks
        self.indices = [self.indices[lane] for lane in lanes]
        self.state = _chosen(self.state, torch.tensor(held, device=self.device))
        self.parts = self._parts()

    def is_finite(self) -> list[bool]:
        """Whether every trained parameter of each lane is finite."""
        trained = (*self.own_layer.parameters(), "tau")
        rows = [self.theta[name].reshape(len(self.theta[name]), -1) for name in trained]
        finite: list[bool] = torch.cat(rows, 1).isfinite().all(1).tolist()
        return finite[: len(self)]

    def tau(self, lane: int) -> float:
        """The learned threshold of a lane."""
        return float(self.theta["tau"][lane])

    def weights(self, lane: int) -> Weights:
        """The parameters of a lane, by name."""
        return {name: p[lane].cpu().numpy().copy() for name, p in self.theta.items()}

    def layer(self, lane: int) -> OwnLane:
        """A lane, to be scored."""
        p = {name: value[lane].clone() for name, value in self.theta.items()}
        X_md = self.batches.X_Lmd[lane, :, : self.cell.d_model].contiguous()
        return OwnLane(X_md, self.own_layer, p, p.pop("tau"), self.h)


def _chosen(state: State, lanes: Tensor) -> State:
    """The state of the given lanes."""

    def of(part: Theta) -> Theta:
        return {name: value.index_select(0, lanes) for name, value in part.items()}

    theta, first, second = state
    return of(theta), of(first), of(second)
