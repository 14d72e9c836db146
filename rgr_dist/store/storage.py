"""Files on a local disk or in object storage, and who may write them.

A file appears under its name only once it is complete: on a local disk it is written under
a hidden name, synced and renamed; on object storage a write is one PUT. One driver writes, and
says so in ``drivers/``; many may read.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from rgr_dist.store.lease import Lease, leased
from rgr_dist.store.parts import StoreError, short, within, write_atomically

ANSWER_WITHIN = 60.0
"""Seconds to wait for object storage to answer."""
HALF_WRITTEN_FOR = 600.0
"""Seconds after which a file that somebody was writing under a hidden name is left over."""


class Storage:
    """A folder at a local path or at any URI that pyarrow opens.

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
        self._made: set[str] = set()  # folders of object storage
        self._lease: Lease | None = None

    @property
    def local_path(self) -> Path | None:
        """The store's folder, if it is on a local disk."""
        return Path(self._path) if isinstance(self._fs, pafs.LocalFileSystem) else None

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

    def has(self, relative: str) -> bool:
        """Whether there is a file of that path."""
        return self._exists(f"{self._path}/{relative}")

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

    def write_text(self, relative: str, text: str) -> None:
        """Store a text file, such as ``studies/<name>/study.yaml``.

        Raises:
            StoreError: it could not be stored.
        """
        self._store(relative, text.encode())

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

    def upload(self, folder: Path, destination: str) -> str:
        """Copy a local folder's files into the store; returns their location."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                relative = path.relative_to(folder).as_posix()
                self._store(f"{destination}/{relative}", path.read_bytes())
        root, mark, options = self.root.partition("?")
        return f"{root.rstrip('/')}/{destination}{mark}{options}"

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
