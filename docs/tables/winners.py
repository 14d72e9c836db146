"""Do thresholds hold on seeds that did not choose them? ``base-grid`` with 100 seeds at each."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from rgr_dist.study.study import Study
from rgr_dist.study.study_file import load_study
from tables.markdown import table
from tables.results import FOLDER, printed

STUDY = "winners"
CHANGES = ("name=winners", "search.transition_seeds=100", "search.transition_window=0")
PATH = FOLDER / f"{STUDY}.json"
CHOSEN, CONFIRMED = 10, 30
"""Seeds below the first chose a threshold; those from there up to the second confirm that of h*."""

Record = dict[str, Any]


def study() -> Study:
    """``base-grid`` as the command beside the table has it."""
    return load_study("base-grid", CHANGES)


def read(store: str) -> None:
    """Keep the mean scores at each threshold of ``base-grid`` that has seeds beside its own.

    Raises:
        StudyError, StoreError: the store cannot be read.
    """
    from rgr_dist.planning.portfolio import stored_runs
    from rgr_dist.store.store import Store

    runs = stored_runs(study(), Store(store))
    by_probe = dict(list(runs.groupby(["m", "d_model", "h", "d_k"])))
    found = printed("base-grid", "thresholds")
    stars = {(row["m"], row["d_model"]): row["h_star"] for row in found["best"]}
    rows = []
    for row in found["thresholds"]:
        sizes = {name: row[name] for name in ("m", "d_model", "h", "d_k")}
        own = by_probe.get(tuple(sizes.values()))
        if row["status"] != "found" or own is None or own["seed"].max() < CONFIRMED:
            continue
        scores = own.set_index("seed")["score"].sort_index()
        fresh = scores[scores.index >= CONFIRMED]
        means = {
            "chosen_on": scores[scores.index < CHOSEN].mean(),
            "next": scores[(scores.index >= CHOSEN) & (scores.index < CONFIRMED)].mean(),
            "fresh": fresh.mean(),
            "error": fresh.std() / len(fresh) ** 0.5,
        }
        best = stars[row["m"], row["d_model"]] == row["h"]
        rows.append({**sizes, "best": best, "n_fresh": len(fresh), **means})
    kept = {"command": f"rgr run base-grid --set {' --set '.join(CHANGES)}", "rows": rows}
    PATH.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


@cache
def _rows() -> list[Record]:
    rows: list[Record] = json.loads(PATH.read_text("utf-8"))["rows"]
    return sorted(rows, key=lambda row: (row["m"], row["d_model"], not row["best"], row["h"]))


def means() -> str:
    """A row for each threshold, that of h* first in its cell."""
    rows = [
        [
            f"({row['m']}, {row['d_model']})" if row["best"] else "",
            row["h"],
            row["d_k"],
            *(f"{row[name]:.4f}" for name in ("chosen_on", "next")),
            f"{row['fresh']:.4f} ± {row['error']:.4f}",
        ]
        for row in _rows()
    ]
    header = ["cell", "h", "d_k", "seeds 0–9", "seeds 10–29", "seeds 30–99 alone"]
    return table(header, rows)


def held(best: bool) -> str:
    """``11 of 12``: how many means of fresh seeds reach the target."""
    asked = [row for row in _rows() if row["best"] == best]
    target = study().search.target
    return f"{sum(row['fresh'] >= target for row in asked)} of {len(asked)}"


PIECES: dict[str, Callable[[], str]] = {
    "winners means": means,
    "winners best": lambda: held(best=True),
    "winners near": lambda: held(best=False),
}
