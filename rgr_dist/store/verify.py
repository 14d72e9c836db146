"""Checks a store whole, and puts right what can be: the verb ``rgr verify``.

Reading a store already leaves out each part that is damaged as a file. This looks at the rows: a
row must be stored at the address of its own config, and its columns must say what its config does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa

from rgr_dist.store.parts import has_digest
from rgr_dist.store.row import cell_columns
from rgr_dist.store.store import STUDY_TABLES, Store
from rgr_dist.study.cell import PROTOCOL, Cell, canonical_json
from rgr_dist.study.document import load_yaml

COLUMNS = (
    "cell_id", "model", "graph", "degree", "embedding", "m", "d_model", "context_length",
    "positive_rate", "max_steps", "h", "d_k", "D_K", "d_vo", "seed",
)  # fmt: skip
"""Columns that follow from a row's config."""
ROWS_AT_ONCE = 10_000
"""Rows that are checked at once; a bound on memory."""


@dataclass(frozen=True)
class Problem:
    """Something that a store should not hold.

    Attributes:
        file: its path in the store.
        problem: what is wrong, in words.
        rows: how many rows of the file; None where it is the whole file.
    """

    file: str
    problem: str
    rows: int | None = None


@dataclass
class Verified:
    """What a check of a store found.

    Attributes:
        parts, rows: how many were read.
        without_checksum: parts that an older rgr-dist wrote: the next run merges them into one.
        repeated: rows of runs that are stored already: harmless, since a run counts once.
        problems: what ``repair`` sets aside.
        sound: the rows that are left of a part some rows of which are wrong, by its path.
    """

    parts: int = 0
    rows: int = 0
    without_checksum: int = 0
    repeated: int = 0
    problems: list[Problem] = field(default_factory=list)
    sound: dict[str, pa.Table] = field(default_factory=dict)


def verify(store: Store) -> Verified:
    """Check every part, every row, and what is kept of every study.

    Raises:
        StoreError: the store cannot be read, or a newer rgr-dist wrote it.
    """
    found = Verified()
    ids: set[str] = set()
    for file, table in store.parts().items():
        known = table["run_id"].to_pylist()
        found.parts += 1
        found.rows += len(known)
        found.without_checksum += not has_digest(file)
        found.repeated += len(known) - len(set(known) - ids)
        ids.update(known)
        batches = table.select(["run_id", "config", *COLUMNS]).to_batches(ROWS_AT_ONCE)
        faults = [_fault(row) for batch in batches for row in batch.to_pylist()]
        for fault in sorted(set(faults) - {""}):
            found.problems.append(Problem(file, fault, faults.count(fault)))
        if any(faults):
            found.sound[file] = table.filter(pa.array([not fault for fault in faults]))
    found.problems[:0] = [Problem(file, why) for file, why in store.damaged.items()]
    found.problems += _broken_of_studies(store)
    return found


def repair(store: Store, found: Verified) -> None:
    """Move what is wrong to ``damaged/``, and keep the sound rows of a part in a new one.

    Rows that stand twice are merged. What was set aside is trained or written again by the next
    run of its study.

    Raises:
        StoreError: a file could not be moved or written.
    """
    for sound in found.sound.values():
        if sound.num_rows:
            store.write_part(sound)
    for file in dict.fromkeys(problem.file for problem in found.problems):
        store.set_aside(file)
    if found.repeated:
        store.compact(above=1)


def _fault(row: dict[str, Any]) -> str:
    """What is wrong with a row; empty where nothing is."""
    text = row["config"]
    if hashlib.sha256(text.encode()).hexdigest()[:32] != row["run_id"]:
        return "its config does not hash to its run_id"
    config = json.loads(text)
    if config["protocol"] != PROTOCOL:
        return ""  # no study asks for it, and its columns cannot be worked out
    of_cell = _columns_of(canonical_json(config["cell"]))
    if of_cell is None:
        return "its config no longer hashes to its run_id: this rgr-dist writes it otherwise"
    expected = {"d_vo": None, **config, **of_cell, "D_K": config["h"] * config["d_k"]}
    wrong = [key for key in COLUMNS if row[key] != expected[key]]
    return f"its {wrong[0]} is not that of its config" if wrong else ""


@cache
def _columns_of(text: str) -> dict[str, Any] | None:
    """What a cell's rows say of it; None where its JSON is not what is hashed today."""
    try:
        cell = Cell.model_validate_json(text)
    except ValueError:
        return None
    is_same = canonical_json(cell.model_dump(mode="json")) == text
    return cell_columns(cell) if is_same else None


def _broken_of_studies(store: Store) -> Iterator[Problem]:
    """What is kept of a study beside its runs and cannot be read."""
    for name in store.studies():
        there = {file.base_name for file in store.files(f"studies/{name}")}
        for table in STUDY_TABLES:
            file = f"{table}.parquet"
            if file in there and store.read_study_table(name, table) is None:
                yield Problem(f"studies/{name}/{file}", "cannot be read")
        for file, parse in (("study.yaml", load_yaml), ("prior.json", json.loads)):
            try:
                parse(store.read_text(f"studies/{name}/{file}") or "{}")
            except ValueError:
                yield Problem(f"studies/{name}/{file}", "cannot be read")
