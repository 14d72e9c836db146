"""The columns of the stored tables, from their schemas."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from rgr_dist.store.schema import ALL_PAIRS, DECISIONS, RUNS, THRESHOLDS
from tables.markdown import plain, table


def columns(schema: pa.Schema) -> str:
    """Column, type and meaning."""
    rows = [
        [f"`{field.name}`", field.type, plain(field.metadata[b"about"].decode()).replace("|", "or")]
        for field in schema
    ]
    return table(["column", "type", "meaning"], rows)


PIECES: dict[str, Callable[[], str]] = {
    "columns runs": partial(columns, RUNS),
    "columns thresholds": partial(columns, THRESHOLDS),
    "columns decisions": partial(columns, DECISIONS),
    "columns all_pairs": partial(columns, ALL_PAIRS),
}
