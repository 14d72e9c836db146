"""Parts of a store as files: written whole or not at all, checked when they are read.

The name of a part ends with the SHA-256 of its bytes, so that any change of the file is noticed,
its footer included. Parts that were written before names told this are held to the other checks.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rgr_dist.faults import UNANSWERED, UserError
from rgr_dist.store.schema import (
    KEYS,
    RUNS,
    SCHEMA_VERSION,
    STOP_REASONS,
    columns_of_version,
)
from rgr_dist.study.models import MODELS

T = TypeVar("T")

DIGEST_IN_NAME = re.compile(r"-([0-9a-f]{32})\.parquet$")
"""The first 32 hex digits of the SHA-256 of a part, in its name."""


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


def written(table: pa.Table) -> bytes:
    """The bytes of a Parquet file."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
    return buffer.getvalue()


def part_name(content: bytes) -> str:
    """The name of a new part: when it was written, so that names sort by time, and its digest."""
    return f"part-{time.time_ns():020d}-{_digest(content)}.parquet"


def has_digest(name: str) -> bool:
    """Whether the name of a part tells the digest of its bytes."""
    return DIGEST_IN_NAME.search(name) is not None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def parse(
    content: bytes,
    name: str,
    cell_ids: Iterable[str] | None = None,
    schema: pa.Schema = RUNS,
) -> pa.Table:
    """The rows of a part, or of some cells; columns that the part is too old to have are null.

    Args:
        name: the part's file name.
        schema: the columns to read, of ``RUNS``, run_id among them.

    Raises:
        StoreError: a newer rgr-dist wrote it.
        ArrowException, OSError, UnicodeDecodeError: it is damaged; the message says how.
    """
    told = DIGEST_IN_NAME.search(name)
    if told and told[1] != _digest(content):
        raise pa.ArrowInvalid("its bytes are not those of its checksum")
    version = version_of(content)
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"the store was written by a newer rgr-dist (schema {version}, here {SCHEMA_VERSION}); "
            "upgrade this one"
        )
    _check_columns(pq.read_schema(pa.BufferReader(content)), version)
    wanted = None
    if cell_ids is not None:
        wanted = pc.field("cell_id").isin(pa.array(cell_ids, pa.string()))
    table = pq.read_table(
        pa.BufferReader(content), schema=schema, filters=wanted, page_checksum_verification=True
    )
    check_values(table)
    return table


def version_of(content: bytes) -> int:
    """Schema version that a part was written with.

    Raises:
        ArrowException: it is damaged.
    """
    written_by = pq.read_schema(pa.BufferReader(content)).metadata or {}
    version = written_by.get(b"version", b"1")
    if not version.isdigit() or int(version) < 1:
        raise pa.ArrowInvalid("its schema version is no number")
    return int(version)


def _check_columns(found: pa.Schema, version: int) -> None:
    """Make sure that a part has every column of its version.

    Raises:
        ArrowInvalid: it lacks one, or has one twice or of another type.
    """
    for field in columns_of_version(version):
        if found.names.count(field.name) != 1:
            raise pa.ArrowInvalid(f"the column {field.name} is missing")
        if found.field(field.name).type != field.type:
            raise pa.ArrowInvalid(f"the column {field.name} is not of type {field.type}")


def check_values(table: pa.Table) -> None:
    """Make sure that keys are there and that numbers are within their bounds.

    Raises:
        ArrowInvalid: they are not.
    """
    there = set(table.column_names)
    for key in KEYS:
        if key in there and table[key].null_count:
            raise pa.ArrowInvalid(f"a row without {key}")
    for key in {"m", "d_model", "h", "d_k"} & there:
        _demand(pc.greater_equal(table[key], 1), f"{key} is below 1")
    for key in {"seed", "steps", "seconds"} & there:
        _demand(pc.greater_equal(table[key], 0), f"{key} is negative")
    if {"h", "d_k", "D_K"} <= there:
        product = pc.multiply(table["h"].cast(pa.int64()), table["d_k"].cast(pa.int64()))
        _demand(pc.equal(product, table["D_K"].cast(pa.int64())), "D_K is not h * d_k")
    if "stop_reason" in there:
        known = pc.is_in(table["stop_reason"], pa.array(STOP_REASONS))
        _demand(known, "a stop_reason that does not exist")
    if "score" not in there or "model" not in there:
        return
    score, unbounded = table["score"], [name for name in MODELS if MODELS[name].minimised]
    within_bounds = pc.and_(
        pc.greater_equal(score, 0.0),
        pc.or_(pc.less_equal(score, 1.0), pc.is_in(table["model"], pa.array(unbounded))),
    )
    _demand(pc.fill_null(within_bounds, True), "a score is outside its bounds")
    if "stop_reason" in there:
        ended = pc.is_in(table["stop_reason"], pa.array(["converged", "max_steps"]))
        _demand(pc.or_(pc.invert(ended), score.is_valid()), "a run that ended has no score")


def _demand(holds: pa.ChunkedArray, fault: str) -> None:
    if not pc.all(holds, min_count=0).as_py():
        raise pa.ArrowInvalid(fault)


def within(seconds: float, call: Callable[[], T]) -> T:
    """What a call returns that may hang beyond the reach of signals.

    Raises:
        TimeoutError: it takes longer. Its thread, named ``UNANSWERED``, then goes on waiting.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=run, name=UNANSWERED, daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        if answer.done():  # the call's own
            raise
        raise TimeoutError(f"no answer within {seconds:.0f} s") from None


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder durable, where the system allows it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def short(error: Exception) -> str:
    """The reason alone, on one line, without pyarrow's details."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(reason.split())
