"""Every number that the paper states of its experiments, theirs beside ours, with a verdict.

The paper is M. Adler, ICML 2026, arXiv:2509.22840v3. Figures without values in the text (Fig. 8, of
every D_K*) are not quoted; what its Table 1 implies is marked so.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import pandas as pd

from analysis.laws.fits import Fits, fits_of
from analysis.laws.published import rounding
from analysis.laws.scaling_laws import Law, by_name
from analysis.load import StudyResults, per_study
from analysis.records import integer
from analysis.thresholds.best import best_of
from analysis.thresholds.comparable import is_papers, laws_for
from analysis.wording import three_digits
from rgr_dist import paper
from rgr_dist.paper import IMPLIED, LAWS, TABLE_1_D_K_OF_A_HEAD, TABLE_2_MAX_STEPS, capacity_scale
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

Verdict = Literal["agrees", "differs", "as the paper", "not as the paper", "not measured here"]

FIGURE_KINDS = {
    "place": "object", "quantity": "object", "theirs": "object", "ours": "object",
    "difference": "float64", "verdict": "object", "note": "object",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PublishedFigure:
    """One number of the paper.

    Attributes:
        place: section, table or figure.
        quantity: what it is, in words.
        theirs, ours: as text; ours a dash where this study does not measure it.
        difference: ours less theirs, where both are single numbers.
        verdict: of a result ``agrees`` or ``differs``, by the rule that ``note`` gives; of a
            setting ``as the paper`` or ``not as the paper``; else ``not measured here``.
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
    """Every number that the paper states, and a study's beside it."""
    return published_figures(fits_of(results), best_of(results), results.study)


def published_figures(fits: Fits, best: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The paper's numbers, results first, in its own order.

    Args:
        best: the table of ``analysis.thresholds.best.best``.

    Returns:
        ``place, quantity, theirs, ours, difference, verdict, note``, one row per number.
    """
    figures = [
        *_law_figures(fits, study),
        *_width_figures(best, study),
        *_cell_figures(best, study),
        *_settings(study),
        *_elsewhere(study),
    ]
    rows = [vars(figure) for figure in figures]
    frame = pd.DataFrame(rows, columns=list(FIGURE_KINDS), dtype="object")
    return frame.astype({"difference": "float64"})


def inconsistencies() -> list[str]:
    """Where the paper's own numbers do not fit together, each with its evidence."""
    widths = sorted(TABLE_1_D_K_OF_A_HEAD.values())
    printed = _printed_pairs()
    low, high = widths[0], widths[-1]
    median = (
        f"The text gives a median d_k* of 11 on the base grid (Sec. 6.1); the twelve values of its "
        f"Table 1, from {low} to {high}, have a median of {statistics.median(widths):g}."
    )
    ends = " to ".join(f"{end:,.0f}" for end in printed.needed)
    count = printed.possible or "none"
    slopes = (
        "The two printed slopes, 1.19 and 0.966 (Sec. 6.1), cannot both come from Table 1's cells: "
        f"they fix Σ x D_K* of the three narrow cells at {ends}, and of the {printed.tried:,} ways "
        f"to give these cells the paper's head counts, 1 to 64, {count} gives that; the nearest is "
        f"{printed.nearest:,.0f}. The fits most likely hold the larger cells of Sec. 6.1 too."
    )
    return [median, slopes]


@dataclass(frozen=True)
class _Pairs:
    tried: int
    possible: int
    needed: tuple[float, float]
    nearest: float


@lru_cache(maxsize=1)
def _printed_pairs() -> _Pairs:
    """How many head counts of the narrow cells give both printed slopes, rounding included.

    Through the origin, slope · Σx² = Σ x D_K*, so the two slopes fix Σ x D_K* of the cells in which
    the fits differ: the narrow ones, of which Table 1 gives D_K* up to the head count.
    """
    scales = {size: capacity_scale(*size) for size in TABLE_1_D_K_OF_A_HEAD}
    narrow = [size for size in scales if paper.is_narrow(*size)]
    every = sum(x * x for x in scales.values())
    wide = every - sum(scales[size] ** 2 for size in narrow)
    (low, high), (wide_low, wide_high) = rounding(1.19), rounding(0.966)
    needed = low * every - wide_high * wide, high * every - wide_low * wide
    sums = [
        math.fsum(
            h * TABLE_1_D_K_OF_A_HEAD[size] * scales[size]
            for h, size in zip(heads, narrow, strict=True)
        )
        for heads in itertools.product([2**k for k in range(7)], repeat=len(narrow))
    ]
    middle = sum(needed) / 2
    possible = sum(needed[0] <= value <= needed[1] for value in sums)
    return _Pairs(len(sums), possible, needed, min(sums, key=lambda value: abs(value - middle)))


def _law_figures(fits: Fits, study: Study) -> Iterator[PublishedFigure]:
    """Slopes, intercepts and R², by the paper's own estimator."""
    laws = by_name(fits.laws)
    tests = {test.name: test for test in fits.published if test.scale == "linear"}
    measured = laws_for(study)
    for name, law in (*LAWS.items(), ("dense", paper.DENSE_LAW)):
        ours_name = next((own for own, theirs in measured.items() if theirs is law), None)
        ours: Law | None = laws.get(ours_name) if ours_name else None
        if name == "D_K" and measured.get("D_K") is LAWS["D_K_wide"]:
            ours = None
        if ours is not None and ours.slope is None:
            ours = None
        response = "h* over m′/d_model" if name == "h" else "D_K* over m′ log₂ m / d_model"
        of = f"{response}, {law.cells}"
        rows: list[tuple[str, float | None, float | None]] = [
            (f"slope of {of}", law.slope, ours.slope if ours else None),
        ]
        if law.intercept:
            rows.append((f"intercept of {of}", law.intercept, ours.intercept if ours else None))
        if law.r2 is not None:
            rows.append((f"R² of {of}", law.r2, ours.r2 if ours else None))
        test = tests.get(ours_name or "")
        for quantity, theirs, own in rows:
            if theirs is None:
                continue
            if own is None or ours is None or test is None or test.p_value is None:
                yield PublishedFigure(
                    place=law.source, quantity=quantity, theirs=f"{theirs:g}".replace("-", "−")
                )
                continue
            good = bool(test.compatible)
            what = "slope and intercept tested together" if law.intercept else "tested"
            note = f"{what} as printed, by the paper's estimator: p = {test.p_value:.2g}"
            if quantity.startswith("R²"):
                good, note = abs(own - theirs) <= 0.05, "agrees within 0.05"
            yield PublishedFigure(
                place=law.source,
                quantity=quantity,
                theirs=f"{theirs:g}".replace("-", "−"),
                ours=three_digits(own),
                difference=own - theirs,
                verdict="agrees" if good else "differs",
                note=note,
            )


def _width_figures(best: pd.DataFrame, study: Study) -> Iterator[PublishedFigure]:
    """The range and the median of d_k* on the base grid."""
    known = _papers_cells(best, study)
    widths = [integer(row["d_k"]) for row in known.values()]
    found = [width for width in widths if width is not None]
    complete = len(found) == len(IMPLIED)
    for quantity, theirs, own in (
        ("smallest d_k* on the base grid", 5, min),
        ("largest d_k* on the base grid", 24, max),
        ("median d_k* on the base grid", 11, statistics.median),
    ):
        note = "the paper's Table 1 has a median of 8" if "median" in quantity else ""
        if not complete:
            yield PublishedFigure(
                place="Sec. 6.1", quantity=quantity, theirs=f"{theirs}", note=note
            )
            continue
        value = float(own(found))
        rule = "agrees within one step of d_k"
        yield PublishedFigure(
            place="Sec. 6.1",
            quantity=quantity,
            theirs=f"{theirs}",
            ours=f"{value:g}",
            difference=value - theirs,
            verdict="agrees" if abs(value - theirs) <= 1 else "differs",
            note=f"{rule}; {note}" if note else rule,
        )


def _cell_figures(best: pd.DataFrame, study: Study) -> Iterator[PublishedFigure]:
    """Table 1's d_k, and the D_K* and h* that it implies."""
    known = _papers_cells(best, study)
    for size, d_k in TABLE_1_D_K_OF_A_HEAD.items():
        D_K, h = IMPLIED[size]
        row = known.get(size)
        own = None if row is None else integer(row["D_K"])
        star = None if row is None else integer(row["h_star"])
        width = None if row is None else integer(row["d_k"])
        step = max(h, star or 0)
        pairs: tuple[tuple[str, str, int, int | None, float, str], ...] = (
            ("Table 1", "d_k*", d_k, width, 1, "agrees within one step of d_k"),
            (
                "Fig. 8, implied by Table 1", "D_K*", D_K, own, step,
                f"an inference, not a quotation; agrees within one step of d_k, {step}",
            ),
            (
                "Fig. 10, implied by Table 1", "h*", h, star, 0,
                "an inference, not a quotation; agrees where ours or our interval holds it",
            ),
        )  # fmt: skip
        for place, name, theirs, value, within, note in pairs:
            quantity = f"{name} at (m, d_model) = {size}"
            if value is None or row is None:
                yield PublishedFigure(place=place, quantity=quantity, theirs=f"{theirs}", note=note)
                continue
            agrees = abs(value - theirs) <= within
            if name == "h*":
                low, high = integer(row["h_low"]), integer(row["h_high"])
                agrees = (low or value) <= theirs <= (high or value)
            yield PublishedFigure(
                place=place,
                quantity=quantity,
                theirs=f"{theirs}",
                ours=f"{value}",
                difference=float(value - theirs),
                verdict="agrees" if agrees else "differs",
                note=note,
            )


def _papers_cells(best: pd.DataFrame, study: Study) -> dict[tuple[int, int], dict[Any, Any]]:
    """The rows with a threshold of the cells trained and judged as in the paper, by size."""
    shared = {cell.cell_id for cell in study.cells if is_papers(cell, study.search)}
    return {
        (int(row["m"]), int(row["d_model"])): row
        for row in best.astype("object").to_dict("records")
        if row["cell_id"] in shared and integer(row["D_K"]) is not None
    }


Setting = Callable[[Cell], Any]


def _settings(study: Study) -> Iterator[PublishedFigure]:
    """The protocol of Sec. 6, App. A.1 and Table 2, beside the study's own."""
    model = study.cells[0].model
    settings: list[tuple[str, str, Any, Setting]] = [
        ("Sec. 6", "items of a context, ℓ", 16, lambda cell: cell.context.length),
        ("Sec. 6", "target-in-context rate ρ", 0.5, lambda cell: cell.context.positive_rate),
        ("Sec. 6", "learning rate", 1e-3, lambda cell: cell.training.learning_rate),
        ("Sec. 6", "logit sharpness α", 10.0, lambda cell: cell.training.sharpness),
        ("Sec. 6", "validation contexts", 500, lambda cell: cell.training.validation_contexts),
        ("Sec. 6", "test contexts", 2000, lambda cell: cell.training.test_contexts),
        ("Sec. 6", "steps between checks", 500, lambda cell: cell.training.check_every),
        ("Sec. 6", "checks in a row to stop", 5, lambda cell: cell.training.patience),
        ("Sec. 6", "validation F1 to stop", 0.995, lambda cell: cell.training.stop_score),
        ("Sec. 6", "mean test F1 that passes", 0.99, lambda cell: study.search.target),
    ]
    seeds = {"max": ("Sec. 6.1", 10), "softmax": ("Fig. 5", 3), "value": ("Fig. 6", 3)}
    if model in seeds:
        place, number = seeds[model]
        settings.append((place, "seeds", number, lambda cell: study.search.seeds))
    if model == "transformer":
        settings = [
            ("Sec. 7.3", "items m", 6144, lambda cell: cell.m),
            ("Sec. 7.3", "d_model", 768, lambda cell: cell.d_model),
            ("Sec. 7.3", "pairs of a context, ℓ", 16, lambda cell: cell.context.length),
            ("Sec. 7.3", "seeds", 7, lambda cell: study.search.seeds),
            ("Sec. 7.3", "training steps", 100_000, lambda cell: cell.training.max_steps),
            ("Sec. 7.3", "weight decay", 0.01, lambda cell: cell.training.weight_decay),
        ]
    if model == "softmax":
        settings.append(("Sec. 7.1", "step limit", 80_000, lambda cell: cell.training.max_steps))
    for place, quantity, theirs, of in settings:
        if model == "value" and quantity in ("logit sharpness α", "validation F1 to stop"):
            continue
        if model == "value" and quantity == "mean test F1 that passes":
            continue
        values = list(dict.fromkeys(of(cell) for cell in study.cells))
        yield _setting(place, quantity, theirs, values)
    if model == "max":
        for size, steps in TABLE_2_MAX_STEPS.items():
            own = [
                cell.training.max_steps
                for cell in study.cells
                if (cell.m, cell.d_model) == size and cell.graph.family == "permutation"
            ]
            if own:
                quantity = f"step limit at (m, d_model) = {size}"
                yield _setting("Table 2", quantity, steps, list(dict.fromkeys(own)))


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
    """Numbers of the text that are of other experiments, with the study that measures them."""
    model = study.cells[0].model
    if model == "transformer":
        yield PublishedFigure(
            place="Sec. 7.3, Fig. 7",
            quantity="accuracy of the single heads that do not collapse, D_K ≥ 256",
            theirs="near 0.81",
            note="of GPT-2's embeddings at m = 6144; the page's table has ours",
        )
        return
    others = (
        ("Sec. 7.3, Fig. 7", "accuracy of single heads that do not collapse", "near 0.81", "gpt2"),
        ("Sec. 7.1, Fig. 5", "h = 1 reaches 0.99 under softmax", "(64, 32) alone", "softmax"),
        ("Sec. 7.2, Fig. 6", "heads that beat h = 1 at d_model = 16", "h ≥ 4", "value"),
        ("App. A.3, Fig. 12", "degrees of one linear trend", "1 to 16", "dense"),
        ("Sec. 6.1, Fig. 4", "compression λ of the diagonal", "8", "diagonal"),
    )
    for place, quantity, theirs, name in others:
        if name != study.name:
            note = f"measured by rgr run {name}"
            yield PublishedFigure(place=place, quantity=quantity, theirs=theirs, note=note)
