"""Parts of a store as files: written whole or not at all, checked when they are read."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rgr_dist.faults import UserError
from rgr_dist.store.schema import RUNS, SCHEMA_VERSION


class StoreError(UserError, RuntimeError):
    """The store cannot be read or written; the message says where and why."""


def write_atomically(path: Path, data: bytes, sync: bool = True) -> None:
    """Write a local file under a hidden name and give it its own name.

    Args:
        sync: wait until it is on the disk: for what a power cut must not lose.
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
            sync_folder(path.parent)
    finally:
        hidden.unlink(missing_ok=True)


def parse(
    content: bytes, cell_ids: Iterable[str] | None = None, schema: pa.Schema = RUNS
) -> pa.Table:
    """The rows of a part, or of some cells; columns that the part is too old to have are null.

    Args:
        schema: the columns to read, of ``RUNS``, run_id among them.

    Raises:
        StoreError: a newer rgr-dist wrote it.
        ArrowException, OSError: it is damaged.
    """
    version = version_of(content)
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"the store was written by a newer rgr-dist (schema {version}, here {SCHEMA_VERSION}); "
            "upgrade this one"
        )
    wanted = None
    if cell_ids is not None:
        wanted = pc.field("cell_id").isin(pa.array(cell_ids, pa.string()))
    table = pq.read_table(
        pa.BufferReader(content), schema=schema, filters=wanted, page_checksum_verification=True
    )
    if table["run_id"].null_count:
        raise pa.ArrowInvalid("a row without run_id")
    return table


def version_of(content: bytes) -> int:
    """Schema version that a part was written with; raises an ArrowException if it is damaged."""
    written = pq.read_schema(pa.BufferReader(content)).metadata or {}
    return int(written.get(b"version", b"1"))


def within(seconds: float, call: Callable[[], None]) -> None:
    """Run a call that may hang beyond the reach of signals; TimeoutError if it takes longer."""
    outcome: list[BaseException | None] = []

    def run() -> None:
        try:
            call()
            outcome.append(None)
        except (OSError, pa.ArrowException) as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise TimeoutError(f"no answer within {seconds:.0f} s")
    if outcome[0] is not None:
        raise outcome[0]


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder durable, where the system allows it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def part_name() -> str:
    """A new, unique name for a part; names sort by time."""
    return f"part-{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.parquet"


def short(error: Exception) -> str:
    """The reason alone, on one line, without pyarrow's details."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(reason.split())
