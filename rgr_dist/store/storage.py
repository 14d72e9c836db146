"""Files on a local disk or in object storage, each stored whole or not at all.

A file appears under its name only once it is complete: on a local disk it is written under
a hidden name, synced and renamed; on object storage a write is one PUT.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from rgr_dist.faults import UserError, on_one_line, shown


class StoreError(UserError, RuntimeError):
    """The store cannot be read or written; the message says where and why."""


class Storage:
    """A folder at a local path or at any URI that pyarrow opens.

    Attributes:
        uri: where it is.
        root: the same without any password, to be shown.

    Args:
        root: such as ``results/`` or ``s3://bucket/prefix``.

    Raises:
        StoreError: it cannot be opened.
    """

    def __init__(self, root: str | Path) -> None:
        self.uri = str(root)
        self.root = shown(self.uri)
        with self._reported("cannot be opened", "; give a folder, or a URI such as s3://bucket/x"):
            if not str(root).strip():
                raise ValueError("empty")
            location = str(root) if "://" in str(root) else str(Path(root).absolute())
            system, path = pafs.FileSystem.from_uri(location)
            if system.get_file_info(path).is_file:
                raise ValueError("it is a file")
            self._fs = pafs.SubTreeFileSystem(path, system)

    @property
    def local_path(self) -> Path | None:
        """The store's folder, if it is on a local disk."""
        is_local = isinstance(self._fs.base_fs, pafs.LocalFileSystem)
        return Path(self._fs.base_path) if is_local else None

    def files(self, folder: str) -> list[pafs.FileInfo]:
        """A folder's entries by name, with ``base_name`` and ``type``; none if it is missing."""
        with self._reported("cannot be read"):
            entries = self._fs.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
        return sorted(entries, key=lambda entry: str(entry.base_name))

    def read_bytes(self, relative: str) -> bytes | None:
        """A stored file, or None if there is none."""
        with self._reported(f"{relative} cannot be read"):
            try:
                with self._fs.open_input_file(relative) as file:
                    return bytes(file.read())
            except FileNotFoundError:
                return None

    def read_text(self, relative: str) -> str | None:
        """A stored text file, or None if there is none."""
        content = self.read_bytes(relative)
        return None if content is None else content.decode(errors="replace")

    def write_bytes(self, relative: str, content: bytes, sync: bool = True) -> None:
        """Store a file; without ``sync``, a power cut may lose it.

        Raises:
            StoreError: it could not be stored.
        """
        with self._reported(f"cannot store {relative}", "; give a folder or URI with room"):
            self._fs.create_dir(relative.rpartition("/")[0])
            if self.local_path is not None:
                write_atomically(self.local_path / relative, content, sync)
                return
            with self._fs.open_output_stream(relative) as stream:
                stream.write(content)

    def write_text(self, relative: str, text: str) -> None:
        """Store a text file.

        Raises:
            StoreError: it could not be stored.
        """
        self.write_bytes(relative, text.encode())

    def address(self, relative: str) -> str:
        """Where a stored file is: a path, or a URI."""
        if self.local_path is not None:
            return str(self.local_path / relative)
        root, mark, options = self.root.partition("?")
        return f"{root.rstrip('/')}/{relative}{mark}{options}"

    def remove(self, relative: str) -> None:
        """Remove a file, if it is there."""
        with self._reported(f"cannot remove {relative}"), suppress(FileNotFoundError):
            self._fs.delete_file(relative)

    @contextmanager
    def _reported(self, fault: str, advice: str = "") -> Iterator[None]:
        """Report an error of the storage in one line.

        Raises:
            StoreError: there was one.
        """
        try:
            yield
        except (OSError, ValueError, pa.ArrowException) as error:
            said = f"{fault}: {reason(error)}{advice}"
            raise StoreError(f"--store {self.root}: {said}") from None


def write_atomically(path: Path, data: bytes, sync: bool = True) -> None:
    """Write a local file under a hidden name, then rename it to its own.

    Args:
        sync: wait until the file is on the disk, so that a power cut cannot lose it.
    """
    hidden = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with hidden.open("wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        hidden.replace(path)
        if sync:
            _sync_folder(path.parent)
    finally:
        hidden.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a rename in a folder durable, where the system allows it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def reason(error: Exception) -> str:
    """An error's reason on one line."""
    words = error.strerror if isinstance(error, OSError) else None
    return on_one_line(words or str(error))
