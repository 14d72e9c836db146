"""A resolved study: its cells, and how to search them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, SerializeAsAny

from rgr_dist.study.cell import Cell
from rgr_dist.study.models import ROOM_PARTS, Model
from rgr_dist.study.search import Search
from rgr_dist.study.spec import Spec

FILES = ("graph", "embedding", *ROOM_PARTS)
"""Parts of a cell that may be read from files."""


class Study(Spec):
    """A resolved study: its name, its cells in order, and how to search them.

    Attributes:
        files: the file of each array by its digest, and what was read; no result depends on them.
        document: the keys of its study file; no result depends on them.
    """

    name: str
    cells: tuple[SerializeAsAny[Cell], ...]
    search: Search
    files: dict[str, dict[str, Any]] = Field(default_factory=dict)
    document: dict[str, Any] = Field(default_factory=dict, repr=False)

    def __eq__(self, other: object) -> bool:
        """Whether the other asks for the same, however its file says so."""
        keys = ("name", "cells", "search", "files")
        return isinstance(other, Study) and all(getattr(self, k) == getattr(other, k) for k in keys)

    @property
    def record(self) -> Model:
        """The record of the study's model, or of the first of several."""
        return self.cells[0].record

    def target_of(self, cell: Cell) -> float:
        """The passing score of a cell: that of its model, if not the first; else the search's."""
        own = None if cell.model == self.cells[0].model else cell.record.target
        return own or self.search.target

    @cached_property
    def budgets(self) -> dict[str, tuple[Cell, ...]]:
        """The cells that differ from a cell only in their step limit, by that cell's cell_id.

        The cell itself is one of them; they are in the order of their limits.
        """
        alike: dict[Cell, list[Cell]] = {}
        for cell in self.cells:
            alike.setdefault(cell.with_limit(1), []).append(cell)
        families = [
            tuple(sorted(cells, key=lambda cell: cell.training.max_steps))
            for cells in alike.values()
        ]
        return {cell.cell_id: family for family in families for cell in family}

    @property
    def has_budgets(self) -> bool:
        """Whether any cell has more than one step limit."""
        return any(len(family) > 1 for family in self.budgets.values())

    @cached_property
    def cell_names(self) -> dict[str, str]:
        """The name of each cell by its cell_id: ``m=64,d_model=16``, and what tells it apart.

        Cells of one size add the keys in which they differ from the first of them, such as
        ``max_steps=80000``; where they differ in their files, each adds its own's name.
        """
        by_name: dict[str, list[Cell]] = {}
        for cell in self.cells:
            by_name.setdefault(cell.name, []).append(cell)
        return {
            cell.cell_id: ",".join([name, *own])
            for name, alike in by_name.items()
            for cell, own in zip(alike, self._differences(alike), strict=True)
        }

    def name_of(self, cell: Cell) -> str:
        """The name by which the command line knows a cell of this study."""
        return self.cell_names[cell.cell_id]

    @cached_property
    def differences(self) -> dict[str, str]:
        """What the name of each cell adds to its size and degree, by its cell_id."""
        return {
            cell.cell_id: self.name_of(cell).removeprefix(cell.name).removeprefix(",")
            for cell in self.cells
        }

    @cached_property
    def has_alike_cells(self) -> bool:
        """Whether size and degree do not suffice to tell the cells apart."""
        return any(self.differences.values())

    def _differences(self, alike: Sequence[Cell]) -> list[list[str]]:
        """For each of several cells, ``key=value`` wherever it is not as the first of them."""
        flat = [self.keys_of(cell) for cell in alike]
        keys = list(dict.fromkeys(key for one in flat for key in one))
        bare = [key for key in keys if not key.endswith(".digest")]
        if len({tuple(one.get(key) for key in bare) for one in flat}) == len(flat):
            keys = bare
        named = [key for key in keys if key.endswith(".file")]
        files = [key for key in named if len({one[key] for one in flat if key in one}) > 1]
        return [
            [
                f"{key.split('.')[-1]}={_plain(own[key])}"
                for key in keys
                if key in own and (key in files or own[key] != flat[0].get(key, False))
            ]
            for own in flat
        ]

    def keys_of(self, cell: Cell) -> dict[str, Any]:
        """The keys in which cells of one size can differ."""
        trained = {
            f"{part}.{key}": value
            for part in ("context", "training")
            for key, value in dict(getattr(cell, part)).items()
            if key in (cell.record.parts[part] or ())
        }
        own = cell.own_keys
        for part in FILES:
            if digest := getattr(getattr(cell, part, None), "digest", None):
                kept = self.files.get(digest, {})
                own |= {f"{part}.{key}": value for key, value in kept.get("made", {}).items()}
                own[f"{part}.file"] = Path(kept.get("file", "")).name
                own[f"{part}.digest"] = digest[:8]
        return {"model": cell.model_name, **trained, **own}

    def to_yaml(self) -> str:
        """The keys of its study file, with what overrides changed."""
        return yaml.safe_dump(self.document, sort_keys=False)

    @property
    def read(self) -> list[str]:
        """What was read from the files that it names, in words."""
        return [*dict.fromkeys(kept["read"] for kept in self.files.values() if "read" in kept)]


def _plain(value: Any) -> Any:
    """A value as people write it: 30 for 30.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
