"""How the runs were trained and judged, what differs from the paper first."""

from __future__ import annotations

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Section
from rgr_dist.analysis.report.provenance import differences, settings

CONFIRMED = (
    " The threshold of the best head count must pass once more, on {} fresh seeds; the paper asks "
    "for no such thing."
)
SEARCH = (
    "The paper trains a coarse grid of widths. Here the search trains every d_k next to a "
    "threshold, so that a threshold is exact to one d_k: it passes, and d_k − 1 was trained and "
    "fails. A probe, the runs of one (cell, h, d_k), stops once no remaining seed can change its "
    "verdict."
)


def section(results: StudyResults) -> Section:
    """Every setting; those that are not the paper's stand first."""
    study = results.study
    values = {"differences": differences(study), "settings": settings(study)}
    words = []
    if study.search.mode == "threshold":
        fresh = study.search.confirm_seeds
        words.append(SEARCH + (CONFIRMED.format(fresh) if fresh else ""))
    return Section(
        name="protocol", title="Protocol", words=words, template="protocol", values=values
    )
