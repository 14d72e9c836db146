"""The section that sets several layers side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from scipy.stats import kendalltau

from rgr_dist.analysis.layers.costs import at_largest, compares_layers, costs_of, order_of
from rgr_dist.analysis.layers.figure import draw_costs, ranged, size_of, tip
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Section, Table
from rgr_dist.analysis.rows import Row, rows_of
from rgr_dist.analysis.wording import in_words, plural, three_digits, with_limits


def section(results: StudyResults) -> Section | None:
    """The costs of every layer; None for a study that compares no layers."""
    if not compares_layers(results.study):
        return None
    rows, order = rows_of(costs_of(results)), rows_of(order_of(results))
    shown = [{**row, "text": tip(row)} for row in rows_of(at_largest(costs_of(results)))]
    known = any(row["cached"] or row["cached_low"] for row in shown)
    return Section(
        name="layers",
        title="What each layer needs",
        words=headline(results)[1:],
        figures=(draw_costs(shown, results.study.cells[0].model_name),) if known else (),
        shown=(_order(order), _costs(rows)),
        files={"layers": costs_of(results), "layers_order": order_of(results)},
    )


def headline(results: StudyResults) -> list[str]:
    """Which layers hold the most per cached number, and whether longer training changes the order.

    At least one sentence.
    """
    order = rows_of(order_of(results))
    firsts: dict[str, list[str]] = {}
    for where, every in _ranked_together(order).items():
        here = [row for row in every if row["max_steps"] == _limits(every)[1]]
        best = [row for row in here if row["rank"] and row["beside_best"]]
        if best:
            others = ", ".join(row["model"] for row in best[1:])
            beside = f", not told apart from {others}" if others else ""
            after = [row for row in here if row["rank"] and row not in best]
            if after and not others:
                held = three_digits(after[0]["per_cached"])
                beside = f", then {after[0]['model']} with {held}"
            told = f"{three_digits(best[0]['per_cached'])} at m′/d_model = {where}{beside}"
            firsts.setdefault(best[0]["model"], []).append(told)
    most = [f"{model} ({'; '.join(told)})" for model, told in firsts.items()]
    costs = rows_of(costs_of(results))
    silent = all(row["cached"] is None for row in costs)
    if not most and silent and any(row["parameters"] is not None for row in costs):
        return ["No layer says what it caches for a token, so the table compares parameters alone."]
    if not most:
        which = f"Within {_limits(order)[1]:,} steps no layer that says what it caches"
        return [f"{which} passes at every size of a compression m′/d_model."]
    found = f"Most relations for each cached number: {'; '.join(most)}."
    return [found, *_changes(order)]


def _changes(order: list[Row]) -> list[str]:
    """How far the layers' order at the smallest step limit agrees with that at the largest."""
    told = [
        f"{three_digits(tau)} of {plural(layers, 'layer')} at {where}"
        for where, tau, layers in correlations(order)
    ]
    if not told:
        return []
    words = (
        "Kendall's rank correlation of the orders within the smallest and the largest step limit"
    )
    return [f"{words}: {'; '.join(told)}. It is 1 where the order is the same."]


def _limits(order: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """The smallest and the largest step limit."""
    limits = [row["max_steps"] for row in order]
    return min(limits), max(limits)


def _ranked_together(order: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of each compression and setting, by its name: ``4``, or ``4 and length 64``."""
    places: dict[str, list[Mapping[str, Any]]] = {}
    for row in sorted(order, key=lambda row: (row["compression"], row.get("setting", ""))):
        setting = f" and {in_words(row['setting'])}" if row.get("setting") else ""
        places.setdefault(f"{row['compression']:g}{setting}", []).append(row)
    return places


def correlations(order: Sequence[Mapping[str, Any]]) -> list[tuple[str, float, int]]:
    """Kendall's rank correlation of the orders within the smallest and the largest step limit.

    Args:
        order: rows of ``costs.order``.

    Returns:
        For each compression and setting: its name, ``4`` or ``4 and length 64``, the correlation,
        and how many layers have a rank within both.
        A group is left out if it has one limit alone, if all its layers hold the same within a
        limit, or if only some of its sizes have the smallest limit.
    """
    told = []
    for where, every in _ranked_together(order).items():
        first, last = _limits(every)
        held = [
            {row["model"]: row for row in every if row["max_steps"] == steps and row["rank"]}
            for steps in (first, last)
        ]
        both = [of for of in held[0] if of in held[1] and held[0][of]["n"] == held[1][of]["n"]]
        if first < last and len(both) > 1:
            tau = kendalltau(
                *([of[model]["per_cached"] for model in both] for of in held)
            ).statistic
            if not math.isnan(tau):
                told.append((where, float(tau), len(both)))
    return told


def _setting_column(row: Row) -> list[Column]:
    shown = Column("setting", lambda row: in_words(row["setting"]), text=True)
    return [shown] if "setting" in row else []


def _order(rows: list[Row]) -> Table:
    def held(row: Mapping[str, Any]) -> str | None:
        if row["per_cached"] is None:
            return None
        return with_limits(row["per_cached"], row["low"], row["high"])

    return Table(
        name="table-layers",
        caption=(
            "Relations that a layer holds for each number cached for a token, geometric means over "
            "the sizes of one compression, each within its largest step limit up to that of the "
            "row, at the best head count and learning rate. In brackets: "
            "the range if each threshold lies anywhere in its interval. Like the best: the bracket "
            "overlaps the first layer’s. Bits: of the graph per parameter, at the threshold with "
            "the fewest parameters."
        ),
        columns=[
            *_setting_column(rows[0]),
            Column("m′/d_model", "compression", form="g"),
            Column("steps", "max_steps"),
            Column("sizes", "n"),
            Column("rank", "rank"),
            Column("layer", "model", text=True, names=True),
            Column("per cached number", held, "per_cached"),
            Column("like the best", lambda row: "yes" if row["beside_best"] else "", text=True),
            Column("bits", "bits", form=".2f"),
        ],
        rows=rows,
        cell=None,
    )


def _costs(rows: list[Row]) -> Table:
    def at(paid: str) -> Column:
        def told(row: Mapping[str, Any]) -> Any:
            rate = row[f"{paid}_learning_rate"]
            return None if rate is None else f"{row[f'{paid}_h']}, {row[f'{paid}_d_k']}, {rate:g}"

        return Column("h, d_k, rate", told, text=True)

    return Table(
        name="table-layer-costs",
        caption="The cheapest threshold of each layer in each size, and where it lies.",
        columns=[
            Column("size", size_of, text=True, names=True),
            Column("layer", "model", text=True, names=True),
            Column("steps", "max_steps"),
            Column("cached", lambda row: ranged(row, "cached"), "cached"),
            at("cached"),
            Column("parameters", lambda row: ranged(row, "parameters"), "parameters"),
            at("parameters"),
            Column("status", "status", text=True),
        ],
        rows=rows,
        cell=None,
        folded="What each layer needs in each size",
    )
