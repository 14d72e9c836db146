"""Two studies side by side: what differs between them, and what that does to the results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from rgr_dist.analysis.laws.fits import fits_of
from rgr_dist.analysis.laws.scaling_laws import by_name
from rgr_dist.analysis.laws.section import law_words
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Section, Table, cell_column
from rgr_dist.analysis.report.provenance import FEW, origins, settings
from rgr_dist.analysis.report.side_by_side_figure import draw_side_by_side
from rgr_dist.analysis.rows import Row, named
from rgr_dist.analysis.runs import asked, cost_of
from rgr_dist.analysis.splits.accuracy import splits_of
from rgr_dist.analysis.thresholds.best import best_of
from rgr_dist.analysis.thresholds.rows import cells_of
from rgr_dist.analysis.wording import (
    MISSING,
    clock,
    number,
    plural,
    real_range,
    span,
    three_digits,
    with_limits,
)
from rgr_dist.search.confidence_interval import t_interval
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

FEW_SETTINGS = 3
"""Settings that a sentence names; the page has a table of all."""

Pair = tuple[StudyResults, StudyResults]
Names = tuple[str, str]


def summary(pair: Pair, names: Names) -> Section:
    """The head of the page."""
    shared = len(cells_of(pair[0])) - len(_alone(pair)[0])
    by_accuracy = _by_accuracy(pair)
    said = _accuracy_words(pair, names) if by_accuracy else _ratio_words(_pairs(pair, names), names)
    costs = [(cost_of(results), name) for results, name in zip(pair, names, strict=True)]
    tiles = [(f"{int(cost['runs'].sum()):,}", f"runs, {name}") for cost, name in costs]
    tiles += [
        (clock(float(cost["seconds"].sum())), f"processor time, {name}") for cost, name in costs
    ]
    study = pair[0].study
    return Section(
        name="summary",
        title=f"{names[0]} and {names[1]}",
        template="side-by-side",
        words=[*said, *_caveats(pair, names)] if shared else [],
        values={"names": names, "shared": shared, "study": study, "tiles": tiles}
        | {"finds": study.record.finds, "one_limit": False},
    )


def cells(pair: Pair, names: Names) -> Section | None:
    """D_K*, h* and d_k of the cells of both studies; None where the studies measure accuracy."""
    if _by_accuracy(pair):
        return None
    rows = _pairs(pair, names)
    words = [
        f"{plural(len(own), 'cell')} of {name} {'is' if len(own) == 1 else 'are'} not in {other}: "
        f"{', '.join(own)}."
        for own, name, other in zip(_alone(pair), names, reversed(names), strict=True)
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


def splits(pair: Pair, names: Names) -> Section | None:
    """Accuracy of every split that both studies have; None where they search thresholds."""
    if not _by_accuracy(pair):
        return None
    rows = _shared_splits(pair)

    table = Table(
        name="table-splits",
        caption="Means over seeds, 95 % t-intervals in brackets.",
        columns=[
            cell_column(),
            Column("D_K", "D_K"),
            Column("h", "h"),
            Column(f"accuracy, {names[0]}", "words_a", "accuracy_a"),
            Column(f"accuracy, {names[1]}", "words_b", "accuracy_b"),
            Column("difference", "difference", form="+.3f"),
        ],
        rows=rows,
    )
    files = {f"splits-{side}": splits_of(t) for side, t in zip("ab", pair, strict=True)}
    return Section(name="splits", title="Accuracy", shown=(table,), files=files)


def laws(pair: Pair, names: Names) -> Section | None:
    """The fits of both studies, by name."""
    if _by_accuracy(pair):
        return None
    fits = [fits_of(results) for results in pair]
    first, second = (by_name(own.laws) for own in fits)
    rows = [
        {"name": f"{law.response}, {law.cells}", "by": law.estimator}
        | {"a": law_words(law, fits[0].rejected)}
        | {"b": law_words(second[name], fits[1].rejected)}
        for name, law in first.items()
        if name in second and (law.n or second[name].n)
    ]
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


def differences(pair: Pair, names: Names) -> Section:
    """The settings and origins in which the studies differ."""
    rows = _apart(
        pair,
        lambda results, most: [
            *settings(results.study, most),
            *origins(results.runs, results.study),
        ],
    )
    table = Table(
        name="table-differences",
        caption="Settings, and what trained the runs, where the two differ.",
        columns=[
            Column("setting", "name", text=True, names=True),
            Column(names[0], "a", text=True, names=True),
            Column(names[1], "b", text=True, names=True),
        ],
        rows=rows,
        cell=None,
    )
    return Section(
        name="differences",
        title="What differs",
        words=[] if rows else ["Nothing: no setting, no origin."],
        shown=(table,) if rows else (),
    )


def answer(pair: Pair, names: Names) -> tuple[list[str], list[Row]]:
    """How the second study differs from the first, in sentences, and a row for each cell of both.

    Returns:
        Rows of ``cell, m, d_model, D_K_a, D_K_b, h_a, h_b, d_k_a, d_k_b, ratio, ratio_low,
        ratio_high``; no ratio while a search is open, and no end of one where an end of D_K* is not
        known. Of studies of accuracy ``cell, D_K, h, accuracy_a, accuracy_b, difference``.
    """
    if _by_accuracy(pair):
        splits_ = [{"cell": row["short"]} | row for row in _shared_splits(pair)]
        keys = ["cell", "D_K", "h", "accuracy_a", "accuracy_b", "difference"]
        said = [*_accuracy_words(pair, names), *_caveats(pair, names)]
        return said, [{key: row[key] for key in keys} for row in splits_]
    rows = _pairs(pair, names)
    sizes = {row["anchor"]: row for row in cells_of(pair[0])}
    keys = [f"{name}_{side}" for name in ("D_K", "h", "d_k") for side in "ab"]
    keys += ["ratio", "ratio_low", "ratio_high"]
    table = [
        {"cell": row["short"]}
        | {size: sizes[row["anchor"]][size] for size in ("m", "d_model")}
        | {key: row[key] for key in keys}
        for row in rows
    ]
    if not rows:
        return ["The two have no cell in common."], table
    return [*_ratio_words(rows, names), *_caveats(pair, names)], table


def _by_accuracy(pair: Pair) -> bool:
    return pair[0].study.record.finds == "accuracy"


def _partners(pair: Pair) -> dict[str, str]:
    """The cell of the second study that stands beside each of the first, by cell_id.

    One of its size alone is compared whatever else differs. Where either study has several of a
    size, they must agree in the keys that tell those apart, such as the step limit.
    """
    groups: tuple[dict[str, list[Cell]], ...] = {}, {}
    for results, group in zip(pair, groups, strict=True):
        for cell in results.study.cells:
            group.setdefault(cell.name, []).append(cell)
    partners = {}
    for name in groups[0].keys() & groups[1].keys():
        keys = [
            {cell.cell_id: results.study.keys_of(cell) for cell in group[name]}
            for results, group in zip(pair, groups, strict=True)
        ]
        telling = {
            key
            for side in keys
            for key in {key for own in side.values() for key in own}
            if len({str(own.get(key)) for own in side.values()}) > 1
        }
        for cell_id, own in keys[0].items():
            alike = [
                other_id
                for other_id, other in keys[1].items()
                if all(own.get(key) == other.get(key) for key in telling)
            ]
            if len(alike) == 1:
                partners[cell_id] = alike[0]
    return partners


def _alone(pair: Pair) -> tuple[list[str], list[str]]:
    """The names of the cells of each study that the other has not."""
    partners = _partners(pair)
    both = set(partners), set(partners.values())
    first, second = (
        [row["short"] for row in cells_of(results) if row["cell_id"] not in paired]
        for results, paired in zip(pair, both, strict=True)
    )
    return first, second


COMPARED = {
    "D_K": "D_K", "low": "D_K_low", "high": "D_K_high", "h": "h_star", "d_k": "d_k",
    "words": "width_words", "h_words": "arm_words",
}  # fmt: skip
"""What a row of both cells has of each, and the key of it in ``cells_of``."""


def _pairs(pair: Pair, names: Names) -> list[Row]:
    """A row for each cell of both studies."""
    partners = _partners(pair)
    sizes = {cell.cell_id: cell.name for cell in pair[0].study.cells}
    others = {row["cell_id"]: row for row in cells_of(pair[1])}
    rows = []
    for one in cells_of(pair[0]):
        if one["cell_id"] not in partners:
            continue
        other = others[partners[one["cell_id"]]]
        row = {name: one[name] for name in ("anchor", "short", "full", "scale")}
        row["size"] = sizes[one["cell_id"]]
        row["is_open"] = "open" in (one["status"], other["status"])
        for side, of in (("a", one), ("b", other)):
            row |= {f"{name}_{side}": of[key] for name, key in COMPARED.items()}
            if of["status"] == "open" and of["D_K"] is not None:
                row[f"words_{side}"] += ", so far"
        row |= _ratio(one, other)
        row["text"] = "\n".join(
            [
                row["full"],
                *(f"{name}: D_K* = {row[f'words_{s}']}, h* = {row[f'h_words_{s}']}"
                  for s, name in zip("ab", names, strict=True)),
                f"ratio {row['ratio_words']}",
            ]
        )  # fmt: skip
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


def _ratio_words(rows: Sequence[Row], names: Names) -> list[str]:
    """What the ratios are, and how many are not known yet."""
    n_open = sum(row["is_open"] for row in rows)
    left_out = [f"Left out: {plural(n_open, 'cell')} whose search is not finished."]
    known = [row for row in rows if row["ratio"] is not None]
    return [*_mean_words(known, names), *(left_out if n_open else [])]


def _mean_words(known: Sequence[Row], names: Names) -> list[str]:
    """The geometric mean of the ratios, with its interval, and their range.

    Cells of one size count as one, with their mean: they are no independent evidence.
    """
    if not known:
        return ["No cell has a threshold in both."]
    if all(row["ratio"] == 1 for row in known):
        return [f"D_K* is the same in {plural(len(known), 'cell')}."]
    if len(known) == 1:
        ratio = known[0]["ratio_words"]
        return [f"{names[1]} needs {ratio} times the D_K* of {names[0]}, in 1 cell."]
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


def _apart(
    pair: Pair, told: Callable[[StudyResults, float], Sequence[tuple[str, str]]]
) -> list[Row]:
    """What differs of what is told of each study: ``name, a, b``, None where one has no such thing.

    Args:
        told: of a study, with so many cells named for each value.
    """
    whole, short = ([dict(told(results, most)) for results in pair] for most in (math.inf, FEW))
    rows = []
    for key in dict.fromkeys([*whole[0], *whole[1]]):
        if whole[0].get(key) != whole[1].get(key):
            shown = short if short[0].get(key) != short[1].get(key) else whole
            rows.append({"name": key, "a": shown[0].get(key), "b": shown[1].get(key)})
    return rows


def _caveats(pair: Pair, names: Names) -> list[str]:
    """What else differs, what passes in each, and how many runs did not converge."""
    apart = _apart(pair, lambda results, most: settings(results.study, most))
    said = []
    if apart:
        values = [f"{row['name']} ({row['a'] or MISSING}; {row['b'] or MISSING})" for row in apart]
        more = [f"{len(values) - FEW_SETTINGS} more"] if len(values) > FEW_SETTINGS else []
        said.append(f"They differ in {', '.join([*values[:FEW_SETTINGS], *more])}.")
    ended = []
    for results, name in zip(pair, names, strict=True):
        reasons = asked(results.runs, results.study)["stop_reason"]
        at_limit = int(reasons.isin(["max_steps", "given_up", "diverged"]).sum())
        ended.append(f"{at_limit:,} of {len(reasons):,} runs of {name}")
    is_trained = not all(results.study.record.algorithm for results in pair)
    if is_trained and not _by_accuracy(pair):
        where = dict(zip(names, (_passing(results.study) for results in pair), strict=True))
        if len({*where.values()}) == 1:
            where = {"both": where[names[0]]}
        said += [f"In {name}, D_K* is the smallest width {test}." for name, test in where.items()]
        said.append(f"{' and '.join(ended)} did not converge.")
    return said


def _passing(study: Study) -> str:
    """What a width must reach to pass, and in how many steps if it is trained."""
    search, limits = study.search, [cell.training.max_steps for cell in study.cells]
    end = "at most" if study.record.minimised else "at least"
    mean = f"{study.record.score} over {plural(search.seeds, 'seed')} is {end} {search.target:g}"
    if study.record.algorithm:
        return f"whose mean {mean}"
    limit = "within" if len({*limits}) == 1 else "within its cell's limit of"
    return f"whose mean test {mean}, {limit} {span(limits)} steps"


def _shared_splits(pair: Pair) -> list[Row]:
    """A row for each split of both studies."""
    partners = _partners(pair)
    second = named(pair[1], splits_of(pair[1]))
    others = {(row["cell_id"], row["D_K"], row["h"]): row for row in second}
    rows = []
    for one in named(pair[0], splits_of(pair[0])):
        other = others.get((partners.get(one["cell_id"], ""), one["D_K"], one["h"]))
        if other is None:
            continue
        row = {name: one[name] for name in ("anchor", "short", "D_K", "h")}
        for side, of in (("a", one), ("b", other)):
            row[f"accuracy_{side}"] = of["accuracy"]
            row[f"words_{side}"] = real_range(of["accuracy"], of["low"], of["high"])
        rows.append(row | {"difference": other["accuracy"] - one["accuracy"]})
    return rows


def _accuracy_words(pair: Pair, names: Names) -> list[str]:
    rows = _shared_splits(pair)
    if not rows:
        return ["No split among heads has runs in both."]
    gains = [row["difference"] for row in rows]
    mean = number(float(np.mean(gains)), "+.3f")
    over = plural(len(rows), "split")
    pair_ = f"the accuracy of {names[1]} minus the accuracy of {names[0]}"
    return [f"Over {over}, {pair_} is {mean} on average."]
