"""Relations that layers hold for each number cached for a token: of four heads, and of 16."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path

import pandas as pd

from rgr_dist.analysis.drawing.plot import as_file
from rgr_dist.analysis.layers.costs import order
from rgr_dist.analysis.layers.figure import draw_costs
from rgr_dist.analysis.layers.section import correlations as correlations_of
from rgr_dist.analysis.rows import rows_of
from rgr_dist.analysis.wording import MISSING, with_limits
from tables.markdown import table
from tables.results import Record, printed

COMPETE = ["softmax", "cosine", "top_k", "talking_heads", "differential"]
"""Layers in which the scores of a row compete."""
LATENTS = "latent-widths"
FIGURE = Path(__file__).parent.parent / "variants.svg"


@cache
def _order(study: str = "variants") -> list[Record]:
    rows = printed(study, "thresholds")["layers"]
    return rows_of(order(pd.DataFrame(rows + (_beside(rows) if study == LATENTS else []))))


def _beside(rows: list[Record]) -> list[Record]:
    """The layers of ``variants`` without a latent at the sizes and within the limits of others."""
    asked = {(row["m"], row["d_model"], row["max_steps"]) for row in rows}
    return [
        row
        for row in printed("variants", "thresholds")["layers"]
        if row["model"] in ("max", "multi_query")
        and (row["m"], row["d_model"], row["max_steps"]) in asked
    ]


def _ends(study: str = "variants") -> tuple[int, int]:
    """The smallest and the largest step limit."""
    limits = {row["max_steps"] for row in _order(study)}
    return min(limits), max(limits)


def held(is_last: bool, study: str = "variants") -> str:
    """A row for each layer, a column for each compression, within one of the step limits."""
    limit = _ends(study)[is_last]
    rows = [row for row in _order(study) if row["max_steps"] == limit]
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
    told = with_limits(row["per_cached"], row["low"], row["high"])
    told += " †" if row["inconsistent"] else ""
    return f"**{told}**" if row["beside_best"] else told


def _bits(row: Record) -> str:
    if row["bits"] is None:
        return MISSING
    return with_limits(row["bits"], row["bits_low"], row["bits_high"], "{:.2f}".format)


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
    limits = _ends("variants-16-heads")
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


def _held(study: str, model: str, limit: int) -> dict[float, float]:
    """By compression what a layer holds for a cached number, where it passes at every size."""
    return {
        row["compression"]: row["per_cached"]
        for row in _order(study)
        if row["model"].partition("(")[0] == model and row["max_steps"] == limit and row["rank"]
    }


def _span(values: Iterable[float], form: str = ".1f") -> str:
    """``1.1 to 1.4``, or one number if both are alike."""
    known = sorted(values)
    return " to ".join(dict.fromkeys(f"{value:{form}}" for value in (known[0], known[-1])))


def beside_max(models: Sequence[str], of_max: bool = False, study: str = "variants") -> str:
    """How many times what max holds layers hold, or max what they hold, within any step limit.

    Of ``variants`` within the largest alone.
    """
    ratios = []
    for limit in _ends(study)[study == "variants" :]:
        first = _held(study, "max", limit)
        for model in models:
            own = _held(study, model, limit)
            ratios += [own[c] / first[c] for c in own.keys() & first.keys()]
    return _span(1 / ratio for ratio in ratios) if of_max else _span(ratios)


def longer(models: Sequence[str]) -> str:
    """``18 to 50 %``: by how much more layers hold within the larger step limit."""
    first, last = ({m: _held("variants", m, limit) for m in models} for limit in _ends())
    gains = [last[m][c] / first[m][c] - 1 for m in models for c in first[m].keys() & last[m].keys()]
    return f"{_span((100 * gain for gain in gains), '.0f')} %"


def correlations(study: str = "variants") -> str:
    """Kendall's of the orders within both step limits, at each compression."""
    told = correlations_of(_order(study))
    return " and ".join(f"{tau:.2f} over {n} layers at {where}" for where, tau, n in told)


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
    "variants multi-query": partial(beside_max, ["multi_query"]),
    "variants each": partial(beside_max, ["sigmoid", "squared_relu"]),
    "variants compete": partial(beside_max, COMPETE, of_max=True),
    "variants longer": partial(longer, ["max", "multi_query", "grouped"]),
    "variants order": correlations,
    "variants-16-heads held": of_16_heads,
    "latent-widths held": partial(held, True, LATENTS),
    "variants-16-heads each": partial(
        beside_max, ["sigmoid", "squared_relu"], study="variants-16-heads"
    ),
    "variants-16-heads order": partial(correlations, "variants-16-heads"),
    "variants-16-heads multi-query": partial(
        beside_max, ["multi_query"], study="variants-16-heads"
    ),
}
