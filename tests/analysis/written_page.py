"""Pages as files, for tests that read or open them."""

from __future__ import annotations

from pathlib import Path

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.report.publish import place, report
from rgr_dist.store.store import Store


def write_report(results: StudyResults, folder: Path) -> Path:
    """Write a study's page into a folder, with its tables beside it; returns its path."""
    return write_page(*report(results), folder)


def write_page(page: str, files: dict[str, bytes], folder: Path) -> Path:
    """Write a page and its files into a folder; returns the path of the page."""
    place(page, files, Store(folder), ".")
    return folder / "index.html"
