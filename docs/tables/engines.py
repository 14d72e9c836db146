"""How fast the engines are and what was aimed at, from what ``make bench`` printed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import Any

from tables.benchmarks import printed
from tables.markdown import table

Row = dict[str, Any]
SHAPE = ("m", "d_model", "h", "D_K", "length")
FACTS = ("keys", "queries", "values", "d_model", "h", "d_qk", "d_vo")
SLOW = ("base-grid", "diagonal")
"""Studies whose sizes are shown."""
PARTS = ("contexts", "projection", "heads", "loss", "update", "adamw")


def rates() -> str:
    """A table of training steps per second of every engine and peer at every shape."""
    rows = []
    for (model, shape), engines in _by(printed("throughput")["rows"], "model", SHAPE):
        one = {row["engine"]: row for row in engines if row["threads"] == 1}
        (many,) = (row for row in engines if row["threads"] > 1)
        rows.append(
            [
                model,
                ", ".join(map(str, shape)),
                *(_rate(one[name]) for name in ("fused", "lanes", "jax", "compiled")),
                f"{one['fused']['vs_jax']:.2g}",
                _percent(one["fused"]["share_of_peak"]),
                "–" if many["vs_one_thread"] is None else f"{many['vs_one_thread']:.2f}",
            ]
        )
    head = ["model", "m, d_model, h, D_K, ℓ", "fused", "lanes", "JAX", "torch.compile"]
    return table([*head, "fused / JAX", "share of peak", "two cores / one"], rows)


def parts() -> str:
    """A table of the parts of a step of ``fused``, as shares of it."""
    rows = []
    for (model, shape), of in _by(printed("step_parts")["rows"], "model", SHAPE[:4]):
        own = {row["part"]: row for row in of}
        shares = [_percent(own[name]["share"]) for name in PARTS]
        rows.append([model, ", ".join(map(str, shape)), _three(own["step"]["us"]), *shares])
    head = ["model", "m, d_model, h, D_K", "step, µs", "contexts", "projection", "heads, both ways"]
    return table([*head, "labels and loss", "gradient and AdamW", "of it AdamW"], rows)


def facts() -> str:
    """A table of training steps per second of model facts."""
    rows = []
    for (_, shape), engines in _by(printed("facts_throughput")["rows"], None, FACTS):
        own = {row["engine"]: row for row in engines}
        fused = own["fused"]
        names = ("reference", "jax", "jax factored", "fused")
        ratios = [f"{fused[f'vs_{of}']:.2g}" for of in ("reference", "jax", "jax_factored")]
        rows.append(
            [
                ", ".join(map(str, shape)),
                *(_three(own[name]["steps_per_second"]) for name in names),
                *ratios,
                _percent(fused["share_of_peak"]),
            ]
        )
    head = ["keys, queries, values, d_model, h, d_qk, d_vo", "reference", "JAX", "JAX, factors"]
    more = ["fused", "fused / reference", "/ JAX", "/ JAX, factors", "share of peak"]
    return table([*head, *more], rows)


def aims() -> str:
    """The table with which ``make bench`` ends."""
    rows = [
        [
            row["what"],
            row["aim"] or "–",
            row["measured"],
            "–" if row["spread"] is None else _percent(row["spread"]),
            row["reached"] or "–",
        ]
        for row in printed("aims")["aims"]
    ]
    return table(["what", "aim", "measured", "spread", "reached"], rows)


def studies() -> str:
    """A table of whole studies from an empty store."""
    rows = [
        [
            f"`{row['study']}`",
            f"{row['runs']:,}",
            f"{row['steps'] / 1e6:,.3g}",
            _clock(row["seconds"]),
            _clock(row["whole"]),
            _percent(row["utilisation"]),
        ]
        for row in printed("whole_studies")["studies"]
    ]
    head = ["study", "runs", "million steps", "first to last probe", "with start and report"]
    return table([*head, "workers utilised"], rows)


def of_figure(study: str) -> str:
    """What a whole study took, as cells of a row: runs, training steps, minutes."""
    (row,) = (row for row in printed("whole_studies")["studies"] if row["study"] == study)
    steps = f"{row['steps'] / 1e6:.2g} million"
    cells = f"{row['runs']:,}", steps, f"{row['whole'] / 60:.1f}"
    return " | ".join(cells)


def sizes() -> str:
    """A table of the sizes at which the studies that take longer than was aimed at spend it."""
    rows = [
        [
            f"`{row['study']}`",
            f"({row['m']}, {row['d_model']})",
            *(_percent(row[name]) for name in ("seconds", "steps", "to_the_limit")),
        ]
        for row in printed("whole_studies")["sizes"]
        if row["study"] in SLOW
    ]
    head = ["study", "(m, d_model)", "of its training time", "of its steps"]
    return table([*head, "of its steps, in runs that did not converge"], rows)


def spread() -> str:
    """The most by which a rate of one core varied between rounds."""
    return _percent(max(_spreads()))


def usual_spread() -> str:
    """By how much half of the rates of one core varied at least."""
    return _percent(statistics.median(_spreads()))


def _spreads() -> list[float]:
    rows = [*printed("throughput")["rows"], *printed("facts_throughput")["rows"]]
    return [row["spread"] for row in rows if row.get("threads", 1) == 1]


def two_cores() -> str:
    """The range of the ratios of two cores to one in all rounds."""
    rows = [row for row in printed("throughput")["rows"] if row["threads"] > 1]
    ratios = [row["vs_one_thread_always"] for row in rows]
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def _by(
    rows: list[Row], name: str | None, sizes: tuple[str, ...]
) -> Iterator[tuple[tuple[str, tuple[int, ...]], list[Row]]]:
    """Rows that follow each other, by their model and their sizes."""

    def key(row: Row) -> tuple[str, tuple[int, ...]]:
        return ("" if name is None else row[name], tuple(row[size] for size in sizes))

    for one, own in groupby(rows, key):
        yield one, list(own)


def _rate(row: Row) -> str:
    """``183,000 (109×)``: steps a second, and times the reference."""
    return f"{_three(row['steps_per_second'])} ({row['vs_reference']:.3g}×)"


def _three(number: float) -> str:
    """Three significant digits, ``183,000`` or ``4.31``."""
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 100 else f"{number:.3g}"


def _percent(share: float) -> str:
    """``64 %``."""
    return f"{100 * share:.0f} %"


def _clock(seconds: float) -> str:
    """``17 s``, ``3 min 30 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


PIECES: dict[str, Callable[[], str]] = {
    "engines rates": rates,
    "engines parts": parts,
    "engines facts": facts,
    "engines aims": aims,
    "engines spread": spread,
    "engines usual spread": usual_spread,
    "engines two cores": two_cores,
    "engines studies": studies,
    **{f"engines {study}": partial(of_figure, study) for study in ("quickstart", "base-grid")},
    "engines sizes": sizes,
}
