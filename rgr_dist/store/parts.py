"""Parts of a store: Parquet files of runs, checked when they are read.

The name of a part ends with the SHA-256 of its bytes, so that any change to the file is noticed,
even in its footer. Older parts have no digest in their names; only the other checks apply to them.
"""

from __future__ import annotations

import hashlib
import io
import re
import time
from collections.abc import Iterable
from typing import Annotated, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ConfigDict, Field, TypeAdapter

from rgr_dist.store.schema import (
    KEYS,
    KINDS,
    RESULTS,
    RUNS,
    SCHEMA_VERSION,
    columns_of_version,
)
from rgr_dist.store.storage import StoreError
from rgr_dist.study.models import MODELS
from rgr_dist.study.spec import Share

DIGEST_IN_NAME = re.compile(r"-([0-9a-f]{32})\.parquet$")
"""The first 32 hex digits of the SHA-256 of a part, in its name."""
PARQUET_END = b"PAR1"
"""The last bytes of a Parquet file."""
BY_TAU = TypeAdapter(list[tuple[Share, Share, Annotated[int, Field(ge=0)]]])
"""The form that the JSON of ``by_tau`` must have."""
CERTIFICATE = TypeAdapter(
    dict[Literal["pass", "fail", "fresh"], dict[str, float | None] | None],
    config=ConfigDict(strict=True, allow_inf_nan=False),
)
"""The form that the JSON of ``certificate`` must have."""
ONCE = {
    "thresholds": ["cell_id", "h", "d_k"],
    "decisions": ["cell_id", "step"],
}
"""Columns of each table of a study that no two rows share."""
UNREADABLE = (pa.ArrowException, OSError, ValueError)
"""What ``parse`` raises for a damaged part; the message says how it is damaged."""


def written(table: pa.Table) -> bytes:
    """A table as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
    return buffer.getvalue()


def part_name(content: bytes) -> str:
    """The name of a new part: when it was written, so that names sort by time, and its digest."""
    return f"part-{time.time_ns():020d}-{_digest(content)}.parquet"


def has_digest(name: str) -> bool:
    """Whether the name of a part contains the digest of its bytes."""
    return DIGEST_IN_NAME.search(name) is not None


def is_outdated(name: str, content: bytes) -> bool:
    """Whether an older rgr-dist wrote a part, with an older schema or no digest in its name."""
    schema = pq.read_schema(pa.BufferReader(content))
    return not has_digest(name) or version_of(schema) < SCHEMA_VERSION


def parse(
    content: bytes,
    name: str,
    cell_ids: Iterable[str] | None = None,
    schema: pa.Schema = RUNS,
) -> pa.Table:
    """The rows of a part, or those of some cells; columns newer than the part are null.

    Args:
        name: the part's file name.
        schema: the columns of ``RUNS`` to read, run_id and cell_id among them.

    Raises:
        StoreError: a newer rgr-dist wrote it.
        ArrowException, OSError, ValueError: it is damaged (``UNREADABLE``).
    """
    digest = DIGEST_IN_NAME.search(name)
    if digest and digest[1] != _digest(content):
        raise ValueError("its bytes are not those of its checksum")
    file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    found = file.schema_arrow
    version = version_of(found)
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"the store was written by a newer rgr-dist (schema {version}, here {SCHEMA_VERSION}); "
            "upgrade this one"
        )
    for field in columns_of_version(version):
        if found.names.count(field.name) != 1 or found.field(field.name).type != field.type:
            raise ValueError(f"the column {field.name} is missing, or of another type")
    there = set(found.names)
    if doubled := [name for name in schema.names if found.names.count(name) > 1]:
        raise ValueError(f"the column {doubled[0]} is there twice")
    read = file.read([name for name in schema.names if name in there])
    columns = [
        read[name].cast(kind) if name in there else pa.nulls(len(read), kind)
        for name, kind in zip(schema.names, schema.types, strict=True)
    ]
    table = pa.table(columns, schema=schema)
    check_values(table)  # all of it: what is damaged is left out as a whole
    if cell_ids is None:
        return table
    return table.filter(pc.is_in(table["cell_id"], pa.array(cell_ids, pa.string())))


def version_of(schema: pa.Schema) -> int:
    """Schema version that a part was written with; raises ValueError if that is no number."""
    return int((schema.metadata or {}).get(b"version", b"1"))


def check_values(table: pa.Table) -> None:
    """Make sure that a table of runs has all its keys, and only values that its columns may hold.

    Raises:
        ValueError: a key is missing, or a value is not allowed.
    """
    _check_columns(table, "runs")
    if not {"model", *RESULTS} <= set(table.column_names):
        return
    is_error = pc.is_in(table["model"], pa.array(n for n in MODELS if MODELS[n].minimised))
    for name in "score", "val_score":
        is_share = pc.less_equal(table[name], 1.0)
        _check(pc.or_(is_share, is_error), f"{name} is outside its bounds")
    has_none = pc.is_in(table["stop_reason"], pa.array(["diverged", "failed"]))
    has_ended = pc.is_in(table["stop_reason"], pa.array(["converged", "max_steps", "given_up"]))
    _check(pc.or_(has_none, has_ended), "a stop_reason that there is not")
    _check(pc.or_(has_none, pc.is_valid(table["score"])), "a run that ended has no score")
    for text in pc.unique(table["by_tau"]).drop_null().to_pylist():
        try:
            BY_TAU.validate_json(text)
        except ValueError as error:
            raise ValueError("by_tau holds no list of [tau, accuracy, rank]") from error


def parse_study_table(content: bytes, name: str, schema: pa.Schema) -> pa.Table:
    """The rows of a table of a study; columns that an older rgr-dist did not write are null.

    Args:
        name: one of ``STUDY_TABLES``.

    Raises:
        ArrowException, OSError, ValueError: it is damaged (``UNREADABLE``).
    """
    if not content.endswith(PARQUET_END):
        raise ValueError("it does not end as a Parquet file")
    table = pq.read_table(pa.BufferReader(content), schema=schema, page_checksum_verification=True)
    _check_columns(table, name)
    _check_agreement(table, name)
    return table


def _check_agreement(table: pa.Table, name: str) -> None:
    """Make sure that the columns of a table of a study agree, and that no row is there twice.

    Raises:
        ValueError: they do not, or one is.
    """
    if len(table.group_by(ONCE[name]).aggregate([([], "count_all")])) < len(table):
        raise ValueError(f"two rows of one {', '.join(ONCE[name])}")
    for fault, has_fault in _contradictions()[name].items():
        if table.filter(has_fault).num_rows:  # null is not a fault
            raise ValueError(fault)
    if name == "thresholds":
        for row in table.select(["n_seeds", "certificate"]).to_pylist():
            _check_certificate(**row)


def _check_certificate(n_seeds: int | None, certificate: str | None) -> None:
    if certificate is None:
        return
    try:
        sides = CERTIFICATE.validate_json(certificate)
        seeds = {side: probe and probe["n_seeds"] for side, probe in sides.items()}
    except (ValueError, KeyError) as error:
        raise ValueError("a certificate holds no probes") from error
    if not seeds.keys() >= {"pass", "fail"}:
        raise ValueError("a certificate holds no probes")
    if n_seeds not in (None, seeds["pass"]):
        raise ValueError("n_seeds are not those of the certificate")


def _contradictions() -> dict[str, dict[str, pc.Expression]]:
    """What the columns of a row must not say together, for each table of a study."""
    of = pc.field  # to compare one with a number imports pandas, so not every command does
    is_found = of("status") == "found"
    widths = {"D_K": "d_k", "D_V": "d_vo"}
    products = {f"{D} is not h * {d}": of(D) != of("h") * of(d) for D, d in widths.items()}
    return {
        "thresholds": {
            "a threshold without d_k": is_found & of("d_k").is_null(),
            "a threshold without a total width": is_found
            & of("D_K").is_null()
            & (of("D_V").is_null() | of("d_vo").is_null()),
            "a total width without a threshold": ~is_found
            & (of("D_K").is_valid() | of("D_V").is_valid()),
            "a mean of no seeds": (of("n_seeds") < 1) | (of("fresh_seeds") < 1),
            **products,
            **{
                f"{D}_low, {D} and {D}_high are out of order": (of(f"{D}_low") > of(D))
                | (of(D) > of(f"{D}_high"))
                | (of(f"{D}_low") > of(f"{D}_high"))
                for D in widths
            },
        },
        "decisions": products,
    }


def _check_columns(table: pa.Table, of: str) -> None:
    """Make sure that keys are there, and values such as their columns may hold (``KINDS``).

    Raises:
        ValueError: a row lacks a key, a value is not allowed, or text is not UTF-8.
    """
    table.validate(full=True)
    for name, kind in KINDS[of].items():
        if name not in table.column_names:
            continue
        values = table[name]
        if name in KEYS[of] and values.null_count:
            raise ValueError(f"a row without {name}")
        if kind.words:
            _check(pc.is_in(values, pa.array([*kind.words, None])), f"a {name} that there is not")
        if kind.type == pa.string():
            continue
        values = values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values
        has_nan = pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py()
        ends = [end for end in pc.min_max(values).as_py().values() if end is not None]
        if has_nan or not all(kind.least <= end <= kind.most for end in ends):
            raise ValueError(f"{name} is outside its bounds")


def _check(holds: pa.ChunkedArray, fault: str) -> None:
    if not pc.all(holds, min_count=0).as_py():  # null is not a fault
        raise ValueError(fault)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
