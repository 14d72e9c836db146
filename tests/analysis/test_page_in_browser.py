"""The page as a reader has it: opened in headless Chromium, with and without scripts."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page

from rgr_dist.analysis.drawing.svg import OUTLINES
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.report.publish import comparison
from tests.analysis import made_up
from tests.analysis.odd_studies import GRID, ODD
from tests.analysis.written_page import write_page, write_report
from tests.chromium import chromium, needs_chromium

WIDTHS = (400, 1000, 1600)

pytestmark = needs_chromium

Visit = Callable[..., Page]

OVERLAPS = """() => {
  const boxes = (query, within) => [...within.querySelectorAll(query)]
    .filter((node) => node.checkVisibility({ visibilityProperty: true }))
    .map((node) => ({ node, box: node.getBoundingClientRect() }))
    .filter(({ box }) => box.width > 0 && box.height > 0);
  const name = ({ node }) => `${node.localName} ${node.className} ${node.textContent.slice(0, 30)}`;
  const shared = (one, other, low, high) =>
    Math.min(one.box[high], other.box[high]) - Math.max(one.box[low], other.box[low]);
  const crossing = (all, slack) => all.flatMap((one, i) => all.slice(i + 1).filter((other) =>
    !one.node.contains(other.node) && !other.node.contains(one.node)
    && shared(one, other, "left", "right") > slack && shared(one, other, "top", "bottom") > slack)
    .map((other) => `${name(one)} × ${name(other)}`));
  const parts = "nav, header > *, section > *, figure > *, .panel";
  const within = (query, inner, slack) =>
    [...document.querySelectorAll(query)].flatMap((node) => crossing(boxes(inner, node), slack));
  return [
    ...crossing(boxes(parts, document), 1),
    ...within("svg.plot", "text:not(.halo)", 1.5),
    ...within(".legend", ".key", 1),
  ];
}"""


MISPLACED = """() => [...document.querySelectorAll("svg.plot")].flatMap((plot) => {
  const area = plot.getBoundingClientRect();
  return [...plot.querySelectorAll(".pt > svg, svg.pt, use.pt")].filter((node) => {
    const mark = node.localName === "use" ? node : node.querySelector("use");
    if (mark.parentNode.localName === "g" || mark.getAttribute("href") === "#sARROW") return false;
    const box = mark.getBoundingClientRect();
    const x = area.left + area.width * parseFloat(node.getAttribute("x") || 0) / 100;
    const y = area.top + parseFloat(node.getAttribute("y") || 0);
    return Math.hypot(box.x + box.width / 2 - x, box.y + box.height / 2 - y) > 2;
  }).map((node) => node.closest(".pt").ariaLabel ?? node.textContent);
})"""
MISPLACED = MISPLACED.replace("ARROW", str(len(OUTLINES)))
"""Points whose mark does not stand where they are; arrows and dodged ones aside."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Opens a page; at the end, nothing was asked of the network and nothing went wrong."""
    opened, faults = [], []

    def open_page(
        path: Path, width: int = 1000, scheme: str = "light", scripts: bool = True, hash: str = ""
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=scripts,
            accept_downloads=True,
        )
        opened.append(context)
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: asked(request.url, path))
        page.goto(f"{path.as_uri()}{hash}")
        return page

    def asked(url: str, path: Path) -> None:
        if not url.startswith((path.as_uri(), "data:", "blob:")):
            faults.append(f"asked for {url}")

    yield open_page
    for context in opened:
        context.close()
    assert faults == []


@pytest.fixture(scope="session")
def finished(six_cells: Any) -> Path:
    """The page of six searched cells."""
    path: Path = six_cells[1] / "index.html"
    return path


def law_point(page: Page, cell: str, panel: int = 0) -> Locator:
    """The mark of a cell in a panel of the law; the paper's are hollow."""
    own = f"a.pt:not(.hollow)[href='#{cell}']"
    return page.locator("#law-figure .panel").nth(panel).locator(own)


def fits(page: Page, width: int) -> bool:
    """Whether a page of that width neither scrolls sideways nor has parts that overlap."""
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate(OVERLAPS) == []
    return bool(page.evaluate("document.documentElement.scrollWidth") <= width)


BROKEN = """() => [...document.querySelectorAll("tbody :is(th, td)")].flatMap((cell) => {
  const broken = [];
  const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    for (const { index, 0: word } of walk.currentNode.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      const range = document.createRange();
      range.setStart(walk.currentNode, index);
      range.setEnd(walk.currentNode, index + word.length);
      const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (lines.size > 1) broken.push(word);
    }
  }
  return broken;
})"""
"""Words and numbers in a table that go over two lines."""


def test_no_word_of_a_table_is_broken_and_answers_are_in_view(finished: Path, visit: Visit) -> None:
    page = visit(finished, WIDTHS[0])
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    assert page.evaluate(BROKEN) == []
    for table, head in (
        ("agreement", "verdict"),
        ("collapse", "half pass at"),
        ("transitions", "half pass at"),
        ("candidates", "supported"),
        ("pool", "kept"),
    ):
        box = page.locator(f"#table-{table} thead th", has_text=head).first.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= WIDTHS[0], (table, head)


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overlaps_or_leaves_the_page(
    finished: Path, visit: Visit, scheme: str, scripts: bool
) -> None:
    page = visit(finished, WIDTHS[0], scheme, scripts)
    for width in WIDTHS:
        assert fits(page, width)
        assert page.evaluate(MISPLACED) == []
        sizes = page.evaluate(
            "[...new Set([...document.querySelectorAll('svg.plot text')]"
            ".map((text) => text.getBoundingClientRect().height).filter((height) => height > 0))]"
        )
        assert min(sizes) >= 10, "type is legible at every width"
        assert max(sizes) <= 20
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")


KINDS = [
    "empty",
    "all censored",
    "diverged",
    "HTML in names",
    *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("half done", "one cell", "one seed")),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_with_little_to_show_is_laid_out(kind: str, tmp_path: Path, visit: Visit) -> None:
    page = visit(write_report(ODD[kind](tmp_path), tmp_path / "report"))
    assert fits(page, 400)
    assert fits(page, 1600)
    if kind == "HTML in names":
        assert "<script>alert(2)</script>" in page.inner_text("main")
        assert "<img src=x onerror=alert(0)>" in page.inner_text("#table-cells")
        assert page.locator("img").count() == 0
    sizes = page.evaluate(
        "[...document.querySelectorAll('svg.plot text')].map((t) => getComputedStyle(t).fontSize)"
    )
    assert set(sizes) <= {"11px", "12px"}, "one cell has the type of twelve"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(finished: Path, visit: Visit, scheme: str) -> None:
    page = visit(finished, scheme=scheme)
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    only = {"runOnly": ["color-contrast"]} if scheme == "dark" else {}  # the rest is the same
    faults = Axe().run(page, options=only).response["violations"]
    told = [
        (fault["id"], fault["nodes"][0]["html"][:200], len(fault["nodes"]))
        for fault in faults
        if fault["impact"] in ("serious", "critical")
    ]
    assert told == []


def test_two_studies_side_by_side_have_a_page(tmp_path: Path, visit: Visit) -> None:
    first = made_up.search_all(made_up.study_of(GRID))
    second = made_up.search_all(made_up.study_of(GRID[:4], heads=[1, 2]))
    page, files = comparison(first, second, ("one", "other"))
    path = write_page(page, files, tmp_path)
    opened = visit(path)
    assert fits(opened, 400)
    assert fits(opened, 1600)
    opened.locator("#side-by-side-figure a.pt[href='#m64-d16'] use").first.hover()
    assert "D_K*: " in opened.locator(".tip").inner_text()


def test_a_column_is_sorted_by_its_button_and_the_address_keeps_it(
    finished: Path, visit: Visit
) -> None:
    page = visit(finished)
    head = page.locator("#table-cells thead th", has_text="DK*")
    head.get_by_role("button").click()
    cells = page.locator("#table-cells tbody tr td:nth-child(3)").all_inner_texts()
    widths = [int(text.split()[0]) for text in cells]
    assert widths == sorted(widths)
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    first = page.locator("#table-cells tbody tr").first.inner_text()
    again = visit(finished, hash=page.url[page.url.index("#") :])
    assert again.locator("#table-cells tbody tr").first.inner_text() == first


def test_rows_are_filtered(finished: Path, visit: Visit) -> None:
    page = visit(finished)
    page.locator("#heads summary").first.click()
    box = page.locator("#heads .filter input").first
    box.fill("(64, 16)")
    rows = page.locator("#table-heads tbody tr:visible")
    assert rows.count() == 7
    assert all("(64, 16)" in text for text in rows.all_inner_texts())
    assert (
        page.locator("#heads .filter [role=status]").first.inner_text() == "7 of the 42 rows here"
    )
    box.fill("")
    assert rows.count() == 42


def test_a_point_tells_what_it_is_and_its_cell_stands_out_everywhere(
    finished: Path, visit: Visit
) -> None:
    page = visit(finished)
    point = law_point(page, "m128-d32")
    point.locator("use").hover()
    tip = page.locator(".tip")
    told = point.get_attribute("aria-label") or ""
    assert tip.inner_text() == told
    assert told.startswith("(m, d_model) = (128, 32)\nD_K*: ")
    assert ", found" in told
    assert page.locator("#m128-d32").get_attribute("class") == "on"
    page.mouse.move(5, 5)
    assert tip.is_hidden()
    assert "on" not in (page.locator("#m128-d32").get_attribute("class") or "")
    point.locator("use").click()
    page.wait_for_url("**#m128-d32")
    row, panel = page.locator("#m128-d32"), page.locator(".panel[data-cell='m128-d32']").first
    for place in (row, law_point(page, "m128-d32", panel=1), panel):
        assert "on" in (place.get_attribute("class") or "")
    page.keyboard.press("Escape")
    assert "#m128" not in page.url


@pytest.fixture(scope="module")
def trimmed(many: StudyResults, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of many cells, each at two step limits, that shows some."""
    return write_report(many, tmp_path_factory.mktemp("trimmed"))


@pytest.mark.parametrize(
    ("cell", "fades"),
    [("m64-d16-2", ["one-head", "splits", "curves"]), ("m64-d16", ["one-head"]), ("m64-d16-4", [])],
    ids=["with panels", "a smaller step limit", "without a panel"],
)
def test_panels_fade_where_the_chosen_cell_has_another(
    trimmed: Path, visit: Visit, cell: str, fades: list[str]
) -> None:
    page = visit(trimmed, hash=f"#{cell}")
    for name in ("one-head", "splits", "curves"):
        panels = page.locator(f"#{name}-figure .panel")
        faded = page.locator(f"#{name}-figure .panel.far")
        assert faded.count() == (panels.count() - 1 if name in fades else 0), name
        assert page.locator(f"#{name}-figure .panel.on").count() == (name in fades)
        assert name in fades or page.locator(f"#{name}-figure .far").count() == 0


def test_points_are_reached_by_keyboard(finished: Path, visit: Visit) -> None:
    page = visit(finished)
    law_point(page, "m64-d16").focus()
    assert "(64, 16)" in page.locator(".tip").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_url("**#m64-d16")


def test_without_scripts_a_point_leads_to_its_row(finished: Path, visit: Visit) -> None:
    page = visit(finished, scripts=False)
    point = law_point(page, "m128-d32")
    assert "D_K*: " in (point.locator("title").text_content() or "")
    point.locator("use").click()
    page.wait_for_url("**#m128-d32")
    assert page.locator("#m128-d32").is_visible()
    assert page.locator("button").count() == 0


def test_the_switch_goes_between_light_and_dark_and_the_address_keeps_it(
    finished: Path, visit: Visit
) -> None:
    def ground(page: Page) -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    page = visit(finished)
    light = ground(page)
    page.get_by_role("button", name="Dark page").click()
    dark = ground(page)
    assert dark != light
    page.wait_for_url("**#theme=dark")
    assert ground(visit(finished, scheme="dark")) == dark
    assert ground(visit(finished, scheme="dark", hash="#theme=light")) == light
    page.get_by_role("button", name="Light page").click()
    assert ground(page) == light


def test_the_main_figure_zooms_and_goes_back(finished: Path, visit: Visit) -> None:
    page = visit(finished)
    plot = page.locator("#law-figure svg.plot").first

    def place() -> Any:
        return law_point(page, "m64-d16").locator("use").bounding_box()

    plot.scroll_into_view_if_needed()
    scrolled = page.evaluate("scrollY")
    before = place()
    box = plot.bounding_box()
    assert box is not None
    assert before is not None
    left, top = before["x"] - 60, before["y"] - 60
    page.mouse.move(left, top)
    page.mouse.down()
    page.mouse.move(left + 180, top + 150, steps=3)
    page.mouse.up()
    middle = place()
    assert middle["width"] == pytest.approx(before["width"], abs=1e-3), "marks keep their size"
    share = (before["x"] + before["width"] / 2 - left) / 180
    assert middle["x"] + middle["width"] / 2 == pytest.approx(
        box["x"] + share * box["width"], abs=2
    )
    assert law_point(page, "m128-d16").locator("use").is_hidden()
    assert "zoom=" in page.url
    assert page.evaluate("document.documentElement.scrollWidth") <= 1000
    again = visit(finished, hash=page.url[page.url.index("#") :])
    kept = law_point(again, "m64-d16").locator("use").bounding_box()
    assert kept is not None
    assert kept["x"] == pytest.approx(middle["x"], abs=2)
    page.get_by_role("button", name="Show the whole figure").click()
    page.evaluate("(y) => scrollTo(0, y)", scrolled)
    assert place() == before
    page.get_by_role("button", name="Zoom in").click()
    assert place() != before


def test_figures_and_tables_are_saved_from_the_page(
    finished: Path, visit: Visit, tmp_path: Path
) -> None:
    page = visit(finished)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the command that draws law as PDF").click()
    page.get_by_text("Copied", exact=True).wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "rgr figures made-up.yaml --figure law"
    with page.expect_download() as download:
        page.get_by_role("link", name="tables.zip").click()
    assert download.value.suggested_filename == "tables.zip"
    download.value.save_as(tmp_path / "tables.zip")
    with zipfile.ZipFile(tmp_path / "tables.zip") as archive:
        assert archive.read("laws.json") == (finished.parent / "laws.json").read_bytes()


def test_the_page_prints_as_a_light_page_without_its_controls(finished: Path, visit: Visit) -> None:
    page = visit(finished, scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for control in (".contents", ".filter >> nth=0"):
        assert page.locator(control).is_hidden()
