"""What the lanes of a program read: embeddings, labels, and training contexts in blocks.

Shapes in names: L lanes, l items of a context, d = d_model, r = the most out-neighbours of an
item, v = width of a message; m items and one of padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from rgr_dist.engines.api import padded
from rgr_dist.problem.edge_task import Task

BLOCK = 128
"""Contexts of each lane that are drawn and sent to the device at once."""
REGISTER = 16
"""Sizes are padded to a multiple of this many numbers: a cache line of float32."""


class Batches:
    """Embeddings and contexts of several tasks of one cell, padded to whole registers.

    A context is filled up with item m, whose embedding is zero and which has no edges.

    Attributes:
        length, d: items of a context and d_model, both padded.
        X_Lmd: embeddings.
        X_Lld: embeddings of the items of the current contexts.
        targets_Lmr: out-neighbours of each item, as numbers of the lanes' dtype; padded with -1.
        y_Lll: 1 where the second item of a pair is an out-neighbour of the first, else 0.
        V_Lmv, V_Llv: messages of all items and of those of the current contexts; of width 0
            unless the loss is that of messages.
    """

    def __init__(self, tasks: Sequence[Task], device: torch.device, dtype: torch.dtype) -> None:
        self.cell = cell = tasks[0].cell
        self.tasks, self.m, self.device = list(tasks), cell.m, device
        self.length = padded(cell.context.length, REGISTER)
        self.d = padded(cell.d_model, REGISTER)
        has_messages = cell.record.loss == "messages"
        r = max(task.graph.table.shape[1] for task in tasks)
        X = torch.zeros(len(tasks), self.m + 1, self.d, dtype=dtype)
        V = torch.zeros(len(tasks), self.m + 1, self.d if has_messages else 0, dtype=dtype)
        targets = torch.full((len(tasks), self.m + 1, r), -1, dtype=dtype)
        for lane, task in enumerate(tasks):
            X[lane, : self.m, : cell.d_model] = torch.from_numpy(task.embedding)
            targets[lane, : self.m, : task.graph.table.shape[1]] = torch.from_numpy(
                task.graph.table
            )
            if has_messages:
                V[lane, : self.m, : cell.d_model] = torch.from_numpy(task.messages)
        self.X_Lmd, self.V_Lmv, self.targets_Lmr = X.to(device), V.to(device), targets.to(device)
        self._allocate()

    def __len__(self) -> int:
        return len(self.tasks)

    def _allocate(self) -> None:
        L, r, new = len(self), self.targets_Lmr.shape[2], self.X_Lmd.new_empty
        self.first_row = np.arange(L)[:, np.newaxis] * (self.m + 1)
        self.block = torch.zeros(BLOCK, L * self.length, dtype=torch.int64, device=self.device)
        self.cursor = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.rows = torch.zeros_like(self.block[:1])
        self.X_Lld = new(L, self.length, self.d)
        self.V_Llv = new(L, self.length, self.V_Lmv.shape[2])
        items = torch.arange(self.m + 1, device=self.device).to(self.X_Lmd.dtype)
        self.item_of_row = items.repeat(L)
        self.items_Ll, self.targets_Llr = new(L, self.length), new(L, self.length, r)
        self.y_Lll = new(L, self.length, self.length)
        self.y_Llrl = new(L, self.length, r, self.length) if r > 1 else self.y_Lll.unsqueeze(2)

    def keep(self, lanes: Sequence[int]) -> None:
        """Drop the tasks of all other lanes."""
        index = torch.tensor(lanes, device=self.device)
        self.tasks = [self.tasks[lane] for lane in lanes]
        self.X_Lmd = self.X_Lmd.index_select(0, index)
        self.V_Lmv = self.V_Lmv.index_select(0, index)
        self.targets_Lmr = self.targets_Lmr.index_select(0, index)
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
        """Go to the next context of the block; works only on the device, so it can be captured."""
        torch.index_select(self.block, 0, self.cursor, out=self.rows)
        self.cursor.add_(1)
        rows = self.rows.view(-1)
        tables = [
            (self.X_Lmd, self.X_Lld),
            (self.targets_Lmr, self.targets_Llr),
            (self.V_Lmv, self.V_Llv),
        ]
        for table, chosen in tables:
            if table.numel():
                torch.index_select(table.flatten(0, 1), 0, rows, out=chosen.flatten(0, 1))
        torch.index_select(self.item_of_row, 0, rows, out=self.items_Ll.view(-1))
        items_Lxxl = self.items_Ll.unsqueeze(1).unsqueeze(2)
        torch.eq(self.targets_Llr.unsqueeze(3), items_Lxxl, out=self.y_Llrl)
        if self.y_Llrl.shape[2] > 1:
            torch.sum(self.y_Llrl, 2, out=self.y_Lll)
