"""Pictures of the documentation: a figure of a report, and how the report looks in a browser."""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent.parent
FIGURE, SCREEN = FOLDER / "law.svg", FOLDER / "report.webp"
STUDY = "base-grid"
WIDTH, HEIGHT = 1200, 1370
"""Pixels of the page that ``SCREEN`` shows, from its top."""


def take(store: str) -> None:
    """Write the report of ``STUDY`` into a folder, and keep what the pages show of it.

    Raises:
        StudyError, StoreError: there is no such study, or the store cannot be read.
    """
    from rgr_dist.analysis.drawing.plot import as_file
    from rgr_dist.analysis.load import open_results
    from rgr_dist.analysis.report.contents import figures, sections
    from rgr_dist.analysis.report.publish import report
    from rgr_dist.store.store import Store
    from rgr_dist.study.study_file import load_study

    with tempfile.TemporaryDirectory() as folder:
        results = open_results(load_study(STUDY), Store(store))
        (law,) = figures(sections(results), ["law"])
        FIGURE.write_bytes(as_file(law, "svg", width=5))
        page = Path(folder) / "index.html"
        page.write_text(report(results)[0], "utf-8")
        SCREEN.write_bytes(screen(page))


def screen(page: Path) -> bytes:
    """The top of a page as Chromium shows it, as lossless WebP."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        opened = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        opened.goto(page.as_uri())
        shown = Image.open(io.BytesIO(opened.screenshot()))
        browser.close()
    packed = io.BytesIO()
    shown.convert("RGB").save(packed, "WEBP", lossless=True, method=6)
    return packed.getvalue()
