"""What ``rgr run phases`` found: the figure of the README, and its numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from rgr_dist.analysis.drawing.plot import as_file
from rgr_dist.analysis.theory.phases_figure import draw_phases

STUDY = "phases"
FOLDER = Path(__file__).parent.parent
PATH, FIGURE = FOLDER / "results" / f"{STUDY}.json", FOLDER / f"{STUDY}.svg"

Record = dict[str, Any]


def read(store: str) -> None:
    """Keep what a store has of the study, which is finished there.

    Raises:
        StudyError, StoreError: the store cannot be read.
    """
    from rgr_dist.analysis.load import open_results
    from rgr_dist.analysis.rows import by_size
    from rgr_dist.analysis.theory.phases import phases
    from rgr_dist.store.store import Store
    from rgr_dist.study.study_file import load_study

    study = load_study(STUDY)
    rows = by_size(phases(open_results(study, Store(store))).drop(columns="cell_id"))
    limits = sorted({cell.training.max_steps for cell in study.cells})
    kept = {"command": f"rgr run {STUDY}", "limits": limits, "rows": rows}
    PATH.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


@cache
def _kept() -> Record:
    result: Record = json.loads(PATH.read_text("utf-8"))
    return result


def figure() -> bytes:
    """The figure as a file of its own."""
    return as_file(draw_phases(_kept()["rows"], _kept()["limits"]), "svg")


def _sizes(phase: str, h: int = 1) -> list[Record]:
    return [row for row in _kept()["rows"] if row["h"] == h and row["phase"] == phase]


def one_head() -> str:
    """What one head is at how many sizes, and about which load that changes."""
    found = {phase: _sizes(phase) for phase in ("easy", "slow", "hard", "impossible", "open")}
    count = {phase: len(rows) for phase, rows in found.items()}
    trained = max(row["load"] for phase in ("easy", "slow") for row in found[phase])
    proved = min(row["load"] for row in found["impossible"])
    first, last = (_kept()["limits"][at] for at in (0, -1))
    return (
        f"Of {sum(count.values())} sizes, one trained head passes at "
        f"{count['easy'] + count['slow']}: at {count['easy']} within {first:,} steps, at "
        f"{count['slow']} more within {last:,}. Those {count['easy'] + count['slow']} "
        f"have $m \\ln m / d_\\text{{model}}^2 \\le {trained:.2f}$. At the {count['impossible']} "
        f"sizes where this ratio is at least {proved:.2f}, no weights of one head are right on "
        f"all pairs; this is proved for each of {found['impossible'][0]['draws']} draws"
    )


def hard() -> str:
    """The sizes at which weights of one head exist and training does not find them."""
    return ", ".join(f"({row['m']}, {row['d_model']})" for row in _sizes("hard")) or "none"


def eight_heads() -> str:
    """At how many of the sizes where training one head passes at no limit eight heads pass."""
    passes = {
        (row["m"], row["d_model"], row["h"])
        for row in _kept()["rows"]
        if row["passes_within"] is not None
    }
    sizes = {(row["m"], row["d_model"]) for row in _kept()["rows"]}
    left = [size for size in sizes if (*size, 1) not in passes]
    trained = sum((*size, 8) in passes for size in left)
    return (
        f"Where one trained head passes at neither limit, eight pass at {trained} of "
        f"{len(left)} sizes"
    )


PIECES: dict[str, Callable[[], str]] = {
    "phases one head": one_head,
    "phases hard": hard,
    "phases eight heads": eight_heads,
}
