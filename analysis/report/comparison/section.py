"""The page that compares two studies, and its findings in sentences and a row for each cell."""

from __future__ import annotations

from rgr_dist.analysis.page.section import Section
from rgr_dist.analysis.report.comparison.accuracy import accuracy_words, shared_splits, splits
from rgr_dist.analysis.report.comparison.differences import caveats, differences
from rgr_dist.analysis.report.comparison.pairs import Names, Pair, alone, by_accuracy
from rgr_dist.analysis.report.comparison.widths import cells, laws, pairs_of, ratio_words
from rgr_dist.analysis.rows import Row
from rgr_dist.analysis.runs import cost_of
from rgr_dist.analysis.thresholds.rows import cells_of
from rgr_dist.analysis.wording import clock


def compared(pair: Pair, names: Names) -> list[Section]:
    """The sections of a page that sets two studies side by side."""
    makers = (summary, cells, splits, laws, differences)
    return [section for make in makers if (section := make(pair, names)) is not None]


def summary(pair: Pair, names: Names) -> Section:
    """The head of the page."""
    shared = len(cells_of(pair[0])) - len(alone(pair)[0])
    by_width = not by_accuracy(pair)
    said = ratio_words(pairs_of(pair), names) if by_width else accuracy_words(pair, names)
    costs = [(cost_of(results), name) for results, name in zip(pair, names, strict=True)]
    tiles = [(f"{int(cost['runs'].sum()):,}", f"runs, {name}") for cost, name in costs]
    tiles += [
        (clock(float(cost["seconds"].sum())), f"processor time, {name}") for cost, name in costs
    ]
    study, told = pair[0].study, caveats(pair, names)
    if len(told) > 1:  # what differs, and whether that was trained to its end
        told = [f"{told[0]} {told[-1]}", *told[1:-1]]
    return Section(
        name="summary",
        title=f"{names[0]} and {names[1]}",
        template="side-by-side",
        words=[said[0], *told[:1], *said[1:], *told[1:]] if shared else [],
        values={"one": False, "shared": shared, "study": study, "tiles": tiles}
        | {"finds": study.record.finds, "one_limit": False},
    )


def answer(pair: Pair, names: Names) -> tuple[list[str], list[Row]]:
    """How the second study differs from the first, in sentences, and a row for each cell of both.

    Returns:
        Rows of ``cell, m, d_model, D_K_a, D_K_b, h_a, h_b, d_k_a, d_k_b, ratio, ratio_low,
        ratio_high``; the ratio is null while a search is open, and an end of it where an end of
        D_K* is not known. For studies of accuracy ``cell, D_K, h, accuracy_a, accuracy_b,
        difference``.
    """
    if by_accuracy(pair):
        splits_ = [{"cell": row["key"]} | row for row in shared_splits(pair)]
        keys = ["cell", "D_K", "h", "accuracy_a", "accuracy_b", "difference"]
        said = [*accuracy_words(pair, names), *caveats(pair, names)]
        return said, [{key: row[key] for key in keys} for row in splits_]
    rows = pairs_of(pair)
    sizes = {row["anchor"]: row for row in cells_of(pair[0])}
    keys = [f"{name}_{side}" for name in ("D_K", "h", "d_k") for side in "ab"]
    keys += ["ratio", "ratio_low", "ratio_high"]
    table = [
        {"cell": row["key"]}
        | {size: sizes[row["anchor"]][size] for size in ("m", "d_model")}
        | {key: row[key] for key in keys}
        for row in rows
    ]
    if not rows:
        return ["The two have no cell in common."], table
    return [*ratio_words(rows, names), *caveats(pair, names)], table
