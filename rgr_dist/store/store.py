"""The store: a folder or bucket of Parquet files that holds every run ever trained.

    runs/part-TIME-DIGEST.parquet      one row per run, addressed by run_id
    studies/<name>/study.yaml          the study as resolved
    studies/<name>/<table>.parquet     decisions, thresholds, all_pairs
    studies/<name>/report/             the report

A file appears under its name only once it is complete: on a local disk it is written under
a hidden name, synced and renamed; on object storage a write is one PUT. A run found in two
files counts once. One driver writes, and says so in ``drivers/``; many may read.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from rgr_dist.store.lease import Lease, leased
from rgr_dist.store.parts import (
    StoreError,
    has_digest,
    parse,
    part_name,
    short,
    version_of,
    within,
    write_atomically,
    written,
)
from rgr_dist.store.schema import ALL_PAIRS, DECISIONS, RUNS, SCHEMA_VERSION, THRESHOLDS

if TYPE_CHECKING:
    import pandas as pd

STUDY_TABLES = {"thresholds": THRESHOLDS, "decisions": DECISIONS, "all_pairs": ALL_PAIRS}
ANSWER_WITHIN = 60.0
"""Seconds to wait for object storage to answer."""
HALF_WRITTEN_FOR = 600.0
"""Seconds after which a file that somebody was writing under a hidden name is left over."""
COMPACT_ABOVE = 64
"""More parts than this are merged into one at the end of a study."""


class Store:
    """A store at a local path or at any URI that pyarrow opens.

    Attributes:
        damaged: why each part was left out that could not be read, by its path in the store, when
            the parts were last read.

    Args:
        root: such as ``results/`` or ``s3://bucket/prefix``.

    Raises:
        StoreError: the URI cannot be opened.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = str(root)
        if not self.root.strip():
            raise StoreError("--out: empty; give a folder or URI")
        try:
            if "://" in self.root:
                self._fs, self._path = within(ANSWER_WITHIN, lambda: _opened(self.root))
                if not self._path:
                    raise ValueError("it names no folder or bucket")
            else:
                self._fs, self._path = pafs.LocalFileSystem(), str(Path(self.root).absolute())
            if self.local_path is not None:
                with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                    self.local_path.stat()  # refuses what is no path: too long, or a zero byte
        except (OSError, pa.ArrowInvalid, ValueError) as error:
            raise StoreError(f"--out {self.root}: cannot be opened: {short(error)}") from None
        self.damaged: dict[str, str] = {}
        self._is_outdated = False
        self._made: set[str] = set()  # folders of object storage
        self._lease: Lease | None = None

    @contextmanager
    def held(self, does: str) -> Iterator[None]:
        """Be the one driver that writes runs here.

        Args:
            does: the command, for whoever comes meanwhile: ``rgr run base-grid``.

        Raises:
            StoreError: another driver holds the store, or it cannot be written.
        """
        before = [folder for folder in self._folders("drivers") if not self._exists(folder)]
        try:
            with leased(self, self.root, does) as self._lease:
                self._sweep()
                yield
        finally:
            self._lease = None
            for folder in before:
                self._remove_if_empty(folder)

    def _sweep(self) -> None:
        """Remove what drivers left that were killed as they wrote."""
        if self.local_path is None:
            return
        for half in self.local_path.glob("runs/.part-*.parquet.*"):
            half.unlink(missing_ok=True)  # parts are written by drivers alone
        for pattern in ("runs/.probe-*", "drivers/.*.json.*", "studies/*/.*"):
            for half in self.local_path.glob(pattern):
                with suppress(OSError):  # others may be writing such files just now
                    if half.is_file() and time.time() - half.stat().st_mtime > HALF_WRITTEN_FOR:
                        half.unlink()

    def write_driver(self, name: str, text: str) -> None:
        """Say who writes the store.

        Raises:
            StoreError: it could not be stored.
        """
        with suppress(OSError, pa.ArrowException):  # another driver may just remove the folder
            self._write(f"drivers/{name}", text.encode())
            return
        self._store(f"drivers/{name}", text.encode())

    def remove_driver(self, name: str) -> None:
        """Take back who writes the store, if it was said."""
        with suppress(FileNotFoundError):
            self._fs.delete_file(f"{self._path}/drivers/{name}")

    def drivers(self) -> dict[str, datetime | None]:
        """Who said so: the names of their files, and when each was last written."""
        selector = pafs.FileSelector(f"{self._path}/drivers", allow_not_found=True)
        with self._reading():
            files = self._fs.get_file_info(selector)
        return {i.base_name: i.mtime for i in files if i.base_name.endswith(".json")}

    def read_driver(self, name: str) -> str | None:
        """What one of them said; None if it was taken back."""
        try:
            return self.read_text(f"drivers/{name}")
        except FileNotFoundError:
            return None

    @property
    def local_path(self) -> Path | None:
        """The store's folder, if it is on a local disk."""
        return Path(self._path) if isinstance(self._fs, pafs.LocalFileSystem) else None

    @property
    def log_folder(self) -> Path | None:
        """Where logs of runs that broke belong: beside the runs, if there is such a folder yet."""
        return self.local_path / "logs" if self.local_path and self.local_path.is_dir() else None

    def check_writable(self) -> None:
        """Check that files can be written here; leaves none behind.

        Raises:
            StoreError: they cannot.
        """
        before = [folder for folder in self._folders("runs") if not self._exists(folder)]
        try:
            if self.local_path is None:
                within(ANSWER_WITHIN, self._try_write)
            else:
                self._try_write()
        except (OSError, pa.ArrowException) as error:
            raise StoreError(
                f"--out {self.root}: cannot be written: {short(error)}; "
                "give a folder or URI where files can be made"
            ) from None
        finally:
            for folder in before:
                self._remove_if_empty(folder)

    def _try_write(self) -> None:
        self._fs.create_dir(f"{self._path}/runs")
        probe = f"runs/.probe-{uuid.uuid4().hex[:8]}"
        self._write(probe, b"")
        self._fs.delete_file(f"{self._path}/{probe}")

    def set_damaged_aside(self) -> dict[str, str]:
        """Move unreadable parts to ``damaged/``, so that other tools can read the folder again.

        Returns:
            Why each was unreadable, by the name of its file.
        """
        self._parts()
        for path in self.damaged:
            self.set_aside(path)
        return {Path(path).name: why for path, why in self.damaged.items()}

    def set_aside(self, relative: str) -> None:
        """Move a file to ``damaged/``, under its path with dashes for slashes.

        Raises:
            StoreError: it could not be moved.
        """
        name = relative.removeprefix("runs/").replace("/", "-")
        try:
            self._fs.create_dir(f"{self._path}/damaged")
            self._fs.move(f"{self._path}/{relative}", f"{self._path}/damaged/{name}")
        except OSError as error:
            raise StoreError(f"{self.root}: cannot move {relative}: {short(error)}") from None

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
        if self._lease is not None:
            self._lease.check()
        content = written(table)
        self._store(f"runs/{part_name(content)}", content)

    def runs(
        self, cell_ids: Iterable[str] | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Every stored run, once each; a failed try is dropped if another one succeeded.

        Unreadable parts are left out and listed in ``damaged``.

        Args:
            cell_ids: only the runs of these cells.
            columns: only these columns; all if not given.
        """
        wanted = None if cell_ids is None else set(cell_ids)
        schema = RUNS if columns is None else pa.schema([RUNS.field(name) for name in columns])
        tables = [table for _, table in self._parts(wanted, schema)]
        whole = pa.concat_tables([schema.empty_table(), *tables])
        tables.clear()
        frame: pd.DataFrame = whole.to_pandas(self_destruct=True)
        del whole
        widths = ["d_vo"] if "d_vo" in frame and frame["d_vo"].notna().any() else []
        order = ["model", "graph", "degree", "m", "d_model", "h", "d_k", *widths, "seed"]
        return _once_each(frame).sort_values(order, ignore_index=True)

    def parts(self) -> Iterator[tuple[str, pa.Table]]:
        """Path in the store and rows of every readable part; the others are in ``damaged``."""
        yield from self._parts()

    def has(self, relative: str) -> bool:
        """Whether there is a file of that path."""
        return self._exists(f"{self._path}/{relative}")

    def version(self) -> str:
        """A text that changes whenever runs are stored: a digest of the names of the parts.

        Raises:
            StoreError: the store cannot be listed.
        """
        return hashlib.sha256("\n".join(self._list_parts()).encode()).hexdigest()[:16]

    @property
    def is_empty(self) -> bool:
        """Whether it holds no run at all."""
        return not self._list_parts()

    def compact(self, above: int = COMPACT_ABOVE) -> None:
        """Merge the parts into one if there are more than ``above`` or one is of an older kind.

        Tools that read the folder may take its columns from the first part, so all must have the
        same; and what an older rgr-dist wrote has no checksum over the whole file. A crash loses
        nothing: the merged part is complete before the first old one is deleted, and a run in
        both counts once.
        """
        parts = self._parts()
        if len(parts) <= above and not self._is_outdated:
            return
        merged = pa.concat_tables([table for _, table in parts])
        kept = _once_each(merged.to_pandas()).index
        self.write_part(merged.take(sorted(kept)))
        for path, _ in parts:
            with suppress(FileNotFoundError):  # another driver compacts too
                self._fs.delete_file(f"{self._path}/{path}")

    def write_text(self, relative: str, text: str) -> None:
        """Store a text file, such as ``studies/<name>/study.yaml``.

        Raises:
            StoreError: it could not be stored.
        """
        self._store(relative, text.encode())

    def read_text(self, relative: str) -> str | None:
        """A stored text file, or None if there is none."""
        content = self.read_bytes(relative)
        return None if content is None else content.decode()

    def read_bytes(self, relative: str) -> bytes | None:
        """A stored file, or None if there is none."""
        path = f"{self._path}/{relative}"
        if not self._exists(path):
            return None
        with self._reading(), self._fs.open_input_file(path) as file:
            return bytes(file.read())

    def studies(self) -> list[str]:
        """Names of the studies that have been run."""
        selector = pafs.FileSelector(f"{self._path}/studies", allow_not_found=True)
        with self._reading():
            folders = self._fs.get_file_info(selector)
        return sorted(i.base_name for i in folders if i.type == pafs.FileType.Directory)

    def write_study_table(self, name: str, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Replace a table of a study: one of ``STUDY_TABLES``."""
        schema = STUDY_TABLES[table]
        content = pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
        self._store(f"studies/{name}/{table}.parquet", written(content))

    def read_study_table(self, name: str, table: str) -> pd.DataFrame | None:
        """A table of a study; None if it has not been written, or cannot be read."""
        path = f"{self._path}/studies/{name}/{table}.parquet"
        if not self._exists(path):
            return None
        try:
            with self._fs.open_input_file(path) as file:
                read = pq.read_table(
                    file, schema=STUDY_TABLES[table], page_checksum_verification=True
                )
            frame: pd.DataFrame = read.to_pandas()
        except (pa.ArrowException, OSError):  # it is derived from the runs and will be rewritten
            return None
        return frame

    def upload(self, folder: Path, destination: str) -> str:
        """Copy a local folder's files into the store; returns their location."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                relative = path.relative_to(folder).as_posix()
                self._store(f"{destination}/{relative}", path.read_bytes())
        root, mark, options = self.root.partition("?")
        return f"{root.rstrip('/')}/{destination}{mark}{options}"

    def _parts(
        self, cell_ids: Collection[str] | None = None, schema: pa.Schema = RUNS
    ) -> list[tuple[str, pa.Table]]:
        """Path in the store and rows of every readable part.

        Starts over if one is compacted away meanwhile.
        """
        for _ in range(5):
            self.damaged, self._is_outdated = {}, False
            parts = []
            try:
                for path in self._list_parts():
                    with self._reading(), self._fs.open_input_file(path) as file:
                        content = file.read()
                    name = Path(path).name
                    try:
                        parts.append((f"runs/{name}", parse(content, name, cell_ids, schema)))
                        self._is_outdated |= version_of(content) < SCHEMA_VERSION
                        self._is_outdated |= not has_digest(name)
                    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                        self.damaged[f"runs/{name}"] = short(error)
                return parts
            except FileNotFoundError:
                continue
        raise StoreError(f"{self.root}: its parts keep changing; is another study compacting it?")

    def _list_parts(self) -> list[str]:
        selector = pafs.FileSelector(f"{self._path}/runs", allow_not_found=True)
        with self._reading():
            files = self._fs.get_file_info(selector)
        names = [
            info.path
            for info in files
            if info.type == pafs.FileType.File and info.base_name.endswith(".parquet")
        ]
        return sorted(path for path in names if not Path(path).name.startswith((".", "_")))

    def _store(self, relative: str, data: bytes) -> None:
        try:
            self._write(relative, data)
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"{self.root}: cannot store {relative}: {short(error)}") from None

    def _write(self, relative: str, data: bytes) -> None:
        path = f"{self._path}/{relative}"
        folder = path.rsplit("/", 1)[0]
        if self.local_path is not None:
            self._fs.create_dir(folder)
            write_atomically(Path(path), data)
            return
        if folder not in self._made:  # each would be several requests more, every time
            self._fs.create_dir(folder)
            self._made.add(folder)
        with self._fs.open_output_stream(path) as stream:
            stream.write(data)

    def _folders(self, relative: str) -> list[str]:
        """A local folder and all its parents, deepest first; none on object storage."""
        if self.local_path is None:
            return []
        deepest = Path(self._path, relative)
        return [str(folder) for folder in (deepest, *deepest.parents)]

    def _exists(self, path: str) -> bool:
        with self._reading():
            return bool(self._fs.get_file_info(path).type != pafs.FileType.NotFound)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Say what cannot be read, unless it is just not there.

        Raises:
            StoreError: the storage does not answer, or refuses.
        """
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreError(f"--out {self.root}: cannot be read: {short(error)}") from None

    def _remove_if_empty(self, folder: str) -> None:
        with suppress(OSError):  # it is no longer empty
            Path(folder).rmdir()


def _opened(uri: str) -> tuple[pafs.FileSystem, str]:
    """The storage that a URI names, once it has answered, and the path there."""
    storage, path = pafs.FileSystem.from_uri(uri)
    if path and not isinstance(storage, pafs.LocalFileSystem):
        with suppress(OSError):  # whatever is asked of it next will say so
            storage.get_file_info(path)
    return storage, path


def _once_each(runs: pd.DataFrame) -> pd.DataFrame:
    """One row for each run: its first success, or else its first failure; failures come last."""
    in_order = runs.assign(_failed=runs["stop_reason"] == "failed").sort_values(
        ["_failed", "finished_at"]
    )
    return in_order.drop_duplicates("run_id").drop(columns="_failed")
