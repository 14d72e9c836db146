"""How cost grows with sizes, from what the benchmark printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rgr_dist.analysis.wording import duration
from tables.benchmarks import printed
from tables.markdown import table

OF = {
    "step_us": "time of a step",
    "check_ms": "time of a check",
    "memory_mib": "memory of a run, from 1 MiB on",
    "steps": "steps of a cell",
    "core_seconds": "seconds of a cell",
}
SIZES = ("m", "d_model", "h", "D_K")
HEADS = 8
"""Of the shapes shown."""

Row = dict[str, Any]


def shapes() -> str:
    """Time and memory of a run at the first width of each size, with so many heads."""
    shown: dict[tuple[int, int], Row] = {}
    for row in printed("growth")["rows"]:
        if row["h"] == HEADS:
            shown.setdefault((row["m"], row["d_model"]), row)
    header = ["m, d_model", "D_K", "a step, µs", "a check, ms", "memory, MiB", "as estimated"]
    names = ("D_K", "step_us", "check_ms", "memory_mib", "estimated_mib")
    rows = [[f"{m}, {d}", *(row[name] for name in names)] for (m, d), row in shown.items()]
    return table(header, rows)


def exponents() -> str:
    """The powers of each size, with their intervals."""
    rows = [
        [OF[row["of"]], *(row[size] or "–" for size in SIZES), row["R2"], row["rows"]]
        for row in printed("growth")["exponents"]
    ]
    return table(["", *SIZES, "R²", "fitted to"], rows)


def cells() -> str:
    """What each cell of the base grid costs."""
    rows = [
        [
            f"({row['m']}, {row['d_model']})",
            f"{row['max_steps']:,}",
            row["probes"],
            row["runs"],
            f"{row['steps'] / 1e6:.1f}",
            f"{row['core_seconds']:.0f}",
        ]
        for row in sorted(printed("growth")["cells"], key=lambda row: (row["m"], row["d_model"]))
    ]
    header = ["cell", "step limit", "probes", "runs", "million steps", "seconds of a core"]
    return table(header, rows)


def workers() -> str:
    """How long the base grid takes so many workers."""
    rows = [
        [
            row["workers"],
            duration(row["seconds"]),
            f"{row['times_faster']:g}",
            f"{100 * row['useful']:.0f} %",
        ]
        for row in printed("growth")["workers"]
    ]
    return table(["workers", "time", "times faster", "share of training that is needed"], rows)


def share() -> str:
    """Share of the base grid's time that its dearest cell takes."""
    seconds = [row["core_seconds"] for row in printed("growth")["cells"]]
    return f"{max(seconds) / sum(seconds):.0%}".replace("%", " %")


def a_run() -> str:
    """Seconds of a run of the dearest cell, on average."""
    row = max(printed("growth")["cells"], key=lambda row: row["core_seconds"])
    return f"{row['core_seconds'] / row['runs']:.1f} seconds"


def runs() -> str:
    """The fewest and the most runs that a cell of the base grid takes."""
    counts = [row["runs"] for row in printed("growth")["cells"]]
    return f"{min(counts)} to {max(counts)}"


def faster() -> str:
    """How much sooner the most workers finish than one."""
    return f"{printed('growth')['workers'][-1]['times_faster']:.0f} times"


def useful() -> str:
    """Share of what the most workers train that the result uses."""
    return f"{printed('growth')['workers'][-1]['useful']:.0%}".replace("%", " %")


PIECES: dict[str, Callable[[], str]] = {
    "growth shapes": shapes,
    "growth exponents": exponents,
    "growth cells": cells,
    "growth workers": workers,
    "growth dearest": share,
    "growth dearest run": a_run,
    "growth runs": runs,
    "growth faster": faster,
    "growth useful": useful,
}
