"""Checks a whole store: parts that cannot be read, and rows of one run that disagree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rgr_dist.store.schema import RESULTS, RUNS
from rgr_dist.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

MADE_BY = ["engine", "device", "versions"]
ROUNDING = 1e-4
"""Largest relative difference of two engines' numbers that is rounding; engines are held to it."""


def verify(store: Store) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """What is wrong in a store, and how much was checked.

    The same engine on the same processor in the same versions gives the same result to the bit;
    others agree up to rounding.

    Returns:
        Rows of ``file``, None for several, ``run_id``, None for a whole file, and ``problem``; and
        the numbers of ``parts`` and ``rows``, and of ``repeated`` rows.
    """
    parts = store.parts()
    rows = pa.concat_tables([RUNS.empty_table(), *parts.values()]).to_pandas()
    problems: list[dict[str, Any]] = [
        {"file": path, "run_id": None, "problem": f"cannot be read: {why}"}
        for path, why in store.unreadable.items()
    ]
    ended = rows[rows["stop_reason"] != "failed"]
    for run_id, attempts in ended[ended["run_id"].duplicated(keep=False)].groupby("run_id"):
        if differ := [name for name in RESULTS if _differs(attempts, name)]:
            scores = ", ".join(f"{score:.6g}" for score in attempts["score"])
            problem = f"its results differ in {', '.join(differ)}; scores {scores}"
            problems.append({"file": None, "run_id": run_id, "problem": problem})
    repeated = int(rows["run_id"].duplicated().sum())
    return problems, {"parts": len(parts), "rows": len(rows), "repeated": repeated}


def _differs(attempts: pd.DataFrame, name: str) -> bool:
    """Whether a result of several attempts of one run is not the same."""
    values, first = attempts[name], attempts[name].iloc[0]
    is_same = (values == first) | (values.isna() & attempts[name].isna().iloc[0])
    if pa.types.is_floating(RUNS.field(name).type):
        elsewhere = (attempts[MADE_BY] != attempts[MADE_BY].iloc[0]).any(axis=1)
        is_same |= elsewhere & ((values - first).abs() <= ROUNDING * abs(first))
    return not is_same.all()
