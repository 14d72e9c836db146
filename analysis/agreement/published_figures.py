"""Every number that the paper states of its experiments, theirs beside ours, with a verdict.

The paper is M. Adler, ICML 2026, arXiv:2509.22840v3. Figures without values in the text (Fig. 8, of
every D_K*) are not quoted; what its Table 1 implies is marked so.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from rgr_dist.analysis.laws.fits import Fits, fits_of
from rgr_dist.analysis.laws.published import p_words
from rgr_dist.analysis.laws.scaling_laws import by_name
from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.records import integer
from rgr_dist.analysis.thresholds.best import best_of
from rgr_dist.analysis.thresholds.comparable import is_papers, laws_for
from rgr_dist.analysis.wording import three_digits
from rgr_dist.paper import DENSE_LAW, IMPLIED, LAWS, TABLE_1_D_K_OF_A_HEAD, TABLE_2_MAX_STEPS
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

Verdict = Literal["agrees", "differs", "as the paper", "not as the paper", "not measured here"]


@dataclass(frozen=True)
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
        best: the table of ``rgr_dist.analysis.thresholds.best.best``.

    Returns:
        The attributes of ``PublishedFigure``, one row per number.
    """
    figures = [
        *_law_figures(fits, study),
        *_width_figures(best, study),
        *_cell_figures(best, study),
        *_settings(study),
        *_elsewhere(study),
    ]
    columns = [field.name for field in dataclasses.fields(PublishedFigure)]
    rows = [vars(figure) for figure in figures]
    return pd.DataFrame(rows, columns=columns, dtype="object").astype({"difference": "float64"})


def _measured(
    place: str,
    quantity: str,
    theirs: float,
    ours: float,
    agrees: bool,
    note: str,
    shown: Callable[[float], str] | None = None,
) -> PublishedFigure:
    """A number of the paper that this study has measured too."""
    words = (shown or _number)(ours)
    verdict: Verdict = "agrees" if agrees else "differs"
    difference = float(ours - theirs)
    return PublishedFigure(place, quantity, _number(theirs), words, difference, verdict, note)


def _number(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _law_figures(fits: Fits, study: Study) -> Iterator[PublishedFigure]:
    """Slopes, intercepts and R² by the paper's own estimator, and the power that it implies."""
    laws, ours_of = by_name(fits.laws), {theirs: name for name, theirs in laws_for(study).items()}
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
                yield PublishedFigure(law.source, quantity, _number(theirs))
                continue
            what = "slope and intercept tested together" if law.intercept else "tested"
            note = f"{what} as printed, by the paper's estimator: {p_words(test.p_value)}"
            if test.p_value_with_theirs is not None:
                note += f"; with the sampling error of theirs, {p_words(test.p_value_with_theirs)}"
            agrees = bool(test.compatible)
            if key == "r2":
                agrees, note = abs(own - theirs) <= 0.05, "agrees within 0.05"
            yield _measured(law.source, quantity, theirs, own, agrees, note, three_digits)
        power = tests.get((name, "log"))
        if power is not None and power.p_value is not None and power.exponent is not None:
            what = "slope and power tested together, as a law of every cell"
            note = f"{what}, on the log scale: {p_words(power.p_value)}"
            agrees = bool(power.compatible)
            own = power.exponent
            yield _measured(law.source, f"power of {of}", 1, own, agrees, note, three_digits)


def _width_figures(best: pd.DataFrame, study: Study) -> Iterator[PublishedFigure]:
    """The range and the median of d_k* on the base grid."""
    known = _papers_cells(best, study)
    found = [width for row in known.values() if (width := integer(row["d_k"])) is not None]
    for name, theirs, of, note in (
        ("smallest", 5, min, ""),
        ("largest", 24, max, ""),
        ("median", 11, statistics.median, "the paper's Table 1 has a median of 8"),
    ):
        quantity = f"{name} d_k* on the base grid"
        if len(found) < len(IMPLIED):
            yield PublishedFigure("Sec. 6.1", quantity, f"{theirs}", note=note)
            continue
        rule = "agrees within one step of d_k" + (f"; {note}" if note else "")
        ours = of(found)
        yield _measured("Sec. 6.1", quantity, theirs, ours, abs(ours - theirs) <= 1, rule)


def _cell_figures(best: pd.DataFrame, study: Study) -> Iterator[PublishedFigure]:
    """Table 1's d_k, and the D_K* and h* that it implies."""
    known = _papers_cells(best, study)
    inferred = "an inference, not a quotation; agrees"
    for size, d_k in TABLE_1_D_K_OF_A_HEAD.items():
        D_K, h = IMPLIED[size]
        row = known.get(size, {})
        star = integer(row.get("h_star")) or 0
        low, high = (integer(row.get(end)) or star for end in ("h_low", "h_high"))
        step = max(h, star)
        width, total = integer(row.get("d_k")) or 0, integer(row.get("D_K")) or 0
        for place, name, theirs, ours, agrees, note in (
            ("Table 1", "d_k", d_k, width, abs(width - d_k) <= 1, "agrees within one step of d_k"),
            (
                "Fig. 8, implied by Table 1", "D_K", D_K, total, abs(total - D_K) <= step,
                f"{inferred} within one step of d_k, {step}",
            ),
            (
                "Fig. 10, implied by Table 1", "h", h, star, low <= h <= high,
                f"{inferred} where ours or our interval holds it",
            ),
        ):  # fmt: skip
            quantity = f"{name}* at (m, d_model) = {size}"
            if ours == 0:
                yield PublishedFigure(place, quantity, f"{theirs}", note=note)
            else:
                yield _measured(place, quantity, theirs, ours, agrees, note)


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
