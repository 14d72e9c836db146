"""The report of finished, unfinished, small and odd studies."""

from __future__ import annotations

import base64
import io
import json
import re
import xml.etree.ElementTree as ET
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rgr_dist import paper
from rgr_dist.analysis.laws.scaling_laws import Law
from rgr_dist.analysis.records import with_bits
from rgr_dist.analysis.report.publish import write_report
from rgr_dist.analysis.runs import cost_of
from rgr_dist.analysis.thresholds.best import best_of
from rgr_dist.analysis.transitions.probes import probes_of
from rgr_dist.study.from_yaml import parse_study
from tests.analysis import made_up

GRID = [(64, 16), (64, 32), (64, 64), (128, 16), (128, 32), (128, 64)]
FIGURES = ("law", "heads", "splits", "curves")


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
        self._note(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def _note(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"href", "src", "xlink:href", "action", "data", "srcset"}:
                self.addresses.append(value or "")
            if name == "id":
                self.ids.append(value or "")


@pytest.fixture(scope="session")
def finished(six_cells: Any) -> Any:
    """The results and the report folder of a finished study."""
    return six_cells


def plain(text: str) -> str:
    """The page's words as they are written here, ``D_K*`` and not with a subscript."""
    return re.sub(
        r"<i>(\w)</i>(?:<sub>(\w+)</sub>)?", lambda m: m[1] + (f"_{m[2]}" if m[2] else ""), text
    )


def written(results: Any, folder: Path) -> str:
    """The words of the report's page, checked to be well formed."""
    text = write_report(results, folder).read_text("utf-8")
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert not re.search(r">\s*(nan|None|&lt;NA&gt;)\b", text)
    assert not re.search(
        r'"[^"<>]*\b(nan|inf)\b[^"<>]*"', " ".join(re.findall(r"<svg.*?</svg>", text, flags=re.S))
    )
    json.loads((folder / "laws.json").read_text(), parse_constant=pytest.fail)
    return plain(text)


def test_the_page_stands_alone(finished: Any) -> None:
    _, folder = finished
    text = (folder / "index.html").read_text("utf-8")
    page = Page(text)
    assert page.open == []
    held = ("#", "data:")
    outside = [address for address in page.addresses if not address.startswith(held)]
    assert outside == [paper.URL]
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert not re.search(r"<script[^>]*src", text)


def test_every_figure_is_in_the_page_and_beside_it_with_its_text_as_text(finished: Any) -> None:
    _, folder = finished
    page = (folder / "index.html").read_text("utf-8")
    for name in FIGURES:
        assert f'<figure id="{name}-figure"' in page
        root = ET.fromstring((folder / f"{name}.svg").read_text("utf-8"))
        words = "".join(root.itertext())
        assert "D" in words
        assert root.findall(".//{http://www.w3.org/2000/svg}text")


def test_every_id_is_there_once_and_every_address_on_the_page_leads_somewhere(
    finished: Any,
) -> None:
    _, folder = finished
    page = Page((folder / "index.html").read_text("utf-8"))
    assert len(page.ids) == len(set(page.ids))
    referred = {address[1:] for address in page.addresses if address.startswith("#")}
    assert referred <= set(page.ids)
    assert {f"m{m}-d{d}" for m, d in GRID} <= referred


def test_every_point_has_an_id_and_says_what_it_is(finished: Any) -> None:
    results, folder = finished
    text = (folder / "index.html").read_text("utf-8")
    ids = set(Page(text).ids)
    curves = probes_of(results)
    for row in curves.to_dict("records"):
        point = f"curves-m{row['m']}-d{row['d_model']}-h{row['h']}-k{row['d_k']}"
        assert point in ids
    points = re.findall(r'class="pt[^"]*" id="([^"]+)"', text)
    titled = re.findall(r'class="pt[^"]*" id="([^"]+)".*?<title>[^<]+</title>', text, flags=re.S)
    assert points == titled
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


def test_the_page_tells_the_finding_the_cells_and_the_protocol(finished: Any) -> None:
    results, folder = finished
    text = (folder / "index.html").read_text("utf-8")
    laws = json.loads((folder / "laws.json").read_text())["laws"]
    power = next(Law(**law) for law in laws if law["name"] == "D_K_power")
    words = plain(text)
    assert (
        f"D_K* grows as (m′ log₂ m / d_model) to the power {power.exponent:.2f} (95 % interval "
        f"{power.exponent_low:#.3g} to {power.exponent_high:#.3g} over 6 cells)"
    ) in words
    assert "For 6 cells of m items in d_model dimensions, from (m, d_model) = (64, 16)" in words
    for setting in ("training.learning_rate", "0.001", "search.target", "context.length"):
        assert setting in text
    assert f"{len(results.runs):,} runs" in text


def test_the_tables_lie_beside_the_page(finished: Any) -> None:
    results, folder = finished
    shown = results
    best = with_bits(best_of(shown))
    for name, table in (("best", best), ("probes", probes_of(shown)), ("cost", cost_of(shown))):
        again = pd.read_csv(folder / f"{name}.csv")
        assert list(again.columns) == list(table.columns)
        assert len(again) == len(table)
    assert cost_of(shown)["steps"].sum() == results.runs["steps"].sum()
    assert not list(folder.glob(".*"))


def test_the_same_results_give_the_same_bytes(finished: Any, tmp_path: Path) -> None:
    results, folder = finished
    write_report(results, tmp_path)
    for path in folder.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_disagreement_with_the_paper_is_said(tmp_path: Path) -> None:
    study = made_up.study_of([(64, 16), (64, 32), (128, 16)], heads=[4])
    widths = {(64, 16): 9, (64, 32): 2, (128, 16): 22}
    rows = [made_up.threshold_row(c, 4, widths[c.m, c.d_model]) for c in study.cells]
    text = written(made_up.results_of(study, [], rows), tmp_path)
    table = text[text.index('<table id="table-agreement-cells"') :]
    (apart,) = re.findall(r'<tr[^>]*class="apart">.*?</tr>', table[: table.index("</table>")])
    shown = re.findall(r">([^<]+)</t[hd]>", apart)
    assert shown[:4] == ["(64, 16)", "20", "36", "differs"]


def test_one_cell_has_no_law_but_a_finding(tmp_path: Path) -> None:
    text = written(made_up.search_all(made_up.study_of([(64, 16)])), tmp_path)
    assert "At m = 64, d_model = 16, D_K* = 20 at 4 heads of width 5" in text
    assert "no fit: 1 cell with a threshold; a fit needs 3 cells" in text


def test_two_cells_make_no_law(tmp_path: Path) -> None:
    text = written(made_up.search_all(made_up.study_of([(64, 16), (64, 32)])), tmp_path)
    assert "1 more cell in the table; too few finished cells for a law." in text
    assert "no fit: 2 cells with a threshold; a fit needs 3 cells" in text
    assert not re.search(r"D_K\* ≈ [\d.]+ \[", text)


def test_a_study_of_curves_shows_them_first(finished: Any, tmp_path: Path) -> None:
    law, score = '<section id="law"', '<section id="transitions"'
    searched = (finished[1] / "index.html").read_text("utf-8")
    assert searched.index(law) < searched.index(score)
    study = made_up.study_of([(64, 16)], mode="grid", heads=[1, 2], D_K=[8, 16])
    rows = [
        made_up.threshold_row(study.cells[0], 1, 16),
        made_up.threshold_row(study.cells[0], 2, 4),
    ]
    text = written(made_up.results_of(study, [], rows), tmp_path)
    assert text.index(score) < text.index(law)
    assert "Table 1" not in text, "a threshold on a coarse grid is held against the paper's"


def test_an_unfinished_study_says_so(tmp_path: Path) -> None:
    study = made_up.study_of([(64, 16), (64, 32)], heads=[1, 2])
    first = study.cells[0]
    rows = [
        made_up.threshold_row(first, 1, 21),
        made_up.threshold_row(first, 2, None, D_K_low=14, D_K_high=24),
    ]
    runs = [made_up.run_row(first, 2, 7, seed, 0.8) for seed in range(2)]
    text = written(made_up.results_of(study, runs, rows), tmp_path)
    assert "D_K* = 21 at 1 head of width 21 so far" in text
    assert "(64, 32) open: the search is not finished" in text
    assert "The study is not finished: 2 of 2 cells are open" in text
    assert "[14–24]" in text


def test_an_empty_study_has_a_report(tmp_path: Path) -> None:
    text = written(made_up.results_of(made_up.study_of(GRID), [], []), tmp_path)
    assert "No threshold yet: the search of 6 cells is not finished." in text
    assert "No cell has a threshold to set beside the paper" in text
    assert "Nothing has been trained yet." in text


def test_censored_and_inconsistent_cells_are_told_in_words(tmp_path: Path) -> None:
    study = made_up.study_of([(64, 16), (64, 32)], heads=[1])
    crossed = {
        "pass": {"d_k": 6, "D_K": 6, "mean_score": 0.991, "n_seeds": 10},
        "fail": {"d_k": 8, "D_K": 8, "mean_score": 0.98, "n_seeds": 10},
    }
    rows = [
        made_up.threshold_row(
            study.cells[0], 1, None, status="censored", D_K_low=97, D_K_high=None
        ),
        made_up.threshold_row(
            study.cells[1],
            1,
            None,
            status="inconsistent",
            D_K_low=6,
            D_K_high=9,
            certificate=json.dumps(crossed),
        ),
    ]
    runs = [made_up.run_row(study.cells[0], 1, 96, seed, 0.93) for seed in range(2)]
    text = written(made_up.results_of(study, runs, rows), tmp_path)
    assert "censored: no pass up to the largest width allowed" in text
    assert "≥ 97" in text
    assert "passes at 6 (10 seeds, mean 0.9910) yet fails at 8" in text


def test_what_limits_a_threshold_is_told_where_it_was_asked_for(tmp_path: Path) -> None:
    study = made_up.study_of([(64, 16), (64, 32)], heads=[2, 4], retest_steps=4)
    one, _, other, _ = study.cells
    thresholds = [
        made_up.threshold_row(one, 2, 10, limited_by="budget"),
        made_up.threshold_row(one, 4, 6, limited_by="capacity"),
        made_up.threshold_row(other, 2, 4, limited_by="budget"),
        made_up.threshold_row(other, 4, None, status="pruned"),
    ]
    page = written(made_up.results_of(study, [], thresholds), tmp_path)
    assert (
        "Of 3 thresholds, 2 would be lower with a larger training budget: D_K still falls at "
        "larger step limits. The other 1 are the same at the two largest."
    ) in page
    assert page.count("<td>budget</td>") == 2
    assert page.count("<td>capacity</td>") == 1
    made = made_up.study_of([(64, 16)], heads=[2])
    plain = made_up.results_of(made, [], [made_up.threshold_row(made.cells[0], 2, 10)])
    assert "limited by" not in write_report(plain, tmp_path).read_text()


def test_names_cannot_inject_markup(tmp_path: Path) -> None:
    study = made_up.study_of([(64, 16)])
    row = made_up.run_row(study.cells[0], 4, 5, 0, 0.9, engine="<script>x</script>")
    text = written(made_up.results_of(study, [row], []), tmp_path)
    assert text.count("<script") == 1
    assert "&lt;script&gt;" in text


def test_a_failed_write_leaves_the_old_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = made_up.results_of(made_up.study_of([(64, 16)]), [], [])
    (tmp_path / "index.html").write_text("old")

    def refuse(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="no space"):
        write_report(results, tmp_path)
    assert (tmp_path / "index.html").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


def test_denser_graphs_are_told_apart_and_held_against_app_a_3(tmp_path: Path) -> None:
    graph = {"family": "regular", "degree": [1, 4, 8, 32]}
    study = parse_study(
        {"name": "made-up", "cells": [{"m": 128, "d_model": 32}], "graph": graph}
        | {"search": {"heads": [1, 2], "seeds": 10}}
    )
    widths = {1: 9, 4: 30, 8: 50, 32: 96}
    rows = [made_up.threshold_row(cell, 2, widths[cell.graph.degree]) for cell in study.cells]
    for cell in study.cells:
        pruned = {"status": "pruned", "D_K_low": 3 * widths[cell.graph.degree]}
        rows.append(made_up.threshold_row(cell, 1, None, **pruned))
    text = written(made_up.results_of(study, [], rows), tmp_path)
    assert "0.46 x (App. A.3" in text
    drawn = (tmp_path / "splits.svg").read_text()
    for degree in (4, 8, 32):
        assert f"(128, 32, r = {degree})" in text
        assert f'id="m128-d32-r{degree}"' in text
        assert f"r = {degree})" in drawn
