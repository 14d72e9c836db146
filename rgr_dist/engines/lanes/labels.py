"""Which pairs are edges, for all lanes of a program, and how much an edge weighs in the loss.

A permutation is kept as one target for each item; any other graph as a matrix of pairs.

Shapes in names: L lanes, l items of a context, m items and one of padding, p rows of items.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from rgr_dist.problem.edge_task import Task


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
        """Scratch for contexts of so many (padded) items."""
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
            rows: int64 [L * l]; row lane * (m + 1) + item stands for an item of a lane.
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
        """Sum over the edges of what stands at each pair of items, for each of some lanes.

        Args:
            values_Lpm: the pairs of some sources, which are ``part`` of the items.
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
        """Scratch for contexts of so many (padded) items."""
        L, device = len(self.edges_Lmm), self.edges_Lmm.device
        self.first_row_L = torch.arange(L, device=device).unsqueeze(1) * (self.m + 1)
        self.places_Lll = torch.zeros(L, length, length, dtype=torch.int64, device=device)
        self.bits_Lll = torch.zeros(L, length, length, dtype=torch.uint8, device=device)
        self.boost_L = torch.zeros(L, 1, 1, dtype=self.dtype, device=device)

    def keep(self, index: Tensor) -> None:
        """Drop all other lanes."""
        self.edges_Lmm = self.edges_Lmm.index_select(0, index)
        self.tables = [self.tables[lane] for lane in index.tolist()]

    def label(self, rows: Tensor, y_Lll: Tensor) -> None:
        """1 where the second item of a pair is an out-neighbour of the first, else 0.

        Args:
            rows: int64 [L * l]; row lane * (m + 1) + item stands for an item of a lane.
        """
        rows_Ll = rows.view(len(self.edges_Lmm), -1)
        sources, targets = (rows_Ll * (self.m + 1)).unsqueeze(2), rows_Ll - self.first_row_L
        torch.add(sources, targets.unsqueeze(1), out=self.places_Lll)
        flat = self.edges_Lmm.view(-1)
        torch.index_select(flat, 0, self.places_Lll.view(-1), out=self.bits_Lll.view(-1))
        y_Lll.copy_(self.bits_Lll)
        # 1 + (l^2 - n) / n of n positives; without any, whatever is finite.
        torch.sum(y_Lll, (1, 2), keepdim=True, out=self.boost_L)
        self.boost_L.clamp_(min=1).reciprocal_().mul_(self.pairs)

    def of_lane(self, lane: int) -> Tensor:
        """Out-neighbours as ``models.labels`` takes them, int64 [m + 1, r]."""
        return self.tables[lane].to(self.edges_Lmm.device)

    def sum_edges(self, values_Lpm: Tensor, lanes: Sequence[int], part: slice) -> Tensor:
        """Sum over the edges of what stands at each pair of items, for each of some lanes.

        Args:
            values_Lpm: the pairs of some sources, which are ``part`` of the items.
        """
        edges = self.edges_Lmm[lanes][:, : self.m, : self.m][:, part]
        return (values_Lpm * edges).sum(2).double().sum(1)
