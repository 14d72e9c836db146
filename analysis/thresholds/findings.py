"""The findings of a study of thresholds, in sentences; every number comes from its tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.records import integer, parse_certificate, real
from analysis.wording import MISSING, plural
from rgr_dist.study.study import Study

STATUS = {
    "found": "found",
    "censored": "censored: no pass up to the largest width allowed",
    "pruned": "pruned: cannot come within the kept margin of the best head",
    "inconsistent": "inconsistent: a wider probe fails where a narrower one passes",
    "open": "open: the search is not finished",
}


def target_words(study: Study) -> str:
    """What passes: ``a mean test score of 0.99``."""
    if study.cells[0].minimised:
        return f"a mean test error (MSE) of at most {study.search.target:g}"
    return f"a mean test score of {study.search.target}"


ONE_SEED = "With one seed nothing says how far another would move a threshold."


def score_words(study: Study) -> str:
    """What a run's score is."""
    if study.cells[0].minimised:
        return "A run's error is that of the messages that it retrieves in test contexts."
    return "A run's score is the micro-F1 of the relations that it finds in test contexts."


GRAPHS = {
    "permutation": "a random permutation of them (m′ = m relations)",
    "regular": "a random regular graph of degree r on them (m′ = r m relations)",
    "edges": "a graph on them, given as a list of m′ edges",
}


def asked(study: Study, cells: Sequence[Mapping[str, Any]]) -> str:
    """What the study asks, for a reader who has only the page.

    Args:
        cells: rows of ``thresholds.rows.cells_of``, by size.
    """
    first = study.cells[0]
    family = first.graph.family
    graph = (
        GRAPHS.get(family, family)
        if len({c.graph.family for c in study.cells}) == 1
        else "a graph of m′ relations"
    )
    limits = sorted({cell.training.max_steps for cell in study.cells})
    if study.has_budgets:
        sizes = sorted({(cell.m, cell.d_model) for cell in study.cells})
        where = f"(m, d_model) = {sizes[0]}"
        where += f" to {sizes[-1]}" if len(sizes) > 1 else ""
        which = (
            f"For {where}, m items in d_model dimensions, at step limits from {limits[0]:,} to "
            f"{limits[-1]:,},"
        )
    elif len(cells) == 1:
        which = f"At {cells[0]['full']}, m items in d_model dimensions,"
    else:
        ends = f"from {cells[0]['full']} to {cells[-1]['short']}"
        which = f"For {len(cells)} cells of m items in d_model dimensions, {ends},"
    return (
        f"{which} we asked for the smallest total key width D_K = h · d_k at which "
        f"{first.record.layer or first.model} holds {graph}: {target_words(study)} over "
        f"{plural(study.search.seeds, 'seed')}, with the best number of heads h."
    )


def found(cells: Sequence[Mapping[str, Any]], has_budgets: bool = False) -> str:
    """Where D_K* and h* are smallest and largest; nothing where fewer than two cells have one.

    Args:
        cells: rows of ``thresholds.rows.cells_of``.
        has_budgets: tell of the largest step limit of each cell alone.
    """
    when = ""
    if has_budgets:
        when, cells = "at the largest step limit ", [row for row in cells if row["largest"]]
    known = [row for row in cells if row["D_K"] is not None]
    if len(known) < 2:
        return ""
    low, high = (choose(known, key=_width) for choose in (min, max))
    if low["D_K"] == high["D_K"]:
        return f"This width, D_K*, {when}is {low['D_K']} in {plural(len(known), 'cell')}."
    heads = [int(row["h_star"]) for row in known]
    best = (
        f"one number of heads, {heads[0]}, is best throughout"
        if min(heads) == max(heads)
        else f"the best number of heads h* goes from {min(heads)} to {max(heads)}"
    )
    part = (
        ""
        if len(known) == len(cells)
        else f" in the {len(known)} of {len(cells)} cells that have one"
    )
    ends = [f"{row['D_K']} at {_place(row, has_budgets)}" for row in (low, high)]
    return f"This width, D_K*, {when}goes from {ends[0]} to {ends[1]}{part}, and {best}."


def _place(row: Mapping[str, Any], has_budgets: bool) -> str:
    return f"({row['m']}, {row['d_model']})" if has_budgets else str(row["short"])


def unfinished(cells: Sequence[Mapping[str, Any]]) -> str:
    """That some cells are still searched, so that their thresholds may change; else nothing.

    Args:
        cells: rows of ``thresholds.rows.cells_of``.
    """
    n = sum(row["status"] == "open" for row in cells)
    if not n:
        return ""
    are = "is" if n == 1 else "are"
    return (
        f"The study is not finished: {n} of {plural(len(cells), 'cell')} {are} open, and what this "
        "page says of them may change."
    )


def _width(row: Mapping[str, Any]) -> int:
    return int(row["D_K"])


def certificate_words(
    text: object, seeds: int, minimised: bool = False, target: float = math.nan
) -> str:
    """``passes at 6 (10 seeds, mean 0.9961), fails at 5 (mean ≤ 0.9824 after 2 seeds)``.

    Widths are d_k, or d_vo of facts. For a failing probe that stopped early, the mean is the best
    that all of the study's ``seeds`` could have given. A mean that fails has as many digits as tell
    it from the target.
    """
    certificate = parse_certificate(text) or {}
    passed, failed = certificate.get("pass"), certificate.get("fail")
    if not passed and not failed:
        return MISSING
    words = []
    width = "d_vo" if "d_vo" in {**(passed or {}), **(failed or {})} else "d_k"
    if passed:
        mean = _mean(passed["mean_score"])
        words.append(f"passes at {passed[width]} ({_seeds(passed['n_seeds'])}, mean {mean})")
    if failed:
        words.append(f"fails at {failed[width]} ({_failure(failed, seeds, minimised, target)})")
    elif passed:
        at_one = integer(passed[width]) == 1
        words.append("nothing is narrower" if at_one else "no failing probe below")
    yet = passed and failed and failed[width] > passed[width]
    return (" yet " if yet else ", ").join(words)


def limits(thresholds: pd.DataFrame) -> str:
    """How many thresholds are known to be limited by training, and how many by capacity."""
    capacity, budget = (
        int((thresholds["limited_by"] == by).sum()) for by in ("capacity", "budget")
    )
    return (
        f"Of {plural(capacity + budget, 'threshold')}, {budget} would be lower with a larger "
        f"training budget: D_K still falls at larger step limits. The other {capacity} are the "
        "same at the two largest."
    )


def _failure(failed: Mapping[str, Any], seeds: int, minimised: bool, target: float) -> str:
    n, mean = int(failed["n_seeds"]), real(failed["mean_score"])
    if mean is None:
        return _seeds(n)
    if n >= seeds:
        return f"{_seeds(n)}, mean {_mean(mean, target)}"
    if minimised:
        return f"mean ≥ {_mean(n * mean / seeds, target)} after {_seeds(n)}"
    ceiling = (n * mean + seeds - n) / seeds
    return f"mean ≤ {_mean(ceiling, target)} after {_seeds(n)}"


def _seeds(number: Any) -> str:
    return plural(int(number), "seed")


def _mean(score: Any, target: float = math.nan) -> str:
    told = (f"{float(score):.{digits}f}" for digits in range(4, 13))
    return next((text for text in told if float(text) != target), str(score))
