"""Checks a whole store, and repairs what can be repaired: the verb ``rgr verify``.

Reading a store already leaves out each part that is damaged as a file. This module checks the rows:
a row's run_id must be the hash of its config, its columns must agree with its config, and no other
row of its run may have a different result.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileType
from pydantic import TypeAdapter

from rgr_dist.store.parts import has_digest
from rgr_dist.store.prior import parse_prior
from rgr_dist.store.results import COMPARED, agree, once_each
from rgr_dist.store.row import cell_columns
from rgr_dist.store.schema import RUNS
from rgr_dist.store.store import STUDY_TABLES, Store
from rgr_dist.study.address import PROTOCOL, canonical_json
from rgr_dist.study.cell import Cell
from rgr_dist.study.yaml_document import load_yaml

Row = dict[str, Any]
ROWS_AT_ONCE = 10_000
"""Rows that are checked at once, to bound memory."""


@dataclass(frozen=True)
class Problem:
    """Something that a store should not hold.

    Attributes:
        file: its path in the store.
        problem: what is wrong, in words.
        rows: how many rows of the file are affected; None if it is the whole file.
    """

    file: str
    problem: str
    rows: int | None = None


@dataclass
class Verified:
    """What a check of a store found.

    Attributes:
        parts, rows: how many were read.
        without_checksum: how many an older rgr-dist wrote; the next run merges them into one.
        repeated: how many rows repeat a run: harmless, since a run counts once.
        problems: what ``repair`` sets aside.
        sound: for each part with some wrong rows, its other rows, by its path.
        conflicting: the otherwise sound rows of runs with several results, without failed ones.
    """

    parts: int = 0
    rows: int = 0
    without_checksum: int = 0
    repeated: int = 0
    problems: list[Problem] = field(default_factory=list)
    sound: dict[str, pa.Table] = field(default_factory=dict)
    conflicting: list[Row] = field(default_factory=list)


def verify(store: Store, deep: bool = True) -> Verified:
    """Check every part, every row, and the files of every study.

    Args:
        deep: whether to compare rows with their config, and to check the files of studies.

    Raises:
        StoreError: the store cannot be read, or a newer rgr-dist wrote it.
    """
    parts = store.parts()
    merged = pa.concat_tables([RUNS.empty_table(), *parts.values()])
    kept, conflicting = once_each(merged.select(COMPARED).to_pandas())
    found = Verified(len(parts), merged.num_rows, sum(not has_digest(file) for file in parts))
    for file, table in parts.items():
        faults = []
        batches = table.to_batches(ROWS_AT_ONCE) if deep or conflicting else ()
        for row in itertools.chain.from_iterable(batch.to_pylist() for batch in batches):
            faults.append(_fault(row) if deep else "")
            if row["run_id"] in conflicting and not faults[-1]:
                faults[-1] = _origin(row)  # a failed attempt too: left alone, it would count
                if row["stop_reason"] != "failed":
                    found.conflicting.append(row)
        for fault in sorted(set(faults) - {""}):
            found.problems.append(Problem(file, fault, faults.count(fault)))
        if any(faults):
            found.sound[file] = table.filter(pa.array([not fault for fault in faults]))
    found.repeated = found.rows - len(kept) - len(found.conflicting)
    found.problems[:0] = [Problem(file, why) for file, why in store.damaged.items()]
    found.problems += _broken_of_studies(store) if deep else ()
    return found


def repair(store: Store, found: Verified, train: Callable[[Row], Row | None]) -> int:
    """Move files with problems to ``damaged/``, and keep the sound rows of a part in a new part.

    A run with several results is trained again: the row that this confirms is kept or, if there is
    none, the new row. Repeated rows are merged. The next run of a study trains or writes again
    whatever else was set aside.

    Args:
        train: trains the run of a row again; returns the new row, or None if it cannot.

    Returns:
        How many runs were trained again.

    Raises:
        StoreError: a file could not be moved or written.
    """
    trained = 0
    for run_id in dict.fromkeys(row["run_id"] for row in found.conflicting):
        rows = [row for row in found.conflicting if row["run_id"] == run_id]
        again = train(rows[0])
        if again is not None:
            trained += 1
            store.append([next((row for row in rows if agree(row, again)), again)])
    for file in dict.fromkeys(problem.file for problem in found.problems):
        if file in found.sound and found.sound[file].num_rows:
            store.write_part(found.sound[file])
        store.set_aside(file)
    if found.repeated:
        store.compact(above=0)
    store.conflicting.clear()
    return trained


def set_damage_aside(store: Store) -> list[str]:
    """Move to ``damaged/`` the parts that cannot be read, and rows that contradict each other.

    Other tools can then read the folder again, and the runs that were lost are trained again.

    Returns:
        One line for each part, and one for the rows.
    """
    found = verify(store, deep=False)
    repair(store, found, lambda row: None)
    told = [f"{Path(one.file).name}: {one.problem}" for one in found.problems if one.rows is None]
    if count := len({row["run_id"] for row in found.conflicting}):
        told.append(f"{count} run{'s' * (count > 1)} with more than one result")
    return [f"{line}; moved to damaged/ in {store.root}, and trained again" for line in told]


def _origin(row: Row) -> str:
    """The fault of a row whose run has other results too: says where this result comes from."""
    score = "no score" if row["score"] is None else f"score {row['score']}"
    return (
        f"run {row['run_id']} has other results too: here {score}, {row['stop_reason']} after "
        f"{row['steps']} steps, by {row['engine']} on {row['device']}, {row['finished_at']:%F %T}"
    )


def _fault(row: Row) -> str:
    """What is wrong with a row; empty if nothing is."""
    text = row["config"]
    if hashlib.sha256(text.encode()).hexdigest()[:32] != row["run_id"]:
        return "its config does not hash to its run_id"
    try:
        config = json.loads(text)
        if config["protocol"] != PROTOCOL:
            return ""  # no study asks for it, and its columns cannot be worked out
        of_cell = _columns_of(canonical_json(config["cell"]))
        expected = {name: config[name] for name in ("h", "d_k", "seed")}
        h, d_vo = config["h"], config.get("d_vo")
        expected |= {"D_K": h * config["d_k"], "d_vo": d_vo, "D_V": d_vo and h * d_vo}
    except (ValueError, LookupError, TypeError, RecursionError):
        return "its config is not that of a run"
    if of_cell is None:
        return "its config no longer hashes to its run_id: this rgr-dist writes it otherwise"
    if row["error"] is not None and row["stop_reason"] != "failed":
        return "it has an error, and its run did not fail"
    if row["score"] is not None and row["stop_reason"] == "failed":
        return "it has a score, and its run failed"
    wrong = [key for key, value in (expected | of_cell).items() if row[key] != value]
    return f"its {wrong[0]} is not that of its config" if wrong else ""


@cache
def _columns_of(text: str) -> dict[str, Any] | None:
    """The columns that describe a cell; None if its JSON is not what this rgr-dist would hash."""
    try:
        cell = Cell.model_validate_json(text)
    except ValueError:
        return None
    is_same = canonical_json(cell.model_dump(mode="json")) == text
    return cell_columns(cell) if is_same else None


def _lines_of(journal: str) -> list[Row]:
    """The lines of a journal as JSON; the last may be unfinished, unless it is the only one."""
    lines = journal.splitlines()
    whole = lines[: max(1, journal.count("\n"))]
    return [TypeAdapter(Row).validate_json(line) for line in whole]


def _broken_of_studies(store: Store) -> Iterator[Problem]:
    """The files of studies, in addition to runs, that cannot be read."""
    parse: dict[str, Callable[[str], Any]] = {
        "study.yaml": load_yaml,
        "prior.json": parse_prior,
        "laws.json": TypeAdapter(dict[str, Any]).validate_json,
        "written.json": TypeAdapter(dict[str, Any]).validate_json,
        "tuning.journal": _lines_of,
    }
    yield from (Problem(f"studies/{name}", "it is no folder") for name in store.no_folders())
    for name in store.studies():
        for there in store.files(f"studies/{name}"):
            path, table = f"studies/{name}/{there.base_name}", Path(there.base_name).stem
            try:
                is_read = there.type in (FileType.File, FileType.Directory)
                if f"{table}.parquet" == there.base_name and table in STUDY_TABLES:
                    is_read = store.read_study_table(name, table) is not None
                if there.base_name in parse:
                    text = store.read_text(path) if there.type is FileType.File else None
                    is_read = text is not None and parse[there.base_name](text) is not None
            except (ValueError, RecursionError):
                is_read = False
            if not is_read:
                yield Problem(path, store.damaged.get(path, "cannot be read"))
