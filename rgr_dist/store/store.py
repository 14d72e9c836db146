"""The store: a folder or bucket of Parquet files that holds every run ever trained.

    runs/part-TIME-ID.parquet          one row per run, addressed by run_id
    studies/<name>/study.json          the study as resolved, and arrays.npz of files that it names
    studies/<name>/<table>.parquet     thresholds and best, which the report is made from
    studies/<name>/report/             the report

A part is complete once it has its name, and never changes. A run found in two parts counts once:
the first that finished, and a failed attempt only if there is no other. So drivers may write at the
same time, and what a killed one leaves behind is whole parts, and hidden files that nobody reads.
"""

from __future__ import annotations

import io
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic_core import from_json

from rgr_dist.store.schema import RUNS
from rgr_dist.store.storage import Storage, StoreError, reason
from rgr_dist.study import assets
from rgr_dist.study.errors import StudyError, validated, within
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import load_study
from rgr_dist.study.yaml_document import is_known

if TYPE_CHECKING:
    import pandas as pd

ORDER = ["model", "graph", "degree", "m", "d_model", "h", "d_k", "seed"]
COMPACT_ABOVE = 64
"""More parts than this are merged into one at the end of a study."""
UNREADABLE = (pa.ArrowException, OSError, ValueError)
"""What reading a damaged part raises."""


class Store(Storage):
    """A store at a local path or at any URI that pyarrow opens.

    Attributes:
        unreadable: why each part that cannot be read was left out, by its path in the store.
        reads: how many parts have been read; each is read once.

    Args:
        root: such as ``results/`` or ``s3://bucket/prefix``.

    Raises:
        StoreError: it cannot be opened.
    """

    def __init__(self, root: str | Any) -> None:
        super().__init__(root)
        self.unreadable: dict[str, str] = {}
        self.reads = 0
        self._parts: dict[str, pa.Table] = {}
        self._runs: tuple[list[str], pd.DataFrame] | None = None
        self._held: set[str] = set()

    @property
    def exists(self) -> bool:
        """Whether anything was ever stored in it."""
        return bool(self.files("runs") or self.files("studies"))

    @property
    def left_out(self) -> list[str]:
        """The parts that are left out, and why, one line each."""
        return [
            f"{path} in {self.root} cannot be read and was left out: {why}"
            for path, why in self.unreadable.items()
        ]

    @contextmanager
    def held(self, study: str) -> Iterator[None]:
        """Be the only driver of a study in a local store; does nothing if this object is already.

        Other studies may run in the same store. In a bucket nothing is held: two drivers of one
        study train some of its runs twice, which does no harm.

        Raises:
            StoreError: another driver runs the study, or the store cannot be written.
        """
        if self.local_path is None or study in self._held:
            yield
            return
        from filelock import FileLock, Timeout

        folder = self.local_path / "studies" / study
        with self._reported("cannot be written"):
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / ".lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise StoreError(
                    f"--store {self.root}: another driver runs {study}; wait for it, or give "
                    "another --store"
                ) from None
        self._held.add(study)
        try:
            yield
        finally:
            self._held.discard(study)
            lock.release()
            if [path.name for path in folder.iterdir()] == [".lock"]:  # nothing was stored
                (folder / ".lock").unlink(missing_ok=True)
                with suppress(OSError):  # others are in use
                    for path in (folder, folder.parent, self.local_path):
                        path.rmdir()

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
            StoreError: nothing was stored.
        """
        name = f"part-{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.parquet"
        self.write_bytes(f"runs/{name}", _as_parquet(table))

    def runs(
        self, cell_ids: Iterable[str] | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Every stored run, once, in the order of ``ORDER``; unreadable parts are left out.

        Args:
            cell_ids: only the runs of these cells.
            columns: only these columns; all if not given.

        Raises:
            StoreError: the store cannot be read.
        """
        parts = self.parts()
        if self._runs is None or self._runs[0] != list(parts):
            merged = pa.concat_tables([RUNS.empty_table(), *parts.values()]).to_pandas()
            self._runs = list(parts), once_each(merged).sort_values(ORDER, ignore_index=True)
        frame = self._runs[1]
        if cell_ids is not None:
            frame = frame[frame["cell_id"].isin(set(cell_ids))].reset_index(drop=True)
        return frame[list(columns)] if columns is not None else frame.copy(deep=False)

    def parts(self) -> dict[str, pa.Table]:
        """The rows of every readable part, by its path, oldest first; each is read once.

        Raises:
            StoreError: the store cannot be listed.
        """
        for _ in range(5):
            with suppress(FileNotFoundError):  # compacted away meanwhile
                return self._read_parts()
        raise StoreError(f"--store {self.root}: its parts keep changing")

    def _list_parts(self) -> list[str]:
        """The paths of the parts, oldest first."""
        names = (str(entry.base_name) for entry in self.files("runs"))
        return [f"runs/{x}" for x in names if x.endswith(".parquet") and x[0] not in "._"]

    def compact(self, above: int = COMPACT_ABOVE) -> None:
        """Merge the readable parts into one if they are more than ``above``.

        The merged part is complete before the first old one is deleted, and a run in both counts
        once, so a crash loses nothing. Rows that disagree are all kept, for ``rgr verify``.
        """
        parts = self.parts()
        if len(parts) <= above:
            return
        merged = pa.concat_tables(parts.values())
        rows = merged.to_pandas()
        self.write_part(merged.filter(pa.array(~rows.drop(columns="config").duplicated())))
        for path in parts:
            self.remove(path)

    def studies(self) -> list[str]:
        """Names of the studies that have been run."""
        return [str(one.base_name) for one in self.files("studies") if one.type.name == "Directory"]

    def study(self, source: str, overrides: Sequence[str] = ()) -> Study:
        """A shipped study by its name, a study file by its path, or a study that was run here.

        Raises:
            StudyError: there is none, or it is not valid.
        """
        text = None
        if not is_known(source) and source in self.studies():
            text = self.read_text(f"studies/{source}/study.json")
        if text is None:
            return load_study(source, overrides)
        if overrides:
            raise StudyError(f"study {source}: as it was run here; --set needs its own file")
        content = self.read_bytes(f"studies/{source}/arrays.npz")
        if content is not None:
            assets.take(dict(np.load(io.BytesIO(content), allow_pickle=False)))
        with within(f"{self.address(f'studies/{source}/study.json')}: "):
            return validated(Study, from_json(text))

    def write_study(self, study: Study) -> None:
        """Keep a study as resolved, with the arrays of the files that it names.

        Raises:
            StoreError: it could not be stored.
        """
        if arrays := assets.needed(study.cells):
            content = io.BytesIO()
            np.savez(content, allow_pickle=False, **arrays)
            self.write_bytes(f"studies/{study.name}/arrays.npz", content.getvalue())
        self.write_text(f"studies/{study.name}/study.json", study.model_dump_json(indent=2))

    def _read_parts(self) -> dict[str, pa.Table]:
        """Like ``parts``; raises FileNotFoundError if a part was gone before it could be read."""
        paths = self._list_parts()
        self._parts = {path: self._parts[path] for path in paths if path in self._parts}
        self.unreadable = {path: why for path, why in self.unreadable.items() if path in paths}
        for path in paths:
            if path in self._parts or path in self.unreadable:
                continue
            content = self.read_bytes(path)
            if content is None:
                raise FileNotFoundError
            self.reads += 1
            try:
                self._parts[path] = as_runs(_read(content))
            except UNREADABLE as error:
                self.unreadable[path] = reason(error)
        return {path: self._parts[path] for path in paths if path in self._parts}


def once_each(runs: pd.DataFrame) -> pd.DataFrame:
    """One row for each run: its first success, or else its first failure."""
    if not runs["run_id"].duplicated().any():
        return runs
    failed = runs["stop_reason"] == "failed"
    in_order = runs.assign(_failed=failed).sort_values(["_failed", "finished_at"], kind="stable")
    return in_order.drop_duplicates("run_id").drop(columns="_failed")


def as_runs(table: pa.Table) -> pa.Table:
    """The columns of ``RUNS``; those that a table lacks are null.

    Raises:
        ArrowException: a column is of another type.
    """
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in RUNS
    ]
    return pa.table(columns, schema=RUNS)


def _as_parquet(table: pa.Table) -> bytes:
    content = io.BytesIO()
    pq.write_table(table, content, compression="zstd", write_page_checksum=True)
    return content.getvalue()


def _read(content: bytes) -> pa.Table:
    """A table from the bytes of a Parquet file, whose pages have checksums."""
    return pq.ParquetFile(io.BytesIO(content), page_checksum_verification=True).read()
