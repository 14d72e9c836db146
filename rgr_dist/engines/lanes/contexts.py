"""What the lanes of a program read: their embeddings, and their training contexts by the block.

Shapes in names: L lanes, l items of a context, d = d_model, v = width of a message; m items
and one of padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from rgr_dist.engines.lanes.labels import MatrixLabels, TargetLabels
from rgr_dist.problem.edge_task import Task

BLOCK = 128
"""Contexts of each lane that are drawn and sent to the device at once."""
REGISTER = 16
"""Numbers to whose multiple rows are padded: a cache line of float32."""
WIDTHS = 8
"""Every d_k is padded to a multiple of this, alone or beside wider ones."""


def padded(size: int, multiple: int) -> int:
    """The size, rounded up to a multiple."""
    return -(-size // multiple) * multiple


class ContextFeed:
    """Embeddings and contexts of several tasks of one cell, padded to whole registers.

    A context is filled up with item m, whose embedding is zero and which has no edges.

    Attributes:
        length, d: items of a context and d_model, as padded.
        X_Lmd: embeddings.
        X_Lld: embeddings of the items of the present contexts.
        y_Lll: 1 where the second item of a pair is an out-neighbour of the first, else 0.
        V_Lmv, V_Llv: messages of all items and of those of the present contexts; of no width
            unless the model has messages.
        labels: which pairs are edges, and how much they weigh.
    """

    def __init__(self, tasks: Sequence[Task], device: torch.device, dtype: torch.dtype) -> None:
        cell = tasks[0].cell
        self.tasks, self.m, self.device = list(tasks), cell.m, device
        self.length = padded(cell.context.length, REGISTER)
        self.d = padded(cell.d_model, REGISTER)
        X = torch.zeros(len(tasks), self.m + 1, self.d, dtype=dtype)
        for lane, task in enumerate(tasks):
            X[lane, : self.m, : cell.d_model] = torch.from_numpy(task.embedding)
        V = torch.zeros(len(tasks), self.m + 1, self.d if cell.model == "value" else 0, dtype=dtype)
        if cell.model == "value":
            for lane, task in enumerate(tasks):
                V[lane, : self.m, : cell.d_model] = torch.from_numpy(task.messages)
        self.X_Lmd, self.V_Lmv = X.to(device), V.to(device)
        kind = MatrixLabels if cell.graph.balanced else TargetLabels
        self.labels = kind(self.tasks, device, dtype)
        self._allocate()

    def _allocate(self) -> None:
        L, new = len(self.tasks), self.X_Lmd.new_empty
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
        shape = (count, len(self.tasks), self.length)
        nodes = np.full(shape, self.m, dtype=np.int64)
        for lane, task in enumerate(self.tasks):
            drawn = task.training_contexts(first, count)
            nodes[:, lane, : drawn.shape[1]] = drawn
        nodes += self.first_row
        self.block[:count].copy_(torch.from_numpy(nodes).flatten(1))
        self.cursor.zero_()

    def advance(self) -> None:
        """Go to the next context of the block; touches the device alone, so it can be captured."""
        torch.index_select(self.block, 0, self.cursor, out=self.rows)
        self.cursor.add_(1)
        rows = self.rows.view(-1)
        torch.index_select(self.X_Lmd.view(-1, self.d), 0, rows, out=self.X_Lld.view(-1, self.d))
        if self.V_Lmv.numel():
            width = self.V_Lmv.shape[2]
            messages = self.V_Lmv.view(-1, width), self.V_Llv.view(-1, width)
            torch.index_select(messages[0], 0, rows, out=messages[1])
        self.labels.label(rows, self.y_Lll)
