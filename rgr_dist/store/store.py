"""The store: a folder or bucket of Parquet files that holds every run ever trained.

    runs/part-TIME-DIGEST.parquet      one row per run, addressed by run_id
    studies/<name>/study.yaml          the study as resolved
    studies/<name>/<table>.parquet     decisions, thresholds, all_pairs
    studies/<name>/report/             the report

A run found in two files counts once, or not at all if they contradict each other (``results``).
``storage`` reads and writes the files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs

from rgr_dist.faults import typed
from rgr_dist.store.lock import Lock
from rgr_dist.store.parts import (
    PARQUET_END,
    UNREADABLE,
    check_values,
    is_outdated,
    parse,
    parse_study_table,
    part_name,
    written,
)
from rgr_dist.store.results import COMPARED, once_each
from rgr_dist.store.schema import DECISIONS, RUNS, THRESHOLDS
from rgr_dist.store.storage import Storage, StoreError, short

if TYPE_CHECKING:
    import pandas as pd

STUDY_TABLES = {"thresholds": THRESHOLDS, "decisions": DECISIONS}
ORDER = ["model", "graph", "degree", "m", "d_model", "h", "d_k", "d_vo", "seed"]
COMPACT_ABOVE = 64
"""More parts than this are merged into one at the end of a study."""


def table_path(study: str, table: str) -> str:
    """Where in a store a table of a study lies: one of ``STUDY_TABLES``."""
    return f"studies/{study}/{table}.parquet"


class Store(Storage):
    """A store at a local path or at any URI that pyarrow opens.

    Attributes:
        damaged: why each part that could not be read was left out when the parts were last read,
            by its path in the store. One that was damaged before is read whole again. Tables of
            studies that could not be read, too.
        conflicting: the cell of each run that is left out, since it had several results when runs
            of its cell were last read.
        lost_starts: the files that should say where searches of cells started, and do not.

    Args:
        root: such as ``results/`` or ``s3://bucket/prefix``.

    Raises:
        StoreError: the URI cannot be opened.
    """

    def __init__(self, root: str | Path) -> None:
        super().__init__(root)
        self.damaged: dict[str, str] = {}
        self.conflicting: dict[str, str] = {}
        self.lost_starts: set[str] = set()
        self._is_outdated = False
        self._lock: Lock | None = None

    @contextmanager
    def held(self, does: str) -> Iterator[None]:
        """Hold the store, as the only driver that may write runs to it.

        Does nothing inside a block in which this object already holds the store.

        Args:
            does: the command, named to any driver that comes meanwhile: ``rgr run base-grid``.

        Raises:
            StoreError: another driver holds the store, or it cannot be written.
        """
        if self._lock is not None:
            yield
            return
        self.check_bucket()
        lock = Lock(self, does)
        with self.no_new_folders("drivers"):
            lock.acquire()
            self._lock = lock
            try:
                yield
            finally:
                self._lock = None
                lock.release()

    @property
    def left_out(self) -> list[str]:
        """What is left out or lost, and why, one line each."""
        told = [
            f"{path.removeprefix('runs/')} in {self.root} is damaged and was left out: {why}"
            for path, why in self.damaged.items()
        ]
        if count := len(self.conflicting):
            told.append(
                f"{count} run{'s' * (count > 1)} in {self.root} with more than one result: none of "
                f"them is used; rgr verify --store {typed(self.root)} names them"
            )
        told += (
            f"{path} in {self.root} does not say where the searches of some cells started: they "
            "start anew, and may need more runs to find their thresholds again"
            for path in self.lost_starts
        )
        return told

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Store runs durably, as one new part.

        Raises:
            StoreError: nothing was stored.
        """
        if rows:
            self.write_part(pa.Table.from_pylist([dict(row) for row in rows], schema=RUNS))

    def write_part(self, table: pa.Table) -> None:
        """Store a table of runs durably, as one new part.

        Raises:
            StoreError: nothing was stored: writing failed, or reading would refuse the rows.
        """
        try:
            check_values(table)
        except ValueError as error:
            raise StoreError(f"--store {self.root}: cannot store runs: {error}") from error
        content = written(table)
        self.write_bytes(f"runs/{part_name(content)}", content)

    def write_bytes(self, relative: str, content: bytes, sync: bool = True) -> None:
        """Store a file, as ``Storage`` does, unless this driver has lost the store.

        Raises:
            StoreError: it could not be stored, or this driver has lost the store.
        """
        if self._lock is not None:
            self._lock.check()
        super().write_bytes(relative, content, sync)

    def runs(
        self, cell_ids: Iterable[str] | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Every stored run, once; a failed attempt is dropped if another one succeeded.

        Leaves out unreadable parts (``damaged``) and runs with several results (``conflicting``).

        Args:
            cell_ids: only the runs of these cells; for none of them, no part is read.
            columns: only these columns; all if not given.

        Raises:
            StoreError: a column that there is not, or a part that cannot be read.
        """
        wanted = None if cell_ids is None else set(cell_ids)
        columns = RUNS.names if columns is None else list(columns)
        if unknown := {*columns} - {*RUNS.names}:
            raise StoreError(f"runs have no {', '.join(sorted(unknown))}")
        read = {*columns, *COMPARED, *ORDER}
        schema = pa.schema([field for field in RUNS if field.name in read])
        tables = () if wanted == set() else self.parts(wanted, schema).values()
        rows: pd.DataFrame = pa.concat_tables([schema.empty_table(), *tables]).to_pandas()
        kept, conflicting = once_each(rows)
        again = rows.loc[rows["run_id"].isin(conflicting), ["run_id", "cell_id"]]
        self.conflicting = {
            run: cell
            for run, cell in self.conflicting.items()
            if wanted is not None and cell not in wanted
        } | dict(again.itertuples(index=False, name=None))
        return kept.sort_values(ORDER, ignore_index=True)[columns]

    def parts(
        self, cell_ids: Collection[str] | None = None, schema: pa.Schema = RUNS
    ) -> dict[str, pa.Table]:
        """Rows of every readable part, by its path; ``damaged`` says what is wrong with the others.

        Starts over if a part is compacted away meanwhile.

        Args:
            cell_ids: only the runs of these cells.
            schema: only these columns of ``RUNS``; run_id must be among them.
        """
        for _ in range(5):
            with suppress(FileNotFoundError):
                return self._read_parts(cell_ids, schema)
        raise StoreError(
            f"--store {self.root}: its parts keep changing; is another study compacting it?"
        )

    def version(self) -> str:
        """A text that changes whenever runs are stored: a digest of the names of the parts.

        Raises:
            StoreError: the store cannot be listed.
        """
        return hashlib.sha256("\n".join(self._list_parts()).encode()).hexdigest()[:16]

    def compact(self, above: int = COMPACT_ABOVE) -> None:
        """Merge the parts into one if they are more than ``above`` or an older rgr-dist wrote one.

        Tools that read the folder may take its columns from the first part, so all parts must have
        the same; and an older rgr-dist's parts may lack a checksum over the whole file. A crash
        loses nothing: the merged part is complete before the first old one is deleted, and a run
        in both counts once. Rows that contradict each other are all kept.
        """
        parts = self.parts()
        if len(parts) <= above and not self._is_outdated:
            return
        merged = pa.concat_tables(parts.values())
        rows = merged.to_pandas()
        kept, conflicting = once_each(rows)
        is_kept = rows.index.isin(kept.index) | rows["run_id"].isin(conflicting)
        self.write_part(merged.filter(pa.array(is_kept)))
        for path in parts:
            self.remove(path)

    def studies(self) -> list[str]:
        """Names of the studies that have been run."""
        folders = self.files("studies")
        return sorted(f.base_name for f in folders if f.type == pafs.FileType.Directory)

    def no_folders(self) -> list[str]:
        """Names of what lies among the folders of studies and is none."""
        others = (f for f in self.files("studies") if f.type != pafs.FileType.Directory)
        return [one.base_name for one in others if not one.base_name.startswith(".")]

    def write_study_table(self, name: str, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Replace a table of a study: one of ``STUDY_TABLES``."""
        schema = STUDY_TABLES[table]
        content = pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
        self.write_bytes(table_path(name, table), written(content))
        self.damaged.pop(table_path(name, table), None)

    def read_study_table(self, name: str, table: str) -> pd.DataFrame | None:
        """A table of a study; None if it has not been written, or is damaged (``damaged``)."""
        path = table_path(name, table)
        self.damaged.pop(path, None)
        content = self.read_bytes(path, PARQUET_END)
        if content is None:
            return None
        try:
            frame: pd.DataFrame = parse_study_table(content, table, STUDY_TABLES[table]).to_pandas()
        except UNREADABLE as error:
            self.damaged[path] = short(error)
            return None
        return frame

    def _read_parts(
        self, cell_ids: Collection[str] | None, schema: pa.Schema
    ) -> dict[str, pa.Table]:
        """Like ``parts``, in a single attempt.

        Raises:
            FileNotFoundError: a part was gone before it could be read.
        """
        before, self._is_outdated, found = self.damaged, False, {}
        self.damaged = {path: why for path, why in before.items() if not path.startswith("runs/")}
        for path, kind in self._list_parts().items():
            if kind is not pafs.FileType.File:
                self.damaged[path] = "it is no file"
                continue
            content, name = self.read_bytes(path, PARQUET_END), Path(path).name
            if content is None:
                raise FileNotFoundError
            try:
                whole = RUNS if path in before else schema  # its fault may be in any column
                found[path] = parse(content, name, cell_ids, whole).select(schema.names)
                self._is_outdated |= is_outdated(name, content)
            except UNREADABLE as error:
                self.damaged[path] = short(error)
        return found

    def _list_parts(self) -> dict[str, pafs.FileType]:
        """Paths of the parts in the store, oldest first, each with its type: file or folder."""
        kinds = {f"runs/{file.base_name}": file.type for file in self.files("runs")}
        names = (path for path in kinds if path.endswith(".parquet") and path[5] not in "._")
        return {path: kinds[path] for path in sorted(names)}
