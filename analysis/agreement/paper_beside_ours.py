"""Every number that the paper states of its experiments, beside ours, with a verdict.

The paper is M. Adler, ICML 2026, arXiv:2509.22840v3. Figures whose values are not in the text (such
as Fig. 8, of every D_K*) are not quoted; values implied by its Table 1 are marked as such.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from rgr_dist.analysis.laws.fits import Fits, fits_of
from rgr_dist.analysis.laws.published import p_words
from rgr_dist.analysis.laws.scaling_laws import by_name
from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.rows import Row, rows_of
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.analysis.thresholds.comparable import compare, laws_for
from rgr_dist.analysis.wording import number, three_digits
from rgr_dist.paper import (
    DENSE_LAW,
    IMPLIED,
    LAWS,
    SEEDS,
    TABLE_1_D_K_OF_A_HEAD,
    TABLE_2_MAX_STEPS,
    PublishedLaw,
    capacity_scale,
    is_narrow,
)
from rgr_dist.study.study import Study

PROTOCOL = (
    ("Sec. 6", "items of a context, ℓ", 16, "context.length"),
    ("Sec. 6", "target-in-context rate ρ", 0.5, "context.positive_rate"),
    ("Sec. 6", "learning rate", 1e-3, "training.learning_rate"),
    ("Sec. 6", "logit sharpness α", 10.0, "training.sharpness"),
    ("Sec. 6", "validation contexts", 500, "training.validation_contexts"),
    ("Sec. 6", "test contexts", 2000, "training.test_contexts"),
    ("Sec. 6", "steps between checks", 500, "training.check_every"),
    ("Sec. 6", "checks in a row to stop", 5, "training.patience"),
    ("Sec. 6", "validation F1 to stop", 0.995, "training.stop_score"),
    ("Sec. 6", "mean test F1 that passes", 0.99, "search.target"),
)
"""Settings of the paper, with their keys in a study file."""

OF_MODEL = {
    "max": (("Sec. 6.1", "seeds", 10, "search.seeds"),),
    "softmax": (
        ("Fig. 5", "seeds", SEEDS["softmax"], "search.seeds"),
        ("Sec. 7.1", "step limit", 80_000, "training.max_steps"),
    ),
    "value": (("Fig. 6", "seeds", SEEDS["value"], "search.seeds"),),
}
"""Settings that the paper states for one model only."""

ELSEWHERE = (
    ("Sec. 7.3, Fig. 7", "accuracy of single heads that do not collapse", "near 0.81", "gpt2"),
    ("Sec. 7.1, Fig. 5", "case without multi-head advantage under softmax", "(64, 32)", "softmax"),
    ("Sec. 7.2, Fig. 6", "heads that beat h = 1 at d_model = 16", "h ≥ 4", "value"),
    ("App. A.3, Fig. 12", "degrees of one linear trend", "1 to 16", "dense"),
    ("Sec. 6.1, Fig. 4", "compression λ of the diagonal", "8", "diagonal"),
)
"""Numbers from the paper's other experiments, each with the study that measures it."""

WITHIN_A_STEP = "agrees if within one step of d_k"

Cells = dict[tuple[int, int], Row]
Verdict = Literal["agrees", "differs", "as the paper", "not as the paper", "not measured here"]


@dataclass(frozen=True)
class PublishedFigure:
    """One number of the paper.

    Attributes:
        place: section, table or figure.
        quantity: what it is, in words.
        theirs, ours: as text; ours is a dash where this study does not measure it.
        difference: ours minus theirs, where both are single numbers.
        verdict: for a result ``agrees`` or ``differs``, by the rule that ``note`` gives; for a
            setting ``as the paper`` or ``not as the paper``; otherwise ``not measured here``.
    """

    place: str
    quantity: str
    theirs: str
    ours: str = "–"
    difference: float | None = None
    verdict: Verdict = "not measured here"
    note: str = ""


@per_study
def published_figures_of(results: StudyResults) -> pd.DataFrame:
    """Every number that the paper states, with the study's own beside it."""
    return published_figures(fits_of(results), best_of(results), results.study)


def published_figures(fits: Fits, best: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The paper's numbers, results first, in its own order.

    Args:
        best: the table of ``rgr_dist.analysis.thresholds.best_heads.best_of``.

    Returns:
        The attributes of ``PublishedFigure``, one row per number.
    """
    beside = compare(best, study).merge(best[["cell_id", "h_low", "h_high"]], on="cell_id")
    found = rows_of(beside[beside["D_K"].notna()])
    known = {(row["m"], row["d_model"]): row for row in found}
    figures = [
        *_law_figures(fits, study, known),
        *_width_figures(known),
        *_cell_figures(known),
        *_settings(study),
        *_elsewhere(study),
    ]
    table = pd.DataFrame([vars(figure) for figure in figures], dtype="object")
    return table.astype({"difference": "float64"})


def _beside(
    place: str,
    quantity: str,
    theirs: float,
    ours: float | None,
    agrees: bool = False,
    note: str = "",
    shown: Callable[[float], str] | None = None,
) -> PublishedFigure:
    """A number of the paper, with ours if this study has measured it."""
    if ours is None:
        return PublishedFigure(place, quantity, number(theirs, "g"), note=note)
    words = number(ours, "g") if shown is None else shown(ours)
    verdict: Verdict = "agrees" if agrees else "differs"
    return PublishedFigure(
        place, quantity, number(theirs, "g"), words, float(ours - theirs), verdict, note
    )


def _law_figures(fits: Fits, study: Study, known: Cells) -> Iterator[PublishedFigure]:
    """Slopes, intercepts and R² by the paper's own estimator, and the power, 1, that they imply."""
    laws = by_name(fits.as_papers)
    ours_of = {theirs: name for name, theirs in laws_for(study).items()}
    tests = {(test.name, test.scale): test for test in fits.published if test.p_value is not None}
    for law in (*LAWS.values(), DENSE_LAW):
        name = ours_of.get(law, "")
        ours, test = laws.get(name), tests.get((name, "linear"))
        response = "h* over m′/d_model" if law is LAWS["h"] else "D_K* over m′ log₂ m / d_model"
        of = f"{response}, {law.cells}"
        printed = {"slope": law.slope, "intercept": law.intercept or None, "r2": law.r2}
        for key, theirs in printed.items():
            quantity = f"{'R²' if key == 'r2' else key} of {of}"
            if theirs is None:
                continue
            own = getattr(ours, key, None)
            if own is None or test is None or test.p_value is None:
                yield _beside(law.source, quantity, theirs, None)
                continue
            what = "slope and intercept tested together" if law.intercept else "tested"
            note = f"{what} as printed, by the paper's estimator: {p_words(test.p_value)}"
            if test.p_value_with_theirs is not None:
                note += f"; with the sampling error of theirs, {p_words(test.p_value_with_theirs)}"
            note += _implied_slope(law, test.n, known)
            agrees = bool(test.compatible)
            if key == "r2":
                agrees, note = abs(own - theirs) <= 0.05, "agrees if within 0.05"
            yield _beside(law.source, quantity, theirs, own, agrees, note, three_digits)
        power = tests.get((name, "log"))
        if power is not None and power.p_value is not None and power.exponent is not None:
            note = f"as a law of every cell, on the log scale: {p_words(power.p_value)}"
            yield PublishedFigure(
                law.source, f"slope and power together of {of}", f"{law.slope:g} x^1",
                f"power {three_digits(power.exponent)}",
                verdict="agrees" if power.compatible else "differs", note=note,
            )  # fmt: skip


def _implied_slope(law: PublishedLaw, n: int, known: Cells) -> str:
    """The slope of the D_K* that Table 1 implies, if a law's n cells all are in it; else empty."""
    kept = [size for size in known if law is not LAWS["D_K_wide"] or not is_narrow(*size)]
    if law not in (LAWS["D_K"], LAWS["D_K_wide"]) or len(kept) != n:
        return ""
    x = np.array([capacity_scale(*size) for size in kept])
    slope = x @ [IMPLIED[size][0] for size in kept] / (x @ x)
    return f"; the D_K* that its Table 1 implies for these {n} cells have {three_digits(slope)}"


def _width_figures(known: Cells) -> Iterator[PublishedFigure]:
    """The range and the median of d_k* on the base grid."""
    found = [row["d_k"] for row in known.values()]
    for name, theirs, of, more in (
        ("smallest", 5, min, ""),
        ("largest", 24, max, ""),
        ("median", 11, statistics.median, "; the paper's Table 1 has a median of 8"),
    ):
        ours = of(found) if len(found) == len(IMPLIED) else None
        agrees = ours is not None and abs(ours - theirs) <= 1
        quantity = f"{name} d_k* on the base grid"
        yield _beside("Sec. 6.1", quantity, theirs, ours, agrees, f"{WITHIN_A_STEP}{more}")


def _cell_figures(known: Cells) -> Iterator[PublishedFigure]:
    """Table 1's d_k, and the D_K* and h* that it implies."""
    for size, d_k in TABLE_1_D_K_OF_A_HEAD.items():
        D_K, h = IMPLIED[size]
        row = known.get(size)
        step = h if row is None else row["step"]
        notes = {
            "d_k": WITHIN_A_STEP,
            "D_K": f"an inference, not a quotation; {WITHIN_A_STEP}, {step}",
            "h": "an inference, not a quotation; agrees where ours or our interval holds it",
        }
        for place, name, theirs, key, verdict in (
            ("Table 1", "d_k", d_k, "d_k", lambda row: abs(row["d_k"] - row["paper_d_k"]) <= 1),
            ("Fig. 8, implied by Table 1", "D_K", D_K, "D_K", lambda row: row["agrees"]),
            ("Fig. 10, implied by Table 1", "h", h, "h_star", _holds_theirs),
        ):
            quantity = f"{name}* at (m, d_model) = {size}"
            ours, agrees = (None, False) if row is None else (row[key], verdict(row))
            yield _beside(place, quantity, theirs, ours, agrees, notes[name])


def _holds_theirs(row: Row) -> bool:
    low, high = (row["h_star"] if row[end] is None else row[end] for end in ("h_low", "h_high"))
    return bool(low <= row["paper_h"] <= high)


def _settings(study: Study) -> Iterator[PublishedFigure]:
    """The protocol of Sec. 6, App. A.1 and Table 2, beside the study's own."""
    record = study.record
    unused = {*record.unused_keys, *(() if record.score == "F1" else ("search.target",))}
    own = {"search.target": study.search.target, "search.seeds": study.search.seeds}
    ours = [cell for cell in study.cells if cell.model == study.cells[0].model]
    for place, quantity, theirs, key in (*PROTOCOL, *OF_MODEL.get(record.name, ())):
        if key not in unused:
            values = dict.fromkeys((study.keys_of(cell) | own)[key] for cell in ours)
            yield _setting(place, quantity, theirs, list(values))
    if record.name != "max":
        return
    for size, steps in TABLE_2_MAX_STEPS.items():
        alike = [
            cell.training.max_steps
            for cell in study.cells
            if (cell.m, cell.d_model) == size and cell.graph.family == "permutation"
        ]
        if alike:
            quantity = f"step limit at (m, d_model) = {size}"
            yield _setting("Table 2", quantity, steps, list(dict.fromkeys(alike)))


def _setting(place: str, quantity: str, theirs: Any, values: list[Any]) -> PublishedFigure:
    alone = len(values) == 1 and values[0] is not None
    return PublishedFigure(
        place=place,
        quantity=quantity,
        theirs=f"{theirs:,}",
        ours=", ".join("–" if value is None else f"{value:,}" for value in values),
        difference=float(values[0] - theirs) if alone else None,
        verdict="as the paper" if values == [theirs] else "not as the paper",
    )


def _elsewhere(study: Study) -> Iterator[PublishedFigure]:
    """Numbers from the paper's other experiments, each with the study that measures it."""
    for place, quantity, theirs, name in ELSEWHERE:
        if name != study.name:
            note = f"measured by rgr run {name}"
            yield PublishedFigure(place=place, quantity=quantity, theirs=theirs, note=note)
