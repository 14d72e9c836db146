"""What trained the runs: engines, versions, revisions, processors, seeds and dates."""

from __future__ import annotations

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Section
from rgr_dist.analysis.report.provenance import origins


def section(results: StudyResults) -> Section:
    """Where the numbers come from."""
    facts = origins(results.runs, results.study)
    return Section(name="provenance", title="Provenance", template="facts", values={"facts": facts})
