"""The state of lanes on a GPU, each of which is trained and scored by a thread block of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rgr_dist.engines.api import End, Outcome, Weights, padded
from rgr_dist.engines.cuda.kernels import Argument, Plan, Shape, kernels_of, plan_of
from rgr_dist.engines.schedule import adamw_factors
from rgr_dist.engines.start import initial_weights
from rgr_dist.models.f1 import micro_f1
from rgr_dist.problem.contexts import edges_within, rate_word
from rgr_dist.problem.edge_task import Task
from rgr_dist.study.run import Run

AT_ONCE = 4096
"""The most steps of one launch."""
ARRAYS = ("items", "messages", "starts", "targets", "keys", "W", "moments", "tau")
LANES = np.dtype(
    [*((name, np.uint64) for name in ARRAYS), ("m", np.int32), ("edges", np.int32)], align=True
)
"""The memory layout of the kernels' ``struct Lanes``."""


def shape_of(run: Run) -> Shape:
    """What the kernels of a run are compiled for."""
    record, cell = run.cell.record, run.cell
    softmax, messages = record.heads == "softmax", record.loss == "messages"
    return Shape(
        cell.d_model, run.h, run.d_k, cell.context.length, softmax, messages, cell.graph.balanced
    )


class CudaLanes:
    """Training state of several runs of one (cell, h, d_k), on the current GPU.

    Attributes:
        indices: which of the runs each lane trains.
        steps: taken so far.

    Raises:
        KernelError: a lane does not fit a thread block.
    """

    def __init__(self, runs: Sequence[Run], plan: Plan | None = None) -> None:
        run = runs[0]
        self.runs, self.cell, self.shape = list(runs), run.cell, shape_of(run)
        plan = plan or plan_of(self.shape, len(runs))
        self.kernels = kernels_of(plan, torch.cuda.current_device())
        self.indices, self.steps = list(range(len(runs))), 0
        by_seed = {run.seed: Task.of(run.cell, run.seed) for run in runs}
        self.tasks = [by_seed[run.seed] for run in runs]
        d, D = self.cell.d_model, run.D_K
        W = np.zeros((len(runs), self.shape.columns, padded(d, 4)), dtype=np.float32)
        tau = np.zeros((len(runs), 3), dtype=np.float32)
        for lane, one in enumerate(runs):
            W_Q, W_K, tau[lane, 0] = initial_weights(one)
            W[lane, : 2 * D, :d] = np.concatenate([W_Q, W_K], axis=1).T
        tables = [task.embedding for task in self.tasks]
        messages = [task.messages for task in self.tasks] if self.shape.messages else []
        edges = max(task.targets.size for task in self.tasks)
        targets = np.zeros((len(runs), edges), dtype=np.int32)
        for lane, task in enumerate(self.tasks):
            targets[lane, : task.targets.size] = task.targets
        own = plan.own_tiles * 4, plan.threads, 4
        self.arrays = {
            "items": self._tables(tables),
            "messages": self._tables(messages),
            "starts": _sent(np.stack([task.graph.starts for task in self.tasks])),
            "targets": _sent(targets),
            "keys": _sent(np.stack([t.train.key for t in self.tasks]).astype(np.uint32)),
            "W": _sent(W),
            "moments": torch.zeros(len(runs), 2, *own, device="cuda"),
            "tau": _sent(tau),
        }
        self.edges = edges
        self._choose(range(len(runs)))

    def __len__(self) -> int:
        return len(self.indices)

    def _tables(self, tables: Sequence[npt.NDArray[np.float64]]) -> Tensor:
        d = padded(self.cell.d_model, 4)
        rows = np.zeros((len(tables), self.cell.m, d), dtype=np.float32)
        for padded_rows, table in zip(rows, tables, strict=True):
            padded_rows[:, : self.cell.d_model] = table
        return _sent(rows)

    def _choose(self, lanes: Sequence[int]) -> None:
        """Go on with these of the lanes at the start; their data stays where it is."""
        self.chosen = _sent(np.array(lanes, dtype=np.int32))

    @property
    def addresses(self) -> npt.NDArray[np.void]:
        """The kernels' ``struct Lanes``: where they find the lanes' arrays, m and the edges."""
        addresses = [self.arrays[name].data_ptr() for name in ARRAYS]
        return np.array((*addresses, self.cell.m, self.edges), dtype=LANES)

    def advance(self, steps: int) -> None:
        """Take ``steps`` training steps in every lane."""
        training = self.cell.training
        end = self.steps + steps
        while self.steps < end:
            count = min(AT_ONCE, end - self.steps)
            factors = adamw_factors(training, self.steps, count)
            rates_and_roots = _sent(factors[:2].astype(np.float32))
            arguments: list[Argument] = [
                self.addresses, self.chosen, np.uint64(self.steps), np.int32(count),
                rates_and_roots[0], rates_and_roots[1], np.float32(training.sharpness),
                rate_word(self.cell.context.positive_rate),
            ]  # fmt: skip
            self.kernels.launch("train", len(self), arguments)
            self.steps += count

    def keep(self, lanes: Sequence[int]) -> None:
        """Drop every lane that is not listed."""
        self.indices = [self.indices[lane] for lane in lanes]
        self._choose(self.indices)

    def is_finite(self) -> list[bool]:
        """Whether every parameter of each lane is finite."""
        finite = [torch.isfinite(self.arrays[name]).flatten(1).all(1) for name in ("W", "tau")]
        every = torch.stack(finite).all(0).tolist()
        return [bool(every[index]) for index in self.indices]

    def tau(self, lane: int) -> float:
        """The learned threshold of a lane."""
        return float(self.arrays["tau"][self.indices[lane], 0])

    def weights(self, lane: int) -> Weights:
        """W_Q, W_K and tau of a lane, without padding."""
        D = self.runs[0].D_K
        columns = self.arrays["W"][self.indices[lane], : 2 * D, : self.cell.d_model].T
        kept = columns.contiguous().cpu().numpy()
        tau = self.arrays["tau"][self.indices[lane], 0].cpu().numpy()
        return {"W_Q": kept[:, :D].copy(), "W_K": kept[:, D:].copy(), "tau": tau}


class CudaEvaluation:
    """Scores lanes, many in one launch."""

    def __init__(self, lanes: CudaLanes) -> None:
        self.lanes = lanes
        self.validation = _Contexts([task.validation for task in lanes.tasks], lanes)
        self.steps = -1
        self.scores: dict[float | None, list[float | None]] = {}

    def validate(self, lane: int, above: float | None = None) -> float | None:
        """Score of a lane over its validation contexts, or None for an F1 not above ``above``."""
        if self.steps != self.lanes.steps:
            self.steps, self.scores = self.lanes.steps, {}
        if above not in self.scores:
            self.scores[above] = self.validation.score(range(len(self.lanes)), above)
        return self.scores[above][lane]

    def outcomes(self, ended: Sequence[End]) -> list[Outcome]:
        """How lanes ended, tested unless they diverged; the engine fills in their time."""
        state, tested = self.lanes, [lane for lane, reason, _ in ended if reason != "diverged"]
        scores: dict[int, float | None] = {}
        if tested:
            contexts = [state.tasks[state.indices[lane]].test for lane in tested]
            every = _Contexts(contexts, state, [state.indices[lane] for lane in tested])
            scores = dict(zip(tested, every.score(tested), strict=True))
        outcomes = []
        for lane, reason, val_score in ended:
            outcome = Outcome(steps=state.steps, stop_reason=reason)
            if lane in scores:
                tau = state.tau(lane) if state.cell.record.has_tau else None
                outcome = Outcome(
                    steps=state.steps, stop_reason=reason, score=scores[lane],
                    val_score=val_score, tau=tau,
                )  # fmt: skip
            outcomes.append(outcome)
        return outcomes


class _Contexts:
    """A set of contexts of some lanes, [L, n, l]."""

    def __init__(
        self,
        contexts: Sequence[npt.NDArray[np.int32]],
        lanes: CudaLanes,
        indices: Sequence[int] | None = None,
    ) -> None:
        self.lanes = lanes
        places = range(len(contexts)) if indices is None else indices
        self.row = {index: row for row, index in enumerate(places)}
        self.count_of_contexts, self.contexts = len(contexts[0]), _sent(np.stack(contexts))
        graphs = [lanes.tasks[index].graph for index in places]
        self.actual = np.array(
            [edges_within(c, g).sum() for c, g in zip(contexts, graphs, strict=True)],
            dtype=np.float64,
        )

    def score(self, lanes: Sequence[int], above: float | None = None) -> list[float | None]:
        """Scores of some of the current lanes; None for any certainly not above ``above``."""
        edges = self.actual[self.rows_of(lanes)].astype(int).tolist()
        if self.lanes.shape.messages:
            errors = self._evaluated(lanes, None)[1].tolist()
            return [error / max(1, n) for error, n in zip(errors, edges, strict=True)]
        counts = self.count(lanes, above)
        return [
            micro_f1(tp, predicted, actual) if complete else None
            for (tp, predicted, _, complete), actual in zip(counts, edges, strict=True)
        ]

    def count(self, lanes: Sequence[int], above: float | None = None) -> list[list[int]]:
        """True positives, predicted edges and errors, and whether every context was counted."""
        counts: list[list[int]] = self._evaluated(lanes, above)[0].tolist()
        return counts

    def rows_of(self, lanes: Sequence[int]) -> list[int]:
        """The rows of ``contexts`` that belong to some of the current lanes."""
        return [self.row[self.lanes.indices[lane]] for lane in lanes]

    def _evaluated(self, lanes: Sequence[int], above: float | None) -> tuple[Tensor, Tensor]:
        state, rows = self.lanes, self.rows_of(lanes)
        indices = np.array([state.indices[lane] for lane in lanes], dtype=np.int32)
        counts = torch.zeros(len(lanes), 4, dtype=torch.int32, device="cuda")
        errors = torch.zeros(len(lanes), dtype=torch.float64, device="cuda")
        arguments: list[Argument] = [
            state.addresses, _sent(indices), _sent(np.array(rows, dtype=np.int32)), self.contexts,
            np.int32(self.count_of_contexts), _sent(self.actual[rows]),
            np.float64(-1.0 if above is None else above), counts, errors,
        ]  # fmt: skip
        state.kernels.launch("evaluate", len(lanes), arguments)
        return counts, errors


def _sent(array: npt.NDArray[np.generic]) -> Tensor:
    """A copy of an array on the GPU."""
    return torch.from_numpy(np.ascontiguousarray(array)).cuda()
