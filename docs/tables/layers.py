"""Relations that layers hold for each number cached for a token: of four heads, and of 16."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pandas as pd

from rgr_dist.analysis.drawing.plot import as_file
from rgr_dist.analysis.layers.costs import order
from rgr_dist.analysis.layers.figure import draw_costs
from rgr_dist.analysis.rows import rows_of
from rgr_dist.analysis.wording import MISSING, three_digits
from tables.markdown import table
from tables.results import Record, printed

FIGURE = Path(__file__).parent.parent / "variants.svg"


@cache
def _order(study: str = "variants") -> list[Record]:
    return rows_of(order(pd.DataFrame(printed(study, "thresholds")["layers"])))


def _ends() -> tuple[int, int]:
    """The smallest and the largest step limit."""
    limits = {row["max_steps"] for row in _order()}
    return min(limits), max(limits)


def held(is_last: bool) -> str:
    """A row for each layer, a column for each compression, within one of the step limits."""
    limit = _ends()[is_last]
    rows = [row for row in _order() if row["max_steps"] == limit]
    ratios = sorted({row["compression"] for row in rows})
    by_layer: dict[str, dict[float, Record]] = {}
    for row in rows:
        by_layer.setdefault(row["model"], {})[row["compression"]] = row

    def place(layer: str) -> tuple[float, ...]:
        ranks = [by_layer[layer][ratio]["rank"] or len(by_layer) + 1 for ratio in ratios]
        return (sum(ranks) / len(ranks), *ranks)

    lines = [
        [f"`{layer}`", *(_told(by_layer[layer][ratio]) for ratio in ratios)]
        for layer in sorted(by_layer, key=place)
    ]
    return table(["layer", *(f"$m/d_\\text{{model}} = {ratio:g}$" for ratio in ratios)], lines)


def _told(row: Record) -> str:
    """``5.33 [4.57–5.33]``, in bold if it is like the best, and with † if it is inconsistent."""
    if row["per_cached"] is None:
        return MISSING
    ends = "–".join(three_digits(row[end]) for end in ("low", "high"))
    told = f"{three_digits(row['per_cached'])} [{ends}]{' †' if row['inconsistent'] else ''}"
    return f"**{told}**" if row["beside_best"] else told


def _bits(row: Record) -> str:
    if row["bits"] is None:
        return MISSING
    return f"{row['bits']:.2f} [{row['bits_low']:.2f}–{row['bits_high']:.2f}]"


def bits() -> str:
    """The same by parameters: bits of the graph for each, within the largest step limit."""
    rows = [row for row in _order() if row["max_steps"] == _ends()[1] and row["bits"]]
    ratios = sorted({row["compression"] for row in rows})
    told = {(row["model"], row["compression"]): _bits(row) for row in rows}
    layers = dict.fromkeys(row["model"] for row in rows)
    best = {layer: max(row["bits"] for row in rows if row["model"] == layer) for layer in layers}
    lines = [
        [f"`{layer}`", *(told.get((layer, ratio), MISSING) for ratio in ratios)]
        for layer in sorted(layers, key=lambda layer: -best[layer])
    ]
    return table(["layer", *(f"$m/d_\\text{{model}} = {ratio:g}$" for ratio in ratios)], lines)


def of_16_heads() -> str:
    """A row for each layer, a column for each step limit, and bits within the largest."""
    rows = _order("variants-16-heads")
    limits = sorted({row["max_steps"] for row in rows})
    by_layer: dict[str, dict[int, Record]] = {}
    for row in rows:
        by_layer.setdefault(row["model"], {})[row["max_steps"]] = row

    def place(layer: str) -> tuple[float, ...]:
        last_first = reversed(limits)
        return tuple(by_layer[layer][limit]["rank"] or len(by_layer) + 1 for limit in last_first)

    lines = []
    for layer in sorted(by_layer, key=place):
        told = [_told(by_layer[layer][limit]) for limit in limits]
        lines.append([f"`{layer}`", *told, _bits(by_layer[layer][limits[-1]])])
    header = ["layer", *(f"within {limit:,} steps" for limit in limits)]
    return table([*header, f"bits per parameter, within {limits[-1]:,}"], lines)


def figure() -> bytes:
    """Numbers cached for each token against the size of the graph, a panel for each layer."""
    rows = [
        {**row, "text": row["model"]}
        for row in printed("variants", "thresholds")["layers"]
        if row["max_steps"] == _ends()[1]
    ]
    return as_file(draw_costs(rows, rows[0]["model"]), "svg")


PIECES: dict[str, Callable[[], str]] = {
    "variants first": partial(held, False),
    "variants last": partial(held, True),
    "variants bits": bits,
    "variants-16-heads held": of_16_heads,
}
