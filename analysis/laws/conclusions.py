"""What a study found about the laws, in sentences; the tables of ``rgr fit`` have the numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rgr_dist.analysis.laws.candidates import LEAST_GAP, Candidate, is_law
from rgr_dist.analysis.laws.fits import Fits, fits_of
from rgr_dist.analysis.laws.published import p_words
from rgr_dist.analysis.laws.scaling_laws import ALL, Law, by_name
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.rows import names_of
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.analysis.wording import plural, span, three_digits, with_limits, with_range


def sentences(fits: Fits) -> list[str]:
    """How D_K* grows, which laws are rejected or kept, and which cells no law counts."""
    said = [growth(fits), lack_of_fit(fits), which_law(fits.candidates), left_out(fits)]
    return [line for line in (*said, possible(fits)) if line]


def possible(fits: Fits) -> str:
    """How the smallest width known to pass grows; empty if none lies below a threshold."""
    law = by_name(fits.laws).get("D_K_possible_power")
    if law is None or law.exponent is None:
        return ""
    return f"The {growth_of(law)}. Each width is an upper bound: weights are known that pass."


def headline(results: StudyResults) -> list[str]:
    """The finding of the study: how D_K* grows, or what is known where no law can be fitted."""
    fits, best = fits_of(results), best_of(results)
    law = better_law(fits)
    if law is not None:
        return best_law(law, fits)
    if by_name(fits.laws)["D_K_power"].exponent is not None:
        every, *wide = growth(fits).split("; without ")
        said = [f"{every.rstrip('.')}.", *(f"Without {line}" for line in wide), lack_of_fit(fits)]
        return [line for line in said if line]
    found = best[best["D_K"].notna()].astype("object").to_dict("records")
    if not found:
        cells = plural(len(best), "cell")
        if (best["status"] == "open").any():
            return [f"No threshold yet: the search of {cells} is not finished."]
        return [f"No threshold in {cells}: no head count passes at any width allowed."]
    so_far = " so far" if any(row["status"] == "open" for row in found) else ""
    at = f"D_K* = {_over(found)}"
    at += f" at h* = {span([row['h_star'] for row in found])}{so_far}{_never(results)}"
    if len(best) > 1 and not results.study.has_budgets:
        of = f"{len(found)} of " if len(found) < len(best) else ""
        need = f"{of}{plural(len(best), 'cell')} need{'s' if len(found) == 1 else ''}"
        return [f"{need} {at}."]
    return [f"At {names_of(results)[found[0]['cell_id']]['full']}, {at}."]


def _over(rows: Sequence[Mapping[Any, Any]]) -> str:
    """The range of D_K* over some cells; if it is the same in all, with what intervals span."""
    if len({row["D_K"] for row in rows}) > 1:
        return span([row["D_K"] for row in rows])
    lows, highs = ([row[end] for row in rows] for end in ("D_K_low", "D_K_high"))
    ends = (None if None in each else choose(each) for each, choose in ((lows, min), (highs, max)))
    said = with_range(rows[0]["D_K"], *ends)
    alike = len({*zip(lows, highs, strict=True)}) == 1
    return said if alike else said.replace("]", " over the cells]")


def _never(results: StudyResults) -> str:
    """The head counts that pass nowhere, in every cell or in some; empty if all pass."""
    cells = len(results.study.cells)
    of_heads = results.thresholds.groupby("h")["status"].agg(list)
    by_heads = {str(h): each for h, each in of_heads.items() if len(each) == cells}
    never = [h for h, each in by_heads.items() if each == ["censored"] * cells]
    partly = [h for h, each in by_heads.items() if "censored" in each and h not in never]
    no = "no width tried" if results.study.search.mode == "grid" else "no width allowed"
    said = [f"; at h = {_and(never)} {no} passes"] if never else []
    if partly:
        none = "none does" if never else f"{no} passes"
        n = {by_heads[h].count("censored") for h in partly}
        where = "some cells" if len(n) > 1 else f"{n.pop()} of {plural(cells, 'cell')}"
        said.append(f"; at h = {_and(partly)} {none} in {where}")
    return "".join(said)


def better_law(fits: Fits) -> Candidate | None:
    """The law that the data keep, if they rule out a free power of m′ log₂ m / d_model."""
    kept = [candidate for candidate in fits.candidates if candidate.supported]
    if any(is_law(one, POWER, fits.cells) for one in kept):
        return None
    return next(iter(kept), None)


def best_law(law: Candidate, fits: Fits) -> list[str]:
    """A law with its numbers, what else fits, and whether the cells scatter about it."""
    fitted = sum(one.status == "fitted" for one in fits.candidates)
    kept = [one.formula for one in fits.candidates if one.supported and one is not law]
    numbers, cells = with_numbers(law, limits=True), plural(law.n, "cell")
    is_best = law is fits.candidates[0]  # the first may merely extend another law
    fit = "fits best of" if is_best else "fits about as well as the best of"
    said = [f"D_K* ≈ {numbers} {fit} {plural(fitted, 'law')} ({cells})."]
    is_papers = is_law(law, PROPORTIONAL, fits.cells)
    test = next((test for test in fits.lack_of_fit if test.law == "D_K"), None)
    if is_papers and test is not None and test.rejects:
        found, kind = fits.cells["D_K"].dropna(), "best" if is_best else "one kept"
        kind = "one of those kept" if kept and not is_best else kind
        needed = f"{plural(len(found), 'cell')} need D_K* = {found.min():.0f} to {found.max():.0f}"
        best = f"the {kind} of {plural(fitted, 'law')}, {numbers}"
        if kept and is_best:
            best = f"the best of {len(kept) + 1} laws that fit alike, {numbers}"
        by = "more than their noise"
        if test.scatter > test.noise:
            by = f"{test.scatter:.0%}, where noise explains {test.noise:.0%}".replace("%", " %")
        said = [f"{needed}; {best}, typically misses them by {by}."]
    if kept:
        said.append(f"{_and(kept)} {'fits' if len(kept) == 1 else 'fit'} about as well.")
    elif fitted > 1:
        rest = (one for one in fits.candidates if one.status == "fitted" and one is not law)
        alone = "The data rule the others out."
        if min(one.gap or 0.0 for one in rest) <= LEAST_GAP:
            alone = "Laws that extend it are not better by enough to count."
        said.append(alone)
    return [line for line in (*said, lack_of_fit(fits)) if line]


def with_numbers(law: Candidate, limits: bool = False) -> str:
    """A law's formula with the numbers fitted.

    Args:
        limits: whether to give the 95 % limits of a factor that is the only unknown.
    """
    numbers = {name: three_digits(value) for name, value in law.parameters.items()}
    if limits and [*numbers] == ["c"]:
        numbers["c"] = with_limits(law.parameters["c"], law.low["c"], law.high["c"])
    return re.sub(r"\b[cakb]\b", lambda unknown: numbers[unknown[0]], law.formula)


def unknowns(row: Mapping[str, Any]) -> str:
    """``c = 0.441 [0.403, 0.483], k = 0.092 [0.053, 0.15]``, from a candidate's row."""
    return ", ".join(
        f"{name} = {three_digits(value)} "
        f"[{three_digits(row['low'][name])}, {three_digits(row['high'][name])}]"
        for name, value in row["parameters"].items()
    )


def _and(words: Sequence[str]) -> str:
    *most, last = words or [""]
    return f"{', '.join(most)} and {last}" if most else last


def growth(fits: Fits) -> str:
    """How D_K* grows: the exponent with its interval, and whether proportionality holds."""
    laws = by_name(fits.laws)
    power, wide = laws["D_K_power"], laws.get("D_K_power_wide")
    low, high = power.exponent_low, power.exponent_high
    said = growth_of(power)
    if power.exponent is None:
        return f"{said}."
    if (low is not None and low > 1) or (high is not None and high < 1):
        said += ": the data reject proportionality"
    else:
        said += ": these cells leave open whether it is proportional"
    if wide is not None and wide.exponent is not None and wide.n < power.n:
        said += f"; without the cells of d_model = 16, m > 64 the power is {_exponent(wide)}"
    return f"{said}."


def growths(laws: Sequence[Law]) -> list[str]:
    """A sentence for each of several power laws: how its width grows."""
    return [f"{growth_of(law)}." for law in laws]


def growths_in_brief(laws: Sequence[Law]) -> list[str]:
    """``growths``, but laws that could not be fitted for one reason share a sentence."""
    without: dict[tuple[str, str | None], dict[str, None]] = {}  # by reason, the settings
    for law in laws:
        if law.exponent is None:
            without.setdefault((law.response, law.reason), {})[law.cells] = None
    said = growths([law for law in laws if law.exponent is not None])
    for (response, reason), (first, *rest) in without.items():
        more = f" and {len(rest)} more" if rest else ""
        said.append(f"No law of {response} at {first}{more}: {reason}.")
    return said


def growth_of(law: Law) -> str:
    """How a width grows by a power law, without a full stop; or why there is none."""
    is_part = law.cells != ALL
    if law.exponent is None:
        return f"No law of {law.response}{f' at {law.cells}' if is_part else ''}: {law.reason}"
    where = f"At {law.cells}, " if is_part else ""
    return f"{where}{law.response} grows as ({predictor(law)}) to the power {_exponent(law)}"


def _exponent(law: Law) -> str:
    ends = f"{three_digits(law.exponent_low)} to {three_digits(law.exponent_high)}"
    censored = f", {law.n_censored} of them censored" if law.n_censored else ""
    over = f"over {plural(law.n, 'cell')}{censored}"
    return f"{three_digits(law.exponent)} (95 % interval {ends} {over})"


def predictor(law: Law) -> str:
    """What a width grows with, as a page writes it: ``m′ log₂ m / d_model``."""
    words = law.predictor.replace("log2(m²/m')", "log₂(m²/m′)").replace("log2(m)", "log₂ m")
    return words.replace("m'", "m′")


POWER, PROPORTIONAL = "(m log m/d)^a", "m log m/d"
"""Names of two candidates: a free power of m′ log₂ m / d_model, and that quantity itself."""

FORMS = {
    "D_K_power": "a power of m′ log₂ m / d_model",
    "D_K": "m′ log₂ m / d_model itself",
}
"""What D_K* is proportional to, for each law that is tested for lack of fit."""


def lack_of_fit(fits: Fits) -> str:
    """Which laws the lack-of-fit test rejects."""
    rejected = [
        f"{FORMS[test.law]} ({p_words(test.p_value)})" for test in fits.lack_of_fit if test.rejects
    ]
    if not rejected:
        return ""
    return (
        f"The lack-of-fit test rejects {' and '.join(rejected)}: seeds and the resolution of d_k "
        "do not explain how far D_K* scatters about it."
    )


def which_law(candidates: Sequence[Candidate], cells: str = "") -> str:
    """Which law the cells single out, or which of them they cannot tell apart.

    Args:
        candidates: from ``rank_candidates``, best first.
        cells: words to follow "the data" or "The cells", such as ``without the narrow cells``.
    """
    fitted = [candidate for candidate in candidates if candidate.status == "fitted"]
    if not fitted:
        reason = candidates[0].reason if candidates else "no cell has a threshold"
        these = f"The cells {cells}" if cells else "These cells"
        return f"{these} cannot tell which law holds: {reason}."
    kept = [candidate.formula for candidate in fitted if candidate.supported]
    data = f"data {cells}".rstrip()
    if len(kept) == 1:
        return f"Of {plural(len(fitted), 'law')} the {data} single out {kept[0]}."
    return f"The {data} cannot tell {_and(kept)} apart."


def left_out(fits: Fits) -> str:
    """Which cells the study's laws leave out, and how they treat step limits and protocols."""
    lines, n = [], len(fits.left_out)
    if n:
        counts = fits.left_out["status"].value_counts().sort_index()
        each = ", ".join(f"{number} {status}" for status, number in counts.items())
        lines.append(f"The laws leave out {plural(n, 'cell')}: {each}.")
    if any(law.max_steps is not None for law in fits.laws):
        lines.append("Laws that name no step limit use each cell's largest.")
    if any(law.protocol is not None for law in fits.laws):
        lines.append("Cells with another protocol than most have laws of their own.")
    return " ".join(lines)
