"""The report of every kind of study: what its page holds, and that its numbers are the tables'."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from rgr_dist.analysis import report
from rgr_dist.analysis.beside_paper import beside_paper, papers_law
from rgr_dist.analysis.load import open_results
from rgr_dist.analysis.page import Section, Table, render, shown
from rgr_dist.analysis.protocol import differences
from rgr_dist.analysis.report import certificate_words, figures, page_of, sections, write_page
from rgr_dist.analysis.tables import best
from rgr_dist.paper import LAWS, TABLE_1_D_K_OF_A_HEAD
from rgr_dist.store.store import Store
from rgr_dist.study.study_file import parse_study
from tests.analysis.made_up import trained
from tests.analysis.studies import KINDS, SIZES, made, page_of_kind, relations, study_of

VOID = {"meta", "link", "br", "wbr", "img", "input", "hr"}


class Page(HTMLParser):
    """What a page holds: ids, links, sections, rows of tables, and elements left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.titles: list[str] = []
        self.open: list[str] = []
        self._name = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if "id" in told:
            self.ids.append(str(told["id"]))
        if tag == "a":
            self.links.append(str(told["href"]))
        if tag == "table":
            self._name = str(told["id"])
            self.tables[self._name] = []
        if tag == "tr":
            self.tables[self._name].append([])
        if tag in ("td", "th"):
            self.tables[self._name][-1].append("")
        if tag == "title":
            self.titles.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if "td" in self.open or "th" in self.open:
            self.tables[self._name][-1][-1] += data
        elif self.open and self.open[-1] == "title":
            self.titles[-1] += data
        elif self.open and "h2" in self.open:
            self.headings.append(data)


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_of_a_study_of_any_kind_is_whole(kind: str) -> None:
    results = made(kind)
    text = page_of_kind(kind)
    page = Page(text)
    assert not page.open
    assert len(page.ids) == len({*page.ids}), "every id once"
    assert [one.name for one in sections(results)][-1] == "measured"
    assert page.links == ["best.csv"]
    assert {*figures(results)} <= {*page.ids}
    assert text.count("<svg ") == len(figures(results))
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", text), "it fetches nothing"
    assert results.study.to_yaml().splitlines()[0] in text
    assert "nan" not in text.lower().replace("finance", "")
    assert "&lt;NA&gt;" not in text
    assert len(text) < 1_000_000


@pytest.mark.parametrize("kind", KINDS)
def test_a_study_that_has_just_begun_has_a_page(kind: str, tmp_path: Path) -> None:
    results = open_results(made(kind).study, Store(tmp_path))
    assert page_of(results, []).count("<svg ") == len(figures(results))


def test_a_page_holds_no_more_than_a_reader_takes_in() -> None:
    results = made("thresholds")
    parts = sections(results)
    assert sum(len(part.figures) for part in parts) <= 6
    assert sum(len(part.tables) for part in parts) <= 4
    words = [report.headline(results), *(line for part in parts for line in part.words)]
    words += [figure.caption for part in parts for figure in part.figures]
    words += [table.caption for part in parts for table in part.tables]
    assert len(" ".join(words).split()) <= 400
    assert len(report.headline(results).split()) <= 20


def test_the_order_is_that_of_a_readers_questions() -> None:
    def names(kind: str) -> list[str]:
        return [part.name for part in sections(made(kind))]

    assert names("twelve") == [
        "growth", "cells", "by-heads", "scores", "which-law", "paper", "measured",
    ]  # fmt: skip
    assert "which-law" not in names("thresholds"), "five cells choose no law"
    assert names("one cell")[0] == names("grid")[0] == "scores"
    assert names("step limits")[0] == "time"
    assert names("layers") == ["by-layer", "cells", "measured"]
    assert names("transformer") == ["splits", "measured"]
    assert names("empty") == ["cells", "paper", "measured"]


def test_the_cells_of_the_page_are_those_of_the_table() -> None:
    results = made("thresholds")
    head, *rows = Page(page_of_kind("thresholds")).tables["table-cells"]
    assert head[:3] == ["cell", "DK*", "h*"]
    table = best(results)
    assert len(rows) == len(table) == 5
    for row, own in zip(rows, table.to_dict("records"), strict=True):
        assert row[0] == f"({own['m']}, {own['d_model']})"
        assert row[1].split()[0] == f"{own['D_K']}"
        assert re.findall(r"\d+", row[1])[1:] == [f"{own['D_K_low']}", f"{own['D_K_high']}"]
        assert row[2].split()[0] == f"{own['h_star']}"
        certificate = own["certificate"]
        assert row[4].startswith(f"{certificate['pass']['d_k']} ✓ ")
        assert f"| {certificate['fail']['d_k']} ✗ " in row[4]


def test_the_papers_cells_stand_beside_ours() -> None:
    results = made("twelve")
    table = beside_paper(results)
    assert len(table) == 12
    printed = [*zip(table["m"], table["d_model"], table["paper_d_k"], strict=True)]
    assert printed == [(*size, d_k) for size, d_k in sorted(TABLE_1_D_K_OF_A_HEAD.items())]
    ours = best(results).set_index(["m", "d_model"])["d_k"]
    assert [ours[m, d_model] for m, d_model, _ in printed] == table["d_k"].tolist()
    rows = Page(page_of_kind("twelve")).tables["table-paper"][1:]
    assert [row[1] for row in rows] == [f"{theirs}" for theirs in table["paper_d_k"]]
    assert [row[2] for row in rows] == [f"{own}" for own in table["d_k"]]
    assert papers_law(results) == LAWS["D_K"]
    assert papers_law(made("one cell")) == LAWS["D_K_wide"]
    assert papers_law(made("grid")) is None, "softmax"
    assert beside_paper(made("grid")).empty


def test_a_page_that_is_not_final_says_so_and_loads_itself_anew(tmp_path: Path) -> None:
    study, store = study_of(SIZES), Store(tmp_path)
    store.append(trained(study, store, relations, probes=5))
    running = Path(write_page(study, store, "5 probes of about 40")).read_text()
    assert "5 probes of about 40" in running
    assert 'http-equiv="refresh"' in running
    store.append(trained(study, store, relations))
    address = write_page(study, store)
    final = Path(address).read_text()
    assert 'http-equiv="refresh"' not in final
    beside = Path(address).parent
    for link in Page(final).links:
        assert (beside / link).is_file()
    stored = pd.read_csv(beside / "best.csv")
    assert stored["D_K"].tolist() == best(report.open_results(study, store))["D_K"].tolist()
    assert parse_study is not None


def test_what_differs_from_the_paper_is_listed_and_nothing_else() -> None:
    assert differences(study_of([{"m": 64, "d_model": 16}], search={"seeds": 10})).set_index(
        "setting"
    )["here"].to_dict() in ({"search.confirm_seeds": "20"}, {})
    parts = {"training": {"learning_rate": 0.01}, "search": {"seeds": 3, "target": 0.9}}
    rows = differences(study_of(SIZES, **parts)).set_index("setting")
    assert rows.loc["training.learning_rate"].tolist() == ["0.01", "0.001"]
    assert rows.loc["search.seeds"].tolist() == ["3", "10"]
    assert rows.loc["search.target"].tolist() == ["0.9", "0.99"]
    limits = [{"m": 64, "d_model": 16, "training": {"max_steps": [20_000, 40_000]}}]
    (row,) = differences(study_of(limits)).query("setting == 'training.max_steps'").values.tolist()
    assert "40,000" in row[1]
    assert row[2] == "20,000", "Table 2"


@pytest.mark.parametrize(
    ("mean", "shown_"), [(0.9896, ".990"), (0.98996, ".989"), (0.55, ".550"), (None, "diverged")]
)
def test_a_failing_mean_never_reads_as_the_target(mean: float | None, shown_: str) -> None:
    probe = {"d_k": 8, "D_K": 16, "n_seeds": 2, "mean_score": mean}
    passed = {"d_k": 9, "D_K": 18, "n_seeds": 10, "mean_score": 0.9951}
    words = certificate_words({"pass": passed, "fail": probe}, 0.99)
    expected = ".989" if shown_ == ".990" else shown_
    assert words == f"9 ✓ .995 | 8 ✗ {expected} of 2"
    assert certificate_words(None, 0.99) == "–"


def test_names_of_others_are_text_not_markup() -> None:
    odd = "<img src=x onerror=alert(1)>"
    table = Table(name="t", caption=odd, rows=pd.DataFrame({odd: [odd, None, 3, 0.25]}))
    section = Section(name="s", title=odd, words=[odd], tables=[table], code=odd)
    text = render(odd, odd, [odd], [section], [], odd)
    assert "<img" not in text
    assert Page(text).tables["t"] == [[odd], [odd], ["–"], ["3"], ["0.25"]]


@pytest.mark.parametrize(
    ("value", "text"),
    [(20_000, "20,000"), (-0.5, "−0.5"), (1.23456, "1.23"), (None, "–"), (True, "yes"), (0, "0")],
)
def test_values_of_tables(value: object, text: str) -> None:
    assert shown(value) == text
