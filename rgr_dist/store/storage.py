"""Files on a local disk or in object storage, each stored whole or not at all.

A file appears under its name only once it is complete: on a local disk it is written under
a hidden name, synced and renamed; on object storage a write is one PUT.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from rgr_dist.faults import UserError, shown

ANSWER_WITHIN = 5.0
"""Seconds within which storage must answer, except disks and S3, whose faults pyarrow reports."""
TRY = """
import sys
from pyarrow.fs import FileSystem
try:
    system, path = FileSystem.from_uri(sys.stdin.read())
    system.get_file_info(path)
except Exception as error:
    sys.exit(str(error))
"""
"""A program that opens the URI on its standard input, or says why it cannot."""
TRIES = 20
"""How many times to make a folder that other commands may remove as they end."""
LARGE = 2**26
"""Bytes of a file that is not read at once if it must end in a certain way."""
LARGEST_TEXT = 2**27
"""Bytes of the largest text file that is read."""


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
        StoreError: the URI cannot be opened, or its storage does not answer.
    """

    def __init__(self, root: str | Path) -> None:
        if not isinstance(root, str | os.PathLike):
            given = " ".join(repr(root).split())[:80]
            raise StoreError(f"--store: {given} is no path; give a folder or URI")
        self.uri = str(root)
        self.root = shown(self.uri)
        if not self.root.strip():
            raise StoreError("--store: empty; give a folder or URI")
        slip = re.match(r"(file|s3|gs|gcs|abfss?|hdfs|https?):(?!//)", self.uri)
        if slip and isinstance(root, str):
            raise StoreError(
                f"--store {self.root}: write {slip[0]}//… or, for a folder, ./{self.root}"
            )
        try:
            location = self.uri if "://" in self.uri else str(Path(self.uri).absolute())
            scheme, is_uri, rest = location.partition("://")
            if is_uri and ("#" in rest or (scheme == "file" and "?" in rest)):
                raise ValueError("in a path of a URI, write # as %23 and ? as %3F")
            if scheme not in ("file", "s3", location):
                _try(location)
            system, path = pafs.FileSystem.from_uri(location)
            if not path:
                raise ValueError("it names no folder or bucket")
            if system.get_file_info(path).is_file:  # refuses an invalid path
                raise ValueError("it is a file, no folder")
            self._fs = pafs.SubTreeFileSystem(path, system)
        except Exception as error:  # file systems of fsspec raise errors of any kind
            raise StoreError(
                f"--store {self.root}: cannot be opened: {shown(short(error))}"
            ) from None

    @property
    def local_path(self) -> Path | None:
        """The store's folder, if it is on a local disk."""
        is_local = isinstance(self._fs.base_fs, pafs.LocalFileSystem)
        return Path(self._fs.base_path) if is_local else None

    def check_bucket(self) -> None:
        """Make sure that a bucket is there, for a store to be made in.

        Raises:
            StoreError: it is not.
        """
        bucket, kind = self._fs.base_path.partition("/")[0], None
        if self._fs.base_fs.type_name == "s3":
            with suppress(OSError):  # perhaps not all of it may be read
                kind = self._fs.base_fs.get_file_info(bucket).type
        if kind is pafs.FileType.NotFound:
            raise StoreError(f"--store {self.root}: there is no bucket {bucket}; make it first")

    @contextmanager
    def no_new_folders(self, relative: str) -> Iterator[None]:
        """On exit, remove a local folder and its parents if they are new since entry and empty."""
        folders: list[Path] = []
        if self.local_path is not None:
            deepest = self.local_path / relative
            with self._reported("cannot be read"):
                folders = [path for path in (deepest, *deepest.parents) if not path.exists()]
        try:
            yield
        finally:
            for path in folders:
                with suppress(OSError):  # it is not empty
                    path.rmdir()

    def files(self, folder: str) -> list[pafs.FileInfo]:
        """A folder's entries by name, with ``base_name``, ``type`` and ``mtime``; none if missing.

        Names that are not UTF-8 are left out: none of ours is one. A link that leads nowhere is of
        type ``Unknown``.
        """
        selector, entries = pafs.FileSelector(folder, allow_not_found=True), []
        with self._reported("cannot be read"):
            for entry in self._fs.get_file_info(selector):
                with suppress(UnicodeDecodeError):
                    _ = entry.base_name
                    entries.append(entry)
            if self.local_path is not None and (self.local_path / folder).is_dir():
                known = {entry.base_name for entry in entries}
                for path in (self.local_path / folder).iterdir():  # pyarrow leaves these out
                    if path.name not in known and path.is_symlink() and path.name.isprintable():
                        entries.append(pafs.FileInfo(f"{folder}/{path.name}"))
        return sorted(entries, key=lambda entry: entry.base_name)

    def read_text(self, relative: str) -> str | None:
        """A stored text file, or None if there is none; bytes that are not UTF-8 read as �.

        Raises:
            StoreError: it cannot be read, is larger than any that is written here, or is no file.
        """
        content = self.read_bytes(relative, most=LARGEST_TEXT)
        if content is None and self.local_path is not None:
            place = self.local_path / relative
            if place.exists() and not place.is_file():
                raise StoreError(f"--store {self.root}: {relative} cannot be read: it is no file")
        return None if content is None else content.decode(errors="replace")

    def read_bytes(self, relative: str, end: bytes = b"", most: float = math.inf) -> bytes | None:
        """A stored file, or None if there is none; a pipe or a device does not count as one.

        Args:
            end: how the file must end; of a large one that does not, only its end is read.
            most: the bytes above which it is not read.
        """
        with self._reported(f"{relative} cannot be read"):
            if self.local_path is not None and not (self.local_path / relative).is_file():
                return None
            try:
                with self._fs.open_input_file(relative) as file:
                    if file.size() > most:
                        raise OSError(f"it is larger than {most:,} bytes")
                    if file.size() > LARGE and end:
                        last = bytes(file.read_at(len(end), file.size() - len(end)))
                        if last != end:
                            return last
                    return bytes(file.read())
            except FileNotFoundError:
                return None
            except MemoryError:
                raise OSError("it does not fit in memory") from None

    def write_text(self, relative: str, text: str) -> None:
        """Store a text file, such as ``studies/<name>/study.yaml``.

        Raises:
            StoreError: it could not be stored.
        """
        self.write_bytes(relative, text.encode())

    def write_bytes(self, relative: str, content: bytes, sync: bool = True) -> None:
        """Store a file; without ``sync``, a power cut may lose it.

        Raises:
            StoreError: it could not be stored.
        """
        advice = "; give a folder or URI where files can be made"
        with self._reported(f"cannot store {relative}", advice):
            for last in (*[False] * TRIES, True):
                try:
                    self._write(relative, content, sync)
                    return
                except FileNotFoundError:  # no folder: another command may have removed it
                    if last:
                        raise
                with suppress(FileNotFoundError):
                    self._fs.create_dir(relative.rpartition("/")[0])

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

    def set_aside(self, relative: str) -> None:
        """Move a file to ``damaged/``, under its path with dashes for slashes.

        Raises:
            StoreError: it could not be moved.
        """
        name = relative.removeprefix("runs/").replace("/", "-")
        with self._reported(f"cannot move {relative}"):
            self._fs.create_dir("damaged")
            self._fs.move(relative, f"damaged/{name}")

    def _write(self, relative: str, content: bytes, sync: bool) -> None:
        if self.local_path is not None:
            write_atomically(self.local_path / relative, content, sync)
            return
        with self._fs.open_output_stream(relative) as stream:
            stream.write(content)

    @contextmanager
    def _reported(self, fault: str, advice: str = "") -> Iterator[None]:
        """Report an error of the storage in one line.

        Raises:
            StoreError: there was one.
        """
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"--store {self.root}: {fault}: {short(error)}{advice}") from None


def _try(uri: str) -> None:
    """Make sure that pyarrow can open a URI; tries it in another process, which may crash or hang.

    Raises:
        ValueError: it cannot.
    """
    command = [sys.executable, "-P", "-c", TRY]
    try:
        subprocess.run(
            command, input=uri, capture_output=True, text=True, timeout=ANSWER_WITHIN, check=True
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"no answer within {ANSWER_WITHIN:.0f} s") from None
    except subprocess.CalledProcessError as error:
        said = " ".join(error.stderr.split())
        advice = "; give a folder, or a URI such as s3://bucket/folder"
        said += advice * ("Unrecognized filesystem type" in said)
        raise ValueError(said) from None


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


def short(error: Exception) -> str:
    """An error's reason on one line, without pyarrow's details."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(reason.split())
