"""A run has one result: which rows of a run agree, and which contradict each other.

The same engine, on the same kind of processor and in the same versions, gives the same result to
the bit. Others add numbers in another order, so their results agree only up to rounding. Rows that
differ by more conflict: one is wrong, or training tipped over, and the rows do not show which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rgr_dist.store.schema import RESULTS, RUNS

if TYPE_CHECKING:
    import pandas as pd

MADE_BY = ["engine", "device", "versions"]
ROUNDING = 1e-4
"""Largest relative difference of two engines' numbers that is rounding; engines are held to it."""
ADDRESS = ["cell_id", "h", "d_k", "d_vo", "seed"]
"""Columns that identify a run, as ``run_id`` does; in a wrong row, ``run_id`` may be false."""
COMPARED = [*RESULTS, *MADE_BY, *ADDRESS, "run_id", "finished_at"]
"""Columns that are needed to compare the rows of a run."""


def once_each(runs: pd.DataFrame) -> tuple[pd.DataFrame, set[str]]:
    """One row for each run: its first success, or else its first failure.

    Args:
        runs: the columns ``COMPARED``, and any others of ``RUNS``.

    Returns:
        The rows, with their original index, and the run_id of each run left out because its
        successes contradict each other.
    """
    if not runs.duplicated(ADDRESS).any():
        return runs, set()
    in_order = runs.assign(_failed=runs["stop_reason"] == "failed").sort_values(
        ["_failed", "finished_at"]
    )
    again = in_order[in_order.duplicated(ADDRESS, keep=False) & ~in_order["_failed"]]
    conflicting = _contradicted(again) if len(again) else set()
    kept = in_order.drop_duplicates(ADDRESS).drop(columns="_failed")
    return kept[~kept["run_id"].isin(conflicting)], conflicting


def agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two rows of a run that was trained twice agree."""
    return not once_each(pa.Table.from_pylist([one, other], RUNS).to_pandas())[1]


def _contradicted(rows: pd.DataFrame) -> set[str]:
    """The run_id of each run with a row whose result differs from that of its first row."""
    run = rows.groupby(ADDRESS, dropna=False).ngroup()
    first = rows.groupby(run).nth(0).set_axis(run.drop_duplicates())
    first = first.loc[run].set_axis(rows.index)
    elsewhere = (rows[MADE_BY] != first[MADE_BY]).any(axis=1)
    differs = elsewhere & False
    for name in RESULTS:
        one, other = rows[name], first[name]
        is_same = (one == other) | (one.isna() & other.isna())
        if pa.types.is_floating(RUNS.field(name).type):
            is_same |= elsewhere & ((one - other).abs() <= ROUNDING * other.abs())
        differs |= ~is_same
    return set(rows.loc[run.isin(run[differs]), "run_id"])
