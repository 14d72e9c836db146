"""What two studies found: the D_K* of each cell, their ratio, and the laws."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rgr_dist.analysis.laws.fits import fits_of
from rgr_dist.analysis.laws.scaling_laws import by_name
from rgr_dist.analysis.laws.section import law_words
from rgr_dist.analysis.page.section import Column, Section, Table, cell_column
from rgr_dist.analysis.report.comparison.figure import draw_side_by_side
from rgr_dist.analysis.report.comparison.pairs import Names, Pair, alone, by_accuracy, partners_of
from rgr_dist.analysis.rows import Row
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.analysis.thresholds.rows import cells_of
from rgr_dist.analysis.wording import plural, three_digits, with_limits
from rgr_dist.search.confidence_interval import t_interval


def cells(pair: Pair, names: Names) -> Section | None:
    """D_K*, h* and d_k of the cells of both studies; None where the studies measure accuracy."""
    if by_accuracy(pair):
        return None
    rows = pairs_of(pair)
    words = [
        f"{plural(len(own), 'cell')} of {name} {'is' if len(own) == 1 else 'are'} not in {other}: "
        f"{', '.join(own)}."
        for own, name, other in zip(alone(pair), names, reversed(names), strict=True)
        if own
    ]
    table = Table(
        name="table-cells",
        caption=(
            f"Ratio: D_K* of {names[1]} over D_K* of {names[0]}, in brackets the range that both "
            "intervals allow. Shaded: the intervals of D_K* do not meet."
        ),
        columns=[
            cell_column(),
            Column(f"D_K*, {names[0]}", "words_a", "D_K_a"),
            Column(f"D_K*, {names[1]}", "words_b", "D_K_b"),
            Column("ratio", "ratio_words", "ratio"),
            Column(f"h*, {names[0]}", "h_words_a", "h_a"),
            Column(f"h*, {names[1]}", "h_words_b", "h_b"),
            Column(f"d_k, {names[0]}", "d_k_a"),
            Column(f"d_k, {names[1]}", "d_k_b"),
        ],
        rows=rows,
        anchored=True,
        apart=lambda row: (row["ratio_low"] or 1) > 1 or (row["ratio_high"] or 1) < 1,
    )
    figures = [draw_side_by_side(rows, *names)] if any(row["ratio"] for row in rows) else []
    files = {f"best-{side}": best_of(t) for side, t in zip("ab", pair, strict=True)}
    return Section(
        name="cells",
        title="Cells",
        words=words,
        figures=figures,
        shown=(table,) if rows else (),
        files=files,
    )


def laws(pair: Pair, names: Names) -> Section | None:
    """The fits of both studies, by name; None if no law could be fitted."""
    if by_accuracy(pair):
        return None
    fits = [fits_of(results) for results in pair]
    first, second = (by_name(own.laws) for own in fits)
    rows = [
        {"name": f"{law.response}, {law.cells}", "by": law.estimator}
        | {"a": law_words(law, fits[0].rejected)}
        | {"b": law_words(second[name], fits[1].rejected)}
        for name, law in first.items()
        if name in second and "fitted" in (law.status, second[name].status)
    ]
    if not rows:
        return None
    table = Table(
        name="table-laws",
        caption="The fits of each study to its own cells, 95 % intervals in brackets.",
        columns=[
            Column("of", "name", text=True),
            Column("by", "by", text=True),
            Column(names[0], "a", text=True),
            Column(names[1], "b", text=True),
        ],
        rows=rows,
        cell=None,
    )
    return Section(name="laws", title="Laws", shown=(table,))


COMPARED = {
    "D_K": "D_K", "low": "D_K_low", "high": "D_K_high", "h": "h_star", "d_k": "d_k",
    "words": "width_words", "h_words": "arm_words",
}  # fmt: skip
"""What a row of two cells has from each of them, and the key of that in ``cells_of``."""


def pairs_of(pair: Pair) -> list[Row]:
    """A row for each cell of both studies."""
    partners = partners_of(pair)
    sizes = {cell.cell_id: cell.name for cell in pair[0].study.cells}
    others = {row["cell_id"]: row for row in cells_of(pair[1])}
    rows = []
    for one in cells_of(pair[0]):
        if one["cell_id"] not in partners:
            continue
        other = others[partners[one["cell_id"]]]
        row = {name: one[name] for name in ("anchor", "short", "key", "full", "scale")}
        row["size"] = sizes[one["cell_id"]]
        row["is_open"] = "open" in (one["status"], other["status"])
        for side, of in (("a", one), ("b", other)):
            row |= {f"{name}_{side}": of[key] for name, key in COMPARED.items()}
            if of["status"] == "open" and of["D_K"] is not None:
                row[f"words_{side}"] += ", so far"
        row |= _ratio(one, other)
        widths = f"D_K*: {row['words_a']} and {row['words_b']}"
        row["text"] = f"{row['full']}\n{widths}\nratio {row['ratio_words']}"
        rows.append(row)
    return rows


def _ratio(one: Row, other: Row) -> Row:
    if "open" in (one["status"], other["status"]) or one["D_K"] is None or other["D_K"] is None:
        return dict.fromkeys(("ratio", "ratio_low", "ratio_high", "ratio_words"))
    ratio = other["D_K"] / one["D_K"]
    ends = (other["D_K_low"], one["D_K_high"]), (other["D_K_high"], one["D_K_low"])
    low, high = (above / below if above and below else None for above, below in ends)
    words = with_limits(ratio, low, high, "{:.2f}".format)
    return {"ratio": ratio, "ratio_low": low, "ratio_high": high, "ratio_words": words}


def ratio_words(rows: Sequence[Row], names: Names) -> list[str]:
    """What the ratios are, and how many are not known yet."""
    n_open = sum(row["is_open"] for row in rows)
    left_out = [f"Left out: {plural(n_open, 'cell')} whose search is not finished."]
    known = [row for row in rows if row["ratio"] is not None]
    return [*_mean_words(known, names), *(left_out if n_open else [])]


def _mean_words(known: Sequence[Row], names: Names) -> list[str]:
    """The geometric mean of the ratios, with its interval, and their range.

    Cells of one size count as one, with their mean: they are not independent evidence.
    """
    if not known:
        return ["No cell has a threshold in both."]
    if all(row["ratio"] == 1 for row in known):
        return [f"D_K* is the same in {plural(len(known), 'cell')}."]
    if len(known) == 1:
        one = known[0]
        widths = f"{one['words_b']} against {one['words_a']}"
        needs = f"{names[1]} needs {one['ratio_words']} times the D_K* of {names[0]}"
        return [f"{needs} at {one['full']}: {widths}."]
    by_size: dict[str, list[float]] = {}
    for row in known:
        by_size.setdefault(row["size"], []).append(math.log(row["ratio"]))
    logs = [float(np.mean(own)) for own in by_size.values()]
    mean = math.exp(float(np.mean(logs)))
    line = f"{names[1]} needs {three_digits(mean)} times the D_K* of {names[0]}"
    sizes = f"{plural(len(logs), 'size')} with " if len(logs) < len(known) else ""
    over, verdict = f"geometric mean over {sizes}{plural(len(known), 'cell')}", ""
    if (ends := t_interval(logs)) is not None:
        low, high = (three_digits(math.exp(end)) for end in ends)
        over += f"; 95 % t-interval {low} to {high}"
        verdict = ": no difference is shown" if ends[0] <= 0 <= ends[1] else ""
    least, most = (choose(known, key=lambda row: row["ratio"]) for choose in (min, max))
    ends_ = f"{most['ratio']:.2f} at {most['short']}"
    reach = f"The ratio goes from {least['ratio']:.2f} at {least['full']} to {ends_}."
    return [f"{line} ({over}){verdict}.", reach]
