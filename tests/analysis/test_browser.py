"""The page in a browser: sorting, width, dark and print, and what axe finds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

from rgr_dist.analysis.figures.style import DARK
from tests.analysis.studies import page_of_kind

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page of twelve cells."""
    file = tmp_path_factory.mktemp("page") / "index.html"
    file.write_text(page_of_kind("twelve"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        errors: list[object] = []
        page.on("pageerror", lambda error: errors.append(error))
        page.goto(file.as_uri())
        yield page
        assert not errors
        browser.close()


def column(page: Page, number: int) -> list[str]:
    return page.locator(f"#table-cells tbody td:nth-child({number})").all_inner_texts()


def test_a_click_on_a_head_sorts_and_another_turns_the_order(opened: Page) -> None:
    def widths() -> list[int]:
        return [int(text.split()[0]) for text in column(opened, 2)]

    head = opened.locator("#table-cells th:nth-child(2) button")
    head.click()
    assert widths() == sorted(widths())
    assert opened.locator("#table-cells th[aria-sort=ascending]").count() == 1
    head.press("Enter")
    assert widths() == sorted(widths(), reverse=True)
    opened.locator("#table-cells th:nth-child(1) button").click()
    assert column(opened, 1)[0] == "(64, 16)"


@pytest.mark.parametrize("width", [320, 400, 1000, 1600])
def test_the_page_does_not_scroll_sideways(opened: Page, width: int) -> None:
    opened.set_viewport_size({"width": width, "height": 800})
    opened.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    spill = opened.evaluate(
        "[...document.querySelectorAll('main *')].filter((one) => !one.closest('.table, .drawing,"
        " pre') && one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML)"
    )
    assert spill == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened: Page, scheme: str) -> None:
    opened.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    found = Axe().run(opened).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
    if scheme == "dark":
        ink = opened.evaluate("getComputedStyle(document.querySelector('svg text')).fill")
        red, green, blue = (int(DARK["ink"][i : i + 2], 16) for i in (1, 3, 5))
        soft = tuple(int(DARK["soft"][i : i + 2], 16) for i in (1, 3, 5))
        assert ink in (f"rgb({red}, {green}, {blue})", "rgb({}, {}, {})".format(*soft))


def test_a_mark_says_what_it_is(opened: Page) -> None:
    titles = opened.evaluate(
        "[...document.querySelectorAll('#law svg title')].map((one) => one.textContent)"
    )
    assert len(titles) == 12
    assert all("D_K* = " in title for title in titles)


def test_it_prints(opened: Page, tmp_path: Path) -> None:
    file = tmp_path / "page.pdf"
    opened.pdf(path=file)
    assert file.read_bytes().startswith(b"%PDF")
