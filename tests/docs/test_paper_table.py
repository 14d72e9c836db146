"""The table of what the paper has and we cover: what it names is there, no line lacks an answer."""

from __future__ import annotations

import re

import pytest

from rgr_dist.study.yaml_document import shipped_studies
from tests.docs.pages import ROOT, verbs

PAGE = (ROOT / "docs/paper.md").read_text("utf-8")
LINES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and line.count("|") == 6
][1:]
PLACES = [line[0] for line in LINES]


def exists(name: str) -> bool:
    """Whether a study, a verb or a file of this name is there."""
    verb = re.fullmatch(r"rgr ([a-z-]+)", name)
    if verb is not None:
        return verb[1] in verbs()
    return name in shipped_studies() or (name.endswith(".py") and (ROOT / name).is_file())


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0] + " " + line[1][:20])
def test_a_line_names_what_is_there_and_what_is_missing(line: list[str]) -> None:
    _, says, shown, state, missing = line
    names = re.findall(r"`([^`]+)`", shown)
    assert [name for name in names if not exists(name)] == []
    assert says
    assert state in ("covered", "part", "not")
    assert bool(names) == (state != "not")
    assert missing or state == "covered"


def test_every_numbered_statement_figure_and_table_of_the_paper_has_a_line() -> None:
    told = " ".join(f"{place} {says}" for place, says, *_ in LINES)
    numbered = {
        "8.2",
        "8.3",
        "8.4",
        "9.1",
        "9.2",
        "9.3",
        "4.1",
        "8.1",
        *(f"B.{i}" for i in range(1, 11)),
    }
    assert {
        number for number in numbered if not re.search(rf"{re.escape(number)}(?!\d)", told)
    } == set()
    figures = {
        int(n) for part in re.findall(r"Figs?\. ([\d, ]+)", told) for n in re.findall(r"\d+", part)
    }
    assert figures == set(range(1, 14))
    assert {f"Algorithm {i}" for i in range(1, 6) if f"Algorithm {i}" not in told} == set()
    assert "Table 1" in told
    assert "Table 2" in told


def test_a_name_that_is_not_there_is_noticed() -> None:
    assert not exists("no-such-study")
    assert not exists("rgr prove")
    assert not exists("tests/theory/test_nothing.py")
