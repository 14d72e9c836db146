"""What two studies differ in, and what that means for their results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Section, Table
from rgr_dist.analysis.report.comparison.pairs import Names, Pair, by_accuracy
from rgr_dist.analysis.report.provenance import FEW, origins, settings
from rgr_dist.analysis.rows import Row
from rgr_dist.analysis.runs import asked
from rgr_dist.analysis.wording import MISSING, plural, span
from rgr_dist.study.study import Study

FEW_SETTINGS = 3
"""The most settings that a sentence names; the page has a table of all of them."""


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
        words=[
            *([] if rows else ["Nothing: no setting, no origin."]),
            f"In the names of files, a is {names[0]} and b is {names[1]}.",
        ],
        shown=(table,) if rows else (),
    )


def _apart(
    pair: Pair, told: Callable[[StudyResults, float], Sequence[tuple[str, str]]]
) -> list[Row]:
    """Whatever is told differently of the two studies: ``name, a, b``, None where one has no value.

    Args:
        told: gives (name, value) pairs of a study; its second argument is the most cells to name.
    """
    whole, short = ([dict(told(results, most)) for results in pair] for most in (math.inf, FEW))
    rows = []
    for key in dict.fromkeys([*whole[0], *whole[1]]):
        if whole[0].get(key) != whole[1].get(key):
            shown = short if short[0].get(key) != short[1].get(key) else whole
            rows.append({"name": key, "a": shown[0].get(key), "b": shown[1].get(key)})
    return rows


def caveats(pair: Pair, names: Names) -> list[str]:
    """Which settings differ, what D_K* is in each study, and how many runs did not converge."""
    apart = _apart(pair, lambda results, most: settings(results.study, most))
    said = []
    if apart:
        one, other = names
        values = [
            f"{row['name']} ({row['a'] or MISSING} in {one}, {row['b'] or MISSING} in {other})"
            for row in apart
        ]
        more = [f"{len(values) - FEW_SETTINGS} more"] if len(values) > FEW_SETTINGS else []
        said.append(f"They differ in {', '.join([*values[:FEW_SETTINGS], *more])}.")
    ended = []
    for results, name in zip(pair, names, strict=True):
        reasons = asked(results.runs, results.study)["stop_reason"]
        at_limit = int(reasons.isin(["max_steps", "given_up", "diverged"]).sum())
        ended.append(f"{at_limit:,} of {len(reasons):,} runs of {name}")
    is_trained = not all(results.study.record.algorithm for results in pair)
    if is_trained and not by_accuracy(pair):
        where = dict(zip(names, (_which_width(results.study) for results in pair), strict=True))
        if len({*where.values()}) == 1:
            where = {"both": where[names[0]]}
        said += [f"In {name}, D_K* is {test}." for name, test in where.items()]
        within = {_within(results.study) for results in pair}
        limit = f" {within.pop()}" if len(within) == 1 else ""
        said.append(f"{' and '.join(ended)} did not converge{limit}.")
    return said


def _which_width(study: Study) -> str:
    """What D_K* is: a width over which h, the score that it must reach, and within which steps."""
    search = study.search
    end = "at most" if study.record.minimised else "at least"
    mean = f"{study.record.score} over {plural(search.seeds, 'seed')} is {end} {search.target:g}"
    which = "d_model times the fewest heads" if search.mode == "widest" else "the smallest width"
    heads = "every h" if search.heads == "all" else "h = " + ", ".join(map(str, search.heads))
    which += f", over {heads},"
    if study.record.algorithm:
        return f"{which} whose mean {mean}"
    return f"{which} whose mean test {mean}, {_within(study)}"


def _within(study: Study) -> str:
    """The step limits of a study's cells, in words."""
    limits = [cell.training.max_steps for cell in study.cells]
    limit = "within" if len({*limits}) == 1 else "within their cells' limits of"
    return f"{limit} {span(limits)} steps"
