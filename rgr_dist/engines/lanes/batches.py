"""What the lanes of a program read: embeddings, labels, and training contexts by the block.

Edges of a permutation are kept as one target for each item, those of any other graph as a
matrix of pairs.

Shapes in names: L lanes, l items of a context, d = d_model, v = width of a message, p some of
the items; m items and one of padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from rgr_dist.problem.edge_task import Task

BLOCK = 128
"""Contexts of each lane that are drawn and sent to the device at once."""
REGISTER = 16
"""Sizes are padded to a multiple of this many numbers: a cache line of float32."""


def padded(size: int, multiple: int) -> int:
    """The size, rounded up to a multiple."""
    return -(-size // multiple) * multiple


class Batches:
    """Embeddings and contexts of several tasks of one cell, padded to whole registers.

    A context is filled up with item m, whose embedding is zero and which has no edges.

    Attributes:
        length, d: items of a context and d_model, as padded.
        X_Lmd: embeddings.
        X_Lld: embeddings of the items of the present contexts.
        y_Lll: 1 where the second item of a pair is an out-neighbour of the first, else 0.
        V_Lmv, V_Llv: messages of all items and of those of the present contexts; of width 0
            unless the loss is that of messages.
        labels: which pairs are edges, and their weight.
    """

    def __init__(self, tasks: Sequence[Task], device: torch.device, dtype: torch.dtype) -> None:
        self.cell = cell = tasks[0].cell
        self.tasks, self.m, self.device = list(tasks), cell.m, device
        self.length = padded(cell.context.length, REGISTER)
        self.d = padded(cell.d_model, REGISTER)
        has_messages = cell.record.loss == "messages"
        X = torch.zeros(len(tasks), self.m + 1, self.d, dtype=dtype)
        V = torch.zeros(len(tasks), self.m + 1, self.d if has_messages else 0, dtype=dtype)
        for lane, task in enumerate(tasks):
            X[lane, : self.m, : cell.d_model] = torch.from_numpy(task.embedding)
            if has_messages:
                V[lane, : self.m, : cell.d_model] = torch.from_numpy(task.messages)
        self.X_Lmd, self.V_Lmv = X.to(device), V.to(device)
        kind = MatrixLabels if cell.graph.balanced else TargetLabels
        self.labels = kind(self.tasks, device, dtype)
        self._allocate()

    def __len__(self) -> int:
        return len(self.tasks)

    def _allocate(self) -> None:
        L, new = len(self), self.X_Lmd.new_empty
        self.first_row = np.arange(L)[:, np.newaxis] * (self.m + 1)
        self.block = torch.zeros(BLOCK, L * self.length, dtype=torch.int64, device=self.device)
        self.cursor = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.rows = torch.zeros_like(self.block[:1])
        self.X_Lld = new(L, self.length, self.d)
        self.V_Llv = new(L, self.length, self.V_Lmv.shape[2])
        self.y_Lll = new(L, self.length, self.length)
        self.labels.allocate(self.length)

    def keep(self, lanes: Sequence[int]) -> None:
        """Drop the tasks of all other lanes."""
        index = torch.tensor(lanes, device=self.device)
        self.tasks = [self.tasks[lane] for lane in lanes]
        self.X_Lmd = self.X_Lmd.index_select(0, index)
        self.V_Lmv = self.V_Lmv.index_select(0, index)
        self.labels.keep(index)
        self._allocate()

    def load(self, first: int, count: int) -> None:
        """Draw training contexts ``first`` … ``first + count - 1``, at most BLOCK of them."""
        shape = (count, len(self), self.length)
        nodes = np.full(shape, self.m, dtype=np.int64)
        for lane, task in enumerate(self.tasks):
            drawn = task.training_contexts(first, count)
            nodes[:, lane, : drawn.shape[1]] = drawn
        nodes += self.first_row
        self.block[:count].copy_(torch.from_numpy(nodes).flatten(1))
        self.cursor.zero_()

    def advance(self) -> None:
        """Go to the next context of the block; works on the device alone, so it can be captured."""
        torch.index_select(self.block, 0, self.cursor, out=self.rows)
        self.cursor.add_(1)
        rows = self.rows.view(-1)
        torch.index_select(self.X_Lmd.view(-1, self.d), 0, rows, out=self.X_Lld.view(-1, self.d))
        if self.V_Lmv.numel():
            width = self.V_Lmv.shape[2]
            messages = self.V_Lmv.view(-1, width), self.V_Llv.view(-1, width)
            torch.index_select(messages[0], 0, rows, out=messages[1])
        self.labels.label(rows, self.y_Lll)


class TargetLabels:
    """Labels of permutations: each item has one target, and an edge weighs l - 1.

    Attributes:
        boost_L: None.
    """

    boost_L: Tensor | None = None

    def __init__(self, tasks: Sequence[Task], device: torch.device, dtype: torch.dtype) -> None:
        self.m = tasks[0].cell.m
        targets = torch.full((len(tasks), self.m + 1), -1, dtype=dtype)
        for lane, task in enumerate(tasks):
            targets[lane, : self.m] = torch.from_numpy(task.targets)
        self.targets_Lm = targets.to(device)

    def allocate(self, length: int) -> None:
        """Buffers for contexts of so many (padded) items."""
        table = self.targets_Lm
        items = torch.arange(self.m + 1, device=table.device).to(table.dtype)
        self.item_of_row = items.repeat(len(table))
        self.items_Ll, self.targets_Ll = (table.new_empty(len(table), length) for _ in range(2))

    def keep(self, index: Tensor) -> None:
        """Drop all other lanes."""
        self.targets_Lm = self.targets_Lm.index_select(0, index)

    def label(self, rows: Tensor, y_Lll: Tensor) -> None:
        """1 where the second item of a pair is the target of the first, else 0.

        Args:
            rows: int64 [L * l]; row lane * (m + 1) + item is an item of a lane.
        """
        for table, gathered in (
            (self.targets_Lm.view(-1), self.targets_Ll.view(-1)),
            (self.item_of_row, self.items_Ll.view(-1)),
        ):
            torch.index_select(table, 0, rows, out=gathered)
        torch.eq(self.targets_Ll.unsqueeze(2), self.items_Ll.unsqueeze(1), out=y_Lll)

    def of_lane(self, lane: int) -> Tensor:
        """Out-neighbours as ``models.labels`` takes them, int64 [m + 1]."""
        return self.targets_Lm[lane].long()

    def sum_edges(self, values_Lpm: Tensor, lanes: Sequence[int], part: slice) -> Tensor:
        """The sum of values over the edges, for each of some lanes.

        Args:
            values_Lpm: one for each pair of some sources, which are ``part`` of the items.
        """
        targets = self.targets_Lm[lanes, : self.m][:, part].long()
        return values_Lpm.gather(2, targets.unsqueeze(2)).sum((1, 2))


class MatrixLabels:
    """Labels of any graphs; an edge weighs #negatives / #positives of its context (App. A.3).

    Attributes:
        boost_L: that weight in the present contexts plus one, [L, 1, 1].
    """

    def __init__(self, tasks: Sequence[Task], device: torch.device, dtype: torch.dtype) -> None:
        self.m, self.dtype = tasks[0].cell.m, dtype
        self.pairs = tasks[0].cell.context.length ** 2
        edges = torch.zeros(len(tasks), self.m + 1, self.m + 1, dtype=torch.uint8)
        for lane, task in enumerate(tasks):
            edges[lane, : self.m, : self.m] = torch.from_numpy(task.graph.matrix)
        self.edges_Lmm = edges.to(device)
        tables = (torch.from_numpy(task.graph.table).long() for task in tasks)
        self.tables = [pad(table, (0, 0, 0, 1), value=-1) for table in tables]

    def allocate(self, length: int) -> None:
        """Buffers for contexts of so many (padded) items."""
        L, device = len(self.edges_Lmm), self.edges_Lmm.device
        self.first_row_L = torch.arange(L, device=device).unsqueeze(1) * (self.m + 1)
        self.pairs_Lll = torch.zeros(L, length, length, dtype=torch.int64, device=device)
        self.bits_Lll = torch.zeros(L, length, length, dtype=torch.uint8, device=device)
        self.boost_L = torch.zeros(L, 1, 1, dtype=self.dtype, device=device)

    def keep(self, index: Tensor) -> None:
        """Drop all other lanes."""
        self.edges_Lmm = self.edges_Lmm.index_select(0, index)
        self.tables = [self.tables[lane] for lane in index.tolist()]

    def label(self, rows: Tensor, y_Lll: Tensor) -> None:
        """1 where the second item of a pair is an out-neighbour of the first, else 0.

        Args:
            rows: int64 [L * l]; row lane * (m + 1) + item is an item of a lane.
        """
        rows_Ll = rows.view(len(self.edges_Lmm), -1)
        sources, targets = (rows_Ll * (self.m + 1)).unsqueeze(2), rows_Ll - self.first_row_L
        torch.add(sources, targets.unsqueeze(1), out=self.pairs_Lll)
        flat = self.edges_Lmm.view(-1)
        torch.index_select(flat, 0, self.pairs_Lll.view(-1), out=self.bits_Lll.view(-1))
        y_Lll.copy_(self.bits_Lll)
        # 1 + (l^2 - n) / n of n positives; without any, whatever is finite.
        torch.sum(y_Lll, (1, 2), keepdim=True, out=self.boost_L)
        self.boost_L.clamp_(min=1).reciprocal_().mul_(self.pairs)

    def of_lane(self, lane: int) -> Tensor:
        """Out-neighbours as ``models.labels`` takes them, int64 [m + 1, r]."""
        return self.tables[lane].to(self.edges_Lmm.device)

    def sum_edges(self, values_Lpm: Tensor, lanes: Sequence[int], part: slice) -> Tensor:
        """The sum of values over the edges, for each of some lanes.

        Args:
            values_Lpm: one for each pair of some sources, which are ``part`` of the items.
        """
        edges = self.edges_Lmm[lanes][:, : self.m, : self.m][:, part]
        return (values_Lpm * edges).sum(2).double().sum(1)
