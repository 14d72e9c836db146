"""Do thresholds hold on seeds that did not choose them? ``base-grid`` with 100 seeds at each."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from rgr_dist.study.from_yaml import load_study
from rgr_dist.study.study import Study
from tables.markdown import table
from tables.results import FOLDER

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
    """Keep the mean scores at each threshold that has more seeds than chose and confirmed it.

    Raises:
        StudyError, StoreError: the store cannot be read.
    """
    from rgr_dist.analysis.load import open_results
    from rgr_dist.analysis.thresholds.best import best_of
    from rgr_dist.store.store import Store

    results = open_results(study(), Store(store))
    stars = best_of(results).set_index("cell_id")["h_star"].to_dict()
    by_probe = dict(list(results.runs.groupby(["cell_id", "h", "d_k"])))
    rows = []
    for row in results.thresholds.query("status == 'found'").to_dict("records"):
        runs = by_probe[row["cell_id"], row["h"], row["d_k"]]
        scores = runs.set_index("seed")["score"].sort_index()
        fresh = scores[scores.index >= CONFIRMED]
        if fresh.empty:
            continue
        means = {
            "chosen_on": scores[scores.index < CHOSEN].mean(),
            "next": scores[(scores.index >= CHOSEN) & (scores.index < CONFIRMED)].mean(),
            "fresh": fresh.mean(),
            "error": fresh.std() / len(fresh) ** 0.5,
        }
        sizes = {name: int(row[name]) for name in ("m", "d_model", "h", "d_k")}
        best = stars[row["cell_id"]] == row["h"]
        rows.append({**sizes, "best": bool(best), "n_fresh": len(fresh), **means})
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
