"""Write a study's report, or a page that compares two studies, into the store."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd

from rgr_dist.analysis.laws.fits import fits_of
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.fit import fitted
from rgr_dist.analysis.page.render import archive_of, render
from rgr_dist.analysis.page.section import Section
from rgr_dist.analysis.report.comparison.section import compared
from rgr_dist.analysis.report.contents import sections
from rgr_dist.analysis.report.report_cache import Written, digest_of, origin_of
from rgr_dist.analysis.report.sections.summary import findings
from rgr_dist.analysis.thresholds.rows import drawn_cells_of
from rgr_dist.planning.tables import decision_rows
from rgr_dist.store.schema import DECISIONS
from rgr_dist.store.store import Store
from rgr_dist.study.yaml_document import shipped_studies


def headline(results: StudyResults) -> str:
    """The finding of the study in a sentence, to be quoted.

    For a transformer's study, further lines give its other cells and how many runs collapsed.
    """
    found = findings(results)
    return "\n".join(found) if results.study.record.finds == "accuracy" else found[0]


def publish(results: StudyResults, store: Store) -> Written:
    """Write the report and ``laws.json`` into the store, with a record of what they come from.

    Raises:
        StoreError: the store cannot be written to.
    """
    home, origin = f"studies/{results.study.name}", origin_of(results, store)
    page, files = report(results)
    placed = {f"{home}/report/{name}": digest_of(file) for name, file in files.items()}
    placed[f"{home}/report/index.html"] = digest_of(page.encode())
    address = place(page, files, store, f"{home}/report")
    if "laws.json" in files:
        placed[f"{home}/laws.json"] = digest_of(files["laws.json"])
        store.write_text(f"{home}/laws.json", files["laws.json"].decode())
    written = Written(address=address, headline=headline(results), origin=origin, files=placed)
    store.write_text(f"{home}/written.json", written.model_dump_json(indent=2) + "\n")
    return written


def report(results: StudyResults) -> tuple[str, dict[str, bytes]]:
    """The page of a study as HTML, and the files beside it by name."""
    content = sections(results)
    files = files_of(content)
    if results.study.record.finds == "D_K":
        laws = {"laws": [asdict(law) for law in fits_of(results).laws]}
        files["laws.json"] = f"{json.dumps(laws, indent=2, allow_nan=False)}\n".encode()
    files["study.yaml"] = results.study.to_yaml().encode()

    page = _page(results.study.name, content, files, results)
    if results.search is not None:
        rows = decision_rows(results.study, results.search)  # too many to embed in the page
        decisions = pd.DataFrame(rows, columns=DECISIONS.names)
        files["decisions.csv"] = decisions.to_csv(index=False).encode()
    return page, files


def publish_comparison(
    first: StudyResults, second: StudyResults, names: tuple[str, str], store: Store
) -> str:
    """Write a page that sets two studies side by side, beside the first one's report.

    Args:
        names: what the page calls them.

    Returns:
        The address of the page.

    Raises:
        StoreError: the store cannot be written to.
    """
    page, files = comparison(first, second, names)
    home = f"studies/{first.study.name}/beside-{second.study.name}"
    return place(page, files, store, home)


def comparison(
    first: StudyResults, second: StudyResults, names: tuple[str, str]
) -> tuple[str, dict[str, bytes]]:
    """The page of two studies side by side as HTML, and the files beside it by name."""
    content = compared((first, second), names)
    files = files_of(content)
    for side, results in zip("ab", (first, second), strict=True):
        files[f"study-{side}.yaml"] = results.study.to_yaml().encode()
    return _page(f"{names[0]} and {names[1]}", content, files, first, second), files


def _page(
    title: str, content: Sequence[Section], files: dict[str, bytes], *shown: StudyResults
) -> str:
    """The page of some sections, cut to fit the largest size allowed."""
    archive, command = archive_of(files), drawn_by(*shown)

    def draw(sections: Sequence[Section], holds_files: bool) -> str:
        held = archive if holds_files else None
        return render(f"{title} · rgr-dist", sections, files, command, held)

    return fitted(draw, content, [row["anchor"] for row in drawn_cells_of(shown[0])])


def drawn_by(*compared: StudyResults) -> str:
    """The command that draws a page's figures as files; empty for one study in two stores."""
    names = [results.study.name for results in compared]
    if len({*names}) < len(names):
        return ""
    shipped = shipped_studies()
    files = [name if name in shipped else f"{name}.yaml" for name in names]
    return shlex.join(["rgr", "figures", *files])


def place(page: str, files: dict[str, bytes], store: Store, folder: str) -> str:
    """Write a page and its files into a folder of the store; returns the address of the page.

    The page is written last. Nothing is synced, since a report can be written again.

    Raises:
        StoreError: the store cannot be written to.
    """
    for name, file in (files | {"index.html": page.encode()}).items():
        store.write_bytes(f"{folder}/{name}", file, sync=False)
    return store.address(f"{folder}/index.html")


def files_of(content: list[Section]) -> dict[str, bytes]:
    """The tables of sections as files, by name."""
    return {
        f"{name}.csv": table.to_csv(index=False, float_format="%.8g").encode()
        for section in content
        for name, table in section.files.items()
    }
