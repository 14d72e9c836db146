"""How to repeat the study: its file and the commands."""

from __future__ import annotations

import shlex

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Section


def section(results: StudyResults) -> Section:
    """The commands that train it again, and tell how a threshold came about."""
    study = results.study
    file = shlex.quote(f"{study.name}.yaml")
    cell = study.name_of(study.cells[0])
    commands = [
        (f"rgr plan {file}", "what it will cost"),
        (f"rgr run {file}", "trains what is missing, and writes this page"),
        (f"rgr thresholds {file}", "the threshold of every cell and head count"),
        (f"rgr fit {file}", "the laws"),
        (f"rgr explain {file} --cell {shlex.quote(cell)}", "every decision behind a threshold"),
    ]
    if not study.record.finds_thresholds:
        commands = commands[:2]
    return Section(
        name="repeat",
        title="How to repeat it",
        template="repeat",
        values={"commands": commands, "study_yaml": study.to_yaml(), "file": f"{study.name}.yaml"},
    )
