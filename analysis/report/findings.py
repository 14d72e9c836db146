"""The findings of a study of thresholds, in sentences; every number comes from its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.laws import CELLS_OF_A_LAW, Law, by_name
from analysis.records import integer, parse_certificate, real
from analysis.wording import MISSING, cell_name, plural, short_name, three_digits
from rgr_dist.paper import DENSE_LAW, PublishedLaw
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


def certificate_words(text: object, seeds: int, minimised: bool = False) -> str:
    """``passes at 6 (10 seeds, mean 0.9961), fails at 5 (mean ≤ 0.9824 after 2 seeds)``.

    Widths are d_k. For a failing probe that stopped early, the mean is the best that all of the
    study's ``seeds`` could have given.
    """
    certificate = parse_certificate(text) or {}
    passed, failed = certificate.get("pass"), certificate.get("fail")
    if not passed and not failed:
        return MISSING
    words = []
    if passed:
        mean = _mean(passed["mean_score"])
        words.append(f"passes at {passed['d_k']} ({_seeds(passed['n_seeds'])}, mean {mean})")
    if failed:
        words.append(f"fails at {failed['d_k']} ({_failure(failed, seeds, minimised)})")
    elif passed:
        at_one = integer(passed["d_k"]) == 1
        words.append("nothing is narrower" if at_one else "no failing probe below")
    yet = passed and failed and failed["d_k"] > passed["d_k"]
    return (" yet " if yet else ", ").join(words)


def headline(laws: Sequence[Law], best: pd.DataFrame) -> str:
    """The finding of the study in one sentence."""
    found = best[best["D_K"].notna()].astype("object").to_dict("records")
    law = by_name(laws)["D_K"]
    if law.slope is not None and law.n >= CELLS_OF_A_LAW:
        ends = f"95 % interval {three_digits(law.slope_low)} to {three_digits(law.slope_high)}"
        cells = f"over {law.n} of {len(best)} cells"
        r2 = "" if law.r2 is None else f", R² = {law.r2:.3f}"
        return f"D_K* ≈ {three_digits(law.slope)} · m′ log₂ m / d_model {cells} ({ends}{r2})."
    if not found:
        cells = plural(len(best), "cell")
        if (best["status"] == "open").any():
            return f"No threshold yet: the search of {cells} is not finished."
        return f"No threshold in {cells}: no head count passes at any width allowed."
    first = found[0]
    at = f"D_K* = {first['D_K']} at {plural(first['h_star'], 'head')} of width {first['d_k']}"
    so_far = " so far" if first["status"] == "open" else ""
    others = f"; {plural(len(found) - 1, 'more cell')} below" if len(found) > 1 else ""
    return f"At {cell_name(first)}, {at}{so_far}{others}; too few finished cells for a law."


def law_words(law: Law) -> str:
    """One fit with its intervals, or why there is none."""
    if law.exponent is not None:
        ends = f"[{three_digits(law.exponent_low)}, {three_digits(law.exponent_high)}]"
        factor, x = three_digits(law.factor), law.predictor
        return f"{law.response} ≈ {factor} · ({x}) ^ {three_digits(law.exponent)} {ends}"
    if law.slope is None:
        return f"no fit: {law.reason}"
    x = law.predictor
    ends = f"[{three_digits(law.slope_low)}, {three_digits(law.slope_high)}]"
    line = f"{law.response} ≈ {three_digits(law.slope)} {ends} · ({x})"
    if not law.through_origin and law.intercept is not None:
        ends = f"[{three_digits(law.intercept_low)}, {three_digits(law.intercept_high)}]"
        line += f", intercept {three_digits(law.intercept)} {ends}"
    return line


def paper_law_words(law: PublishedLaw | None) -> str:
    """The paper's counterpart of one of our laws."""
    if law is None:
        return MISSING
    sign = "−" if law.intercept < 0 else "+"
    intercept = f" {sign} {abs(law.intercept):g}" if law.intercept else ""
    r2 = "" if law.r2 is None else f", R² {law.r2:g}"
    return f"{law.slope:g} x{intercept}{r2} ({law.source})"


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


def agreement(
    comparison: pd.DataFrame, laws: Sequence[Law], published: Mapping[str, PublishedLaw]
) -> list[str]:
    """Where our thresholds and fits agree with the paper's, and where they do not.

    Args:
        comparison: the table of ``analysis.comparison.compare``.
        published: the paper's laws by name, from ``analysis.comparison.laws_for``.
    """
    dense = DENSE_LAW in published.values()
    if comparison.empty and not dense:
        return ["The paper gives no number for cells of this model, size and protocol."]
    cells = comparison.astype("object").to_dict("records")
    measured = [row for row in cells if not pd.isna(row["difference"])]
    apart = [row for row in measured if not row["agrees"]]
    lines = []
    if measured:
        total = plural(len(measured), "cell")
        if apart:
            each = "; ".join(_difference(row) for row in apart)
            lines.append(
                f"D_K* differs from the value that the paper's Table 1 implies by more than one "
                f"step of d_k in {len(apart)} of {total}: {each}."
            )
        else:
            lines.append(
                f"D_K* is within one step of d_k of the value that the paper's Table 1 implies "
                f"in {len(measured)} of {total}."
            )
    whole = {law.response: law.n for law in laws if law.name == "D_K"}
    for law in laws:
        theirs = published.get(law.name)
        if law.n < CELLS_OF_A_LAW:
            continue
        if theirs is None or law.slope is None or law.slope_low is None or law.slope_high is None:
            continue
        if law.name == "D_K_wide" and law.n == whole.get(law.response):
            continue  # no narrow cell is in the study: both fits are the same
        where = "inside" if law.slope_low <= theirs.slope <= law.slope_high else "outside"
        ends = f"{three_digits(law.slope_low)} to {three_digits(law.slope_high)}"
        lines.append(
            f"The paper's slope of {law.response}, {theirs.slope:g} (fitted to {theirs.cells}), "
            f"lies {where} our 95 % interval, {ends}."
        )
    return lines


def _difference(row: Mapping[Any, Any]) -> str:
    ours = f"{row['D_K']} at {plural(row['h_star'], 'head')}"
    return f"{short_name(row)}: {ours}, not {row['paper_D_K']} at {row['paper_h']}"


def _failure(failed: Mapping[str, Any], seeds: int, minimised: bool) -> str:
    n, mean = int(failed["n_seeds"]), real(failed["mean_score"])
    if mean is None:
        return _seeds(n)
    if n >= seeds:
        return f"{_seeds(n)}, mean {_mean(mean)}"
    if minimised:
        return f"mean ≥ {_mean(n * mean / seeds)} after {_seeds(n)}"
    ceiling = (n * mean + seeds - n) / seeds
    return f"mean ≤ {_mean(ceiling)} after {_seeds(n)}"


def _seeds(number: Any) -> str:
    return plural(int(number), "seed")


def _mean(score: Any) -> str:
    return f"{float(score):.4f}"
