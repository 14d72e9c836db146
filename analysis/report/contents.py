"""The sections of a report, in order, for every kind of study. A new section is added here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rgr_dist.analysis.budgets import section as training_time
from rgr_dist.analysis.drawing.panel import Figure
from rgr_dist.analysis.facts import section as facts
from rgr_dist.analysis.heads import section as heads
from rgr_dist.analysis.layers import compares_layers
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Section
from rgr_dist.analysis.phases import is_of_phases
from rgr_dist.analysis.report import provenance
from rgr_dist.analysis.report.sections import cost, summary
from rgr_dist.analysis.splits import section as accuracy
from rgr_dist.analysis.theory import phases_section
from rgr_dist.analysis.thresholds import section as cells
from rgr_dist.analysis.transitions import section as transitions
from rgr_dist.study.errors import StudyError

Make = Callable[[StudyResults], Section | None]

D_K, D_V, ACCURACY, PHASES, LAYERS = ("D_K",), ("D_V",), ("accuracy",), ("phases",), ("layers",)
TOTAL = ("total",)
ALL = D_K + D_V + ACCURACY + PHASES + LAYERS + TOTAL

CONTENTS: tuple[tuple[Make, tuple[str, ...]], ...] = (
    (summary.section, ALL),
    (phases_section.section, PHASES),
    (accuracy.section, ACCURACY),
    (facts.splits, TOTAL),
    (training_time.section, D_K),
    (cells.section, D_K + D_V + LAYERS + TOTAL),
    (heads.section, D_K + D_V),
    (transitions.section, D_K),
    (facts.ranks, D_V + TOTAL),
    (facts.taus, D_V + TOTAL),
    (facts.said, D_V + TOTAL),
    (cost.section, ALL),
    (provenance.protocol, D_K + ACCURACY + PHASES + LAYERS),  # the paper has no D_V
    (provenance.provenance, ALL),
    (provenance.repeat, ALL),
)
"""The sections in order, each with the kinds of study it is for: ``Model.finds``, phases, layers.

With a fixed total each d_qk allows one d_vo: thresholds by d_qk would follow from the design.
A section for which a study has no data is None, and is left out.
"""


def sections(results: StudyResults) -> list[Section]:
    """The sections of the study's page, the head first."""
    study = results.study
    kind: str = "layers" if compares_layers(study) else study.record.finds
    kind = "phases" if is_of_phases(study) else kind
    kind = "total" if study.search.total else kind
    makers = [make for make, finds in CONTENTS if kind in finds]
    first = _lead(results)
    if kind not in ("phases", "layers") and first in makers:
        makers.remove(first)
        makers.insert(1, first)
    return [section for make in makers if (section := make(results)) is not None]


def _lead(results: StudyResults) -> Make:
    """The section that shows what the study was run for."""
    if results.study.search.mode == "grid":
        return transitions.section
    if results.study.has_budgets:
        return training_time.section
    if results.study.record.algorithm == "one-head":
        return cells.section
    return heads.section


def figures(
    content: Sequence[Section],
    names: Sequence[str] = (),
) -> list[Figure]:
    """The figures of a page, in order.

    Args:
        content: the page's sections.
        names: of the figures wanted; all figures if empty.

    Raises:
        StudyError: the page has no figure of one of these names.
    """
    drawn = [figure for section in content for figure in section.figures]
    every = {figure.name: figure for figure in drawn if figure.panels}
    for name in names:
        if not isinstance(name, str) or name not in every:
            has = ", ".join(every) or "none: it has too few results"
            raise StudyError(f"the page has no figure {name!r}; its figures: {has}")
    return [every[name] for name in names or every]
