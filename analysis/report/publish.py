"""Writes a study's report: into a folder, or into the store beside the study's tables."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from analysis.laws import laws_of
from analysis.load import StudyResults
from analysis.report import accuracy, theory, thresholds
from rgr_dist.store.parts import write_atomically
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study


class Section(NamedTuple):
    """What reports on a study: ``page`` gives the HTML and the files beside it, by name."""

    headline: Callable[[StudyResults], str]
    page: Callable[[StudyResults], tuple[str, dict[str, bytes]]]


SECTIONS = {
    "thresholds": Section(thresholds.headline, thresholds.page),
    "accuracy": Section(accuracy.headline, accuracy.page),
}
"""Sections by the name that a model's record gives its report."""


def section(study: Study) -> Section:
    """What reports on the study's model."""
    return SECTIONS[study.cells[0].record.report]


def headline(results: StudyResults) -> str:
    """The finding of the study in a sentence or two."""
    return section(results.study).headline(results)


def publish(results: StudyResults, store: Store) -> str:
    """Write the report and ``laws.json`` into the store; returns the address of the page.

    Raises:
        StoreError: the store cannot be written to.
    """
    home = f"studies/{results.study.name}"
    text = json.dumps({"laws": [law.to_json() for law in laws_of(results)]}, indent=2)
    store.write_text(f"{home}/laws.json", text + "\n")
    beside = theory.files(results, store)
    if store.local_path is not None:
        return str(write_report(results, store.local_path / home / "report", beside))
    with tempfile.TemporaryDirectory() as folder:
        write_report(results, Path(folder), beside)
        return f"{store.upload(Path(folder), f'{home}/report')}/index.html"


def write_report(
    results: StudyResults, folder: Path, beside: Mapping[str, bytes] | None = None
) -> Path:
    """Write ``index.html`` and, beside it, its figures (SVG, PNG), tables (CSV) and ``laws.json``.

    Each file is written under a temporary name and renamed, the page last: anyone who reads the
    folder meanwhile sees whole files.

    Args:
        beside: more files by name.

    Returns:
        The path of ``index.html``.

    Raises:
        OSError: the folder cannot be made or written to.
    """
    page, files = section(results.study).page(results)
    files |= beside or {}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_atomically(folder / name, content)
    write_atomically(folder / "index.html", page.encode())
    return folder / "index.html"
