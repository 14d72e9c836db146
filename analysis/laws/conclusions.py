"""What a study found of the laws, in sentences; every number comes from its fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from analysis.laws.candidates import LEAST_GAP, Candidate
from analysis.laws.fits import Fits, LackOfFit
from analysis.laws.published import PublishedTest
from analysis.laws.scaling_laws import CELLS_OF_A_LAW, Law, by_name
from analysis.wording import MISSING, cell_name, plural, three_digits
from rgr_dist.paper import PublishedLaw


def growth(fits: Fits) -> str:
    """How D_K* grows: the exponent, whether proportionality holds, what else limits it."""
    power = by_name(fits.laws)["D_K_power"]
    if power.exponent is None:
        return f"No law of D_K*: {power.reason}."
    ends = _interval(power)
    line = (
        f"D_K* grows as (m′ log₂ m / d_model) to the power {three_digits(power.exponent)} "
        f"({ends} over {plural(power.n, 'cell')}{_censored(power)})"
    )
    verdict = ": the data reject proportionality" if _rejects_one(power) else (
        ": these cells leave open whether it is proportional"
    )  # fmt: skip
    wide = by_name(fits.laws).get("D_K_power_wide")
    if wide is None or wide.exponent is None or wide.n == power.n:
        return f"{line}{verdict}."
    more = (
        f"; without the cells of d_model = 16, m > 64 the power is {three_digits(wide.exponent)} "
        f"({_interval(wide)} over {plural(wide.n, 'cell')})."
    )
    return line + verdict + more


def ratios(fits: Fits) -> str:
    """The ratio of D_K* to the law's predictor over the cells, smallest to largest."""
    cells = fits.cells[fits.cells["ratio"].notna()].sort_values("ratio")
    if len(cells) < 2:
        return ""
    first, last = cells.iloc[0], cells.iloc[-1]
    return (
        f"Over {plural(len(cells), 'cell')} D_K* · d_model / (m′ log₂ m) goes from "
        f"{three_digits(first['ratio'])} at (m, d_model) = ({first['m']}, {first['d_model']}) to "
        f"{three_digits(last['ratio'])} at ({last['m']}, {last['d_model']})."
    )


def which_law(candidates: Sequence[Candidate], cells: str = "") -> str:
    """Which law the cells single out, or which of them they cannot tell apart.

    Args:
        candidates: of ``rank_candidates``, best first.
        cells: said after "the data", such as ``without the narrow cells``.
    """
    fitted = [candidate for candidate in candidates if candidate.status == "fitted"]
    if not fitted:
        reason = candidates[0].reason if candidates else "no cell has a threshold"
        return f"Which law it is cannot be asked: {reason}."
    kept = [candidate for candidate in fitted if candidate.supported]
    data = f"the data {cells}".rstrip()
    if len(kept) == 1:
        line = f"Of {plural(len(fitted), 'law')} {data} single out {kept[0].formula}"
    else:
        names = [candidate.formula for candidate in kept]
        line = f"{data[0].upper()}{data[1:]} cannot tell {_listed(names)} apart"
    paper = next((c for c in fitted if c.name == "m log m/d"), None)
    if paper is not None and (paper.gap or 0.0) > LEAST_GAP:
        best = kept[0]
        line += (
            f"; the paper's law, {paper.formula}, is {three_digits(paper.gap)} behind in AICc and "
            f"predicts a cell left out with an error of {_percent(paper.loo_error)}, where "
            f"{best.formula} has {_percent(best.loo_error)}"
        )
    return f"{line}."


def log_factor(candidates: Sequence[Candidate]) -> str:
    """What the data say of the factor log m, with any powers of m/d_model and log m."""
    both = next((c for c in candidates if c.name == "(m/d)^a (log m)^b"), None)
    if both is None or both.status != "fitted":
        return ""
    b, low, high = both.parameters["b"], both.low["b"], both.high["b"]
    ends = f"95 % interval {three_digits(low)} to {three_digits(high)}"
    if low is not None and high is not None and (low > 1 or high < 0 or high - low < 1):
        return f"The power of log₂ m is {three_digits(b)} ({ends})."
    return (
        f"Beside a free power of m′/d_model the power of log₂ m is {three_digits(b)} ({ends}): "
        "the data do not determine the log m factor."
    )


def lack_of_fit(tests: Sequence[LackOfFit]) -> str:
    """Whether seeds and resolution explain the scatter about the power law."""
    test = next((one for one in tests if one.law == "D_K_power"), None)
    if test is None:
        return ""
    about = (
        f"about it D_K* scatters by {_percent(test.scatter)}, where seeds and the resolution of "
        f"d_k explain {_percent(test.noise)} (χ² = {test.chi2:.0f} at {test.degrees} degrees of "
        f"freedom, {_p(test.p_value)})"
    )
    if test.p_value < 0.05:
        return f"The power law is a description, not the whole truth: {about}."
    return f"The power law fits within the noise: {about}."


def leverage(fits: Fits) -> str:
    """Which cell weighs most in the paper's estimator, and in ours."""
    cells = fits.cells[fits.cells["leverage"].notna() & fits.cells["leverage_paper"].notna()]
    if len(cells) < CELLS_OF_A_LAW:
        return ""
    theirs, ours = (
        cells.iloc[int(cells[name].to_numpy().argmax())] for name in ("leverage_paper", "leverage")
    )
    return (
        f"In the line through the origin ({theirs['m']}, {theirs['d_model']}) alone has leverage "
        f"{theirs['leverage_paper']:.2f}; on the log scale no cell has more than "
        f"{ours['leverage']:.2f}, at ({ours['m']}, {ours['d_model']})."
    )


def published(tests: Sequence[PublishedTest]) -> list[str]:
    """Whether the paper's laws are compatible with our cells, a sentence for each test.

    Where a study has none of the cells that a law leaves out, its test is one made already.
    """
    lines: list[str] = []
    made = set()
    for test in tests:
        same = replace(test, name="")
        if test.p_value is None or same in made:
            continue
        made.add(same)
        can = "is compatible" if test.compatible else "is not compatible"
        of = "h*" if test.name == "h" else "D_K*"
        which = " without d_model = 16, m > 64" if test.name == "D_K_wide" else ""
        what = f"The paper's {of} ≈ {test.published}{which} ({test.source})"
        over = f"{plural(test.n, 'cell')}"
        if test.scale == "linear":
            lines.append(
                f"{what} {can} with our {over} by its own estimator, which gives "
                f"{three_digits(test.ours)} ({_p(test.p_value)}, rounding included"
                f"{_theirs(test)})."
            )
        else:
            lines.append(
                f"{what}, taken as a law of every cell, {can} with our {over} on the log scale, "
                f"where the power is {three_digits(test.exponent)} ({_p(test.p_value)})."
            )
    return lines


def left_out(fits: Fits) -> str:
    """Which cells no law counts, and of which protocols and step limits the others are."""
    lines = []
    if len(fits.left_out):
        counts = fits.left_out["status"].value_counts().sort_index()
        each = ", ".join(f"{number} {status}" for status, number in counts.items())
        verb = "counts" if len(fits.left_out) == 1 else "count"
        lines.append(f"{plural(len(fits.left_out), 'cell')} {verb} in no law: {each}.")
    if any(law.max_steps is not None for law in fits.laws):
        lines.append("The laws are of each cell's largest step limit unless they name one.")
    others = {law.protocol for law in fits.laws if law.protocol is not None}
    if others:
        lines.append(
            f"The study has {plural(len(others) + 1, 'protocol')}, which are not taken together: "
            "all of this is of the one that most cells have, or that is listed first, and the "
            "others have fits of their own."
        )
    limits = sorted(set(fits.cells["max_steps"].dropna()))
    if len(limits) > 1:
        lines.append(
            f"The step limit goes from {limits[0]:,} to {limits[-1]:,} over these cells, which the "
            "laws take together, as the paper does."
        )
    return " ".join(lines)


def sentences(fits: Fits) -> list[str]:
    """Everything that can be said, the most important first; empty parts are left out."""
    said = [
        growth(fits),
        which_law(fits.candidates),
        log_factor(fits.candidates),
        ratios(fits),
        lack_of_fit(fits.lack_of_fit),
        leverage(fits),
        *published(fits.published),
        left_out(fits),
    ]
    return [line for line in said if line]


def _rejects_one(law: Law) -> bool:
    low, high = law.exponent_low, law.exponent_high
    return (low is not None and low > 1) or (high is not None and high < 1)


def _interval(law: Law) -> str:
    return f"95 % interval {three_digits(law.exponent_low)} to {three_digits(law.exponent_high)}"


def _censored(law: Law) -> str:
    return f", {law.n_censored} of them censored" if law.n_censored else ""


def _percent(log_error: float | None) -> str:
    return "–" if log_error is None else f"{100 * log_error:.0f} %"


def _p(value: float) -> str:
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"


def _theirs(test: PublishedTest) -> str:
    if test.p_value_with_theirs is None:
        return ""
    return f"; with the sampling error of theirs, {_p(test.p_value_with_theirs)}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def headline(fits: Fits, best: pd.DataFrame) -> str:
    """The finding of the study: how D_K* grows, or what is known where no law can be fitted."""
    found = best[best["D_K"].notna()].astype("object").to_dict("records")
    power = by_name(fits.laws)["D_K_power"]
    if power.exponent is not None:
        return growth(fits)
    if not found:
        cells = plural(len(best), "cell")
        if (best["status"] == "open").any():
            return f"No threshold yet: the search of {cells} is not finished."
        return f"No threshold in {cells}: no head count passes at any width allowed."
    first = found[0]
    at = f"D_K* = {first['D_K']} at {plural(first['h_star'], 'head')} of width {first['d_k']}"
    so_far = " so far" if first["status"] == "open" else ""
    more = len(found) - 1
    others = f"; {plural(more, 'more cell')} in the table" if more else ""
    return f"At {cell_name(first)}, {at}{so_far}{others}; too few finished cells for a law."


def law_words(law: Law) -> str:
    """One fit with its intervals, or why there is none."""
    x = law.predictor.replace("log2(m²/m')", "log₂(m²/m′)").replace("log2(m)", "log₂ m")
    x = x.replace("m'", "m′")
    if law.exponent is not None:
        ends = f"[{three_digits(law.exponent_low)}, {three_digits(law.exponent_high)}]"
        factor = three_digits(law.factor)
        return f"{law.response} ≈ {factor} · ({x}) ^ {three_digits(law.exponent)} {ends}"
    if law.slope is None:
        return f"no fit: {law.reason}"
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
