"""The report of finished, unfinished, small and odd studies."""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rgr_dist import paper
from rgr_dist.analysis.transitions.probes import probes_of
from rgr_dist.store.storage import StoreError
from tests.analysis import made_up
from tests.analysis.odd_studies import GRID, ODD
from tests.analysis.written_page import write_report


class Page(HTMLParser):
    """Tags left open, and every address the page refers to."""

    VOID = frozenset({"meta", "link", "br", "hr", "img", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in {"href", "src", "xlink:href", "action", "data", "srcset"}:
                self.addresses.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="session")
def finished(six_cells: Any) -> Any:
    """The results and the report folder of a finished study."""
    return six_cells


def plain(text: str) -> str:
    """The page's words as they are written here, ``D_K*`` and not with a subscript."""
    text = re.sub(r'<span class="whole">(.*?)</span>', r"\1", text)
    return re.sub(
        r"<i>(\w)</i>(?:<sub>(\w+)</sub>)?", lambda m: m[1] + (f"_{m[2]}" if m[2] else ""), text
    )


def written(results: Any, folder: Path) -> str:
    """The words of the report's page, checked to be well formed."""
    text = write_report(results, folder).read_text("utf-8")
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert ".whole { white-space: nowrap; }" in text  # intervals are not broken over lines
    assert not re.search(r">\s*(nan|None|&lt;NA&gt;)\b", text)
    assert not re.search(
        r'"[^"<>]*\b(nan|inf)\b[^"<>]*"', " ".join(re.findall(r"<svg.*?</svg>", text, flags=re.S))
    )
    json.loads((folder / "laws.json").read_text(), parse_constant=pytest.fail)
    return plain(text)


def test_the_page_stands_alone_and_every_address_on_it_leads_somewhere(finished: Any) -> None:
    _, folder = finished
    text = (folder / "index.html").read_text("utf-8")
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    referred = {address[1:] for address in page.addresses if address.startswith("#")}
    assert referred <= set(page.ids)
    assert {f"m{m}-d{d}" for m, d in GRID} <= referred
    held = ("#", "data:")
    outside = [address for address in page.addresses if not address.startswith(held)]
    assert outside == [paper.URL]
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert not re.search(r"<script[^>]*src", text)


def test_every_point_says_what_it_is(finished: Any) -> None:
    results, folder = finished
    text = (folder / "index.html").read_text("utf-8")
    curves = probes_of(results)
    plots = "".join(re.findall(r'<svg class="plot.*?</figure>', text, flags=re.S))
    points = re.findall(r'class="pt[^"]*"[^>]*>(?:<title>[^<]+</title>)?', plots)
    assert all(point.endswith("</title>") for point in points)
    assert len(points) >= len(curves) + 2 * len(GRID)


def test_the_tables_can_be_saved_from_the_page(finished: Any) -> None:
    _, folder = finished
    page = (folder / "index.html").read_text("utf-8")
    ((name, content),) = re.findall(
        r'download="([^"]+)" href="data:application/zip;base64,([^"]*)"', page
    )
    assert name == "tables.zip"
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(content))) as archive:
        assert archive.testzip() is None
        held = {name: archive.read(name) for name in archive.namelist()}
    assert {"best.csv", "thresholds.csv", "probes.csv", "laws.json", "study.yaml"} <= set(held)
    for name, text in held.items():
        assert text == (folder / name).read_bytes()
        assert f"<li>{name}</li>" in page


def test_the_same_results_give_the_same_bytes(finished: Any, tmp_path: Path) -> None:
    results, folder = finished
    write_report(results, tmp_path)
    for path in folder.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_a_threshold_on_a_coarse_grid_is_not_held_against_the_papers(tmp_path: Path) -> None:
    study = made_up.study_of([(64, 16)], mode="grid", heads=[1, 2], D_K=[8, 16])
    rows = [made_up.threshold_row(study.cells[0], h, d_k) for h, d_k in ((1, 16), (2, 4))]
    assert "Table 1" not in written(made_up.results_of(study, [], rows), tmp_path)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("empty", ["No threshold yet: the search of 6 cells is not finished.",
                   "No cell has a threshold to set beside the paper",
                   "Nothing has been trained yet."]),
        ("half done", ["1 of 4 cells needs D_K* = 21 [21–21] at h* = 1 so far.", "[14–24]",
                       "open: the search is not finished",
                       "The study is not finished: 4 of 4 cells are open"]),
        ("all censored", ["No threshold in 4 cells: no head count passes at any width allowed.",
                          "censored: no pass up to the largest width allowed", "≥ 97"]),
        ("inconsistent", ["passes at 6 (10 seeds, mean 0.9910) yet fails at 8"]),
        ("one cell", ["At (m, d_model) = (64, 16), D_K* = 20 [20–20] at h* = 4",
                      "no fit: 1 cell with a threshold; a fit needs 3 cells"]),
        ("one seed", ["With one seed nothing says how far another would move a threshold."]),
        ("diverged", ["1 run failed"]),
        ("limited", ["<td>budget</td>", "<td>unknown</td>"]),
        ("dense", ["0.46 x (App. A.3",
                   *(f"(128, 32, r = {degree})" for degree in (4, 8, 32)),
                   *(f'id="m128-d32-r{degree}"' for degree in (4, 8, 32))]),
        ("HTML in names", ["&lt;script&gt;alert(2)", "&lt;img src=x"]),
    ],
)  # fmt: skip
def test_a_page_with_little_to_show_says_so(kind: str, said: list[str], tmp_path: Path) -> None:
    text = written(ODD[kind](tmp_path), tmp_path / "report")
    for words in said:
        assert words in text
    assert text.count("<script") == 1
    assert kind != "one seed" or "where seeds and the resolution" not in text


def test_a_failed_write_leaves_the_old_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = made_up.results_of(made_up.study_of([(64, 16)]), [], [])
    (tmp_path / "index.html").write_text("old")

    def refuse(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(StoreError, match="no space"):
        write_report(results, tmp_path)
    assert (tmp_path / "index.html").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
