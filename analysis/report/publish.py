"""Write a study's report into the store."""

from __future__ import annotations

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.render import render
from rgr_dist.analysis.page.section import Section
from rgr_dist.analysis.report.contents import sections
from rgr_dist.analysis.report.sections.summary import findings
from rgr_dist.store.store import Store


def headline(results: StudyResults) -> str:
    """The finding of the study in a sentence, to be quoted.

    For a transformer's study, further lines give its other cells and how many runs collapsed.
    """
    found = findings(results)
    return "\n".join(found) if results.study.record.finds == "accuracy" else found[0]


def publish(results: StudyResults, store: Store) -> str:
    """Write the report into the store; returns the address of its page.

    Raises:
        StoreError: the store cannot be written to.
    """
    page, files = report(results)
    folder = f"studies/{results.study.name}/report"
    for name, file in (files | {"index.html": page.encode()}).items():
        store.write_bytes(f"{folder}/{name}", file, sync=False)
    return store.address(f"{folder}/index.html")


def report(results: StudyResults) -> tuple[str, dict[str, bytes]]:
    """The page of a study as HTML, and the files beside it by name."""
    content = sections(results)
    files = files_of(content)
    files["study.yaml"] = results.study.to_yaml().encode()
    return render(f"{results.study.name} · rgr-dist", content, files), files


def files_of(content: list[Section]) -> dict[str, bytes]:
    """The tables of sections as files, by name."""
    return {
        f"{name}.csv": table.to_csv(index=False, float_format="%.8g").encode()
        for section in content
        for name, table in section.files.items()
    }
