"""What trained the runs: engines, versions, revisions, processors, seeds and dates."""

from __future__ import annotations

from analysis.report.provenance import origins
from analysis.report.section import Section
from analysis.report.tables import Tables


def section(tables: Tables) -> Section:
    """Where the numbers come from."""
    facts = origins(tables.runs, tables.study)
    return Section(name="provenance", title="Provenance", template="facts", values={"facts": facts})
