"""What the transitions of a study say, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.transitions.transition_fits import OWN, Collapse
from analysis.transitions.width_scaling import Narrowing
from analysis.wording import fixed, plural


def collapse(found: Sequence[Collapse]) -> str:
    """How well the transitions collapse under the best law and the paper's."""
    by_law = {one.law: one for one in found}
    laws = [one for one in found if one.law != OWN]
    if OWN not in by_law or not laws:
        return ""
    best = min(laws, key=lambda one: one.reduced_chi2)
    own = by_law[OWN].reduced_chi2
    line = (
        f"Over D_K/D_K* the transitions of {plural(best.n_cells, 'cell')} collapse onto one curve "
        f"with a reduced χ² of {own:.1f}; over D_K by the law {best.formula} with "
        f"{best.reduced_chi2:.1f}"
    )
    paper = by_law.get("m log m/d")
    if paper is not None and paper is not best:
        line += f", by {paper.formula} with {paper.reduced_chi2:.1f}"
    return f"{line}."


def narrowing(found: Narrowing) -> str:
    """How the transitions' width depends on m, and whether a power of m describes it."""
    low, high = found.exponent_low, found.exponent_high
    sizes = sorted(set(found.cells["m"]))
    ratios = set(found.cells["m"] / found.cells["d_model"])
    where = (
        f"at m/d_model = {ratios.pop():g}" if len(ratios) == 1 else "over cells of any m/d_model"
    )
    verdict = "narrow with" if high < 0 else "widen with" if low > 0 else "need not depend on"
    line = (
        f"The transitions {verdict} m, {where}: their width at h*, in doublings of D_K, goes as "
        f"m^{fixed(found.exponent, 2)} with the exponent in [{fixed(low, 2)}, {fixed(high, 2)}] "
        f"(95 %), from "
        f"{plural(len(found.cells), 'cell')} of m = {sizes[0]} to {sizes[-1]} with "
        f"{found.cells['n_runs'].min()} to {found.cells['n_runs'].max()} runs each"
    )
    if found.degrees and found.p_value < 0.05:
        line += f"; no single power describes all widths (p = {found.p_value:.2g})"
    return f"{line}."
