"""Every number that the README and the results say was measured is in docs/findings.yaml."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.docs.pages import README, ROOT, prose

NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
COMMAND = re.compile(r"`((?:rgr|python|pytest) [^`]+)`")
NO_MEASUREMENT = re.compile(
    r"`[^`]*`|\]\([^)]*\)"  # code, and where links lead
    r"|\(\d+, \d+\)"  # a cell
    r"|\b(?:Secs?|Figs?|App|Thms?|Cor|Prop|Lemma|Table|eqs?|Eqs?|Table)\.? [A-Z]?\.?\d+[\d., and]*"
    r"|95 %|F1|arXiv:[\d.]+|ICML \d+|20,000"
)


def numbers(text: str) -> list[str]:
    return [found.replace(",", "") for found in NUMBER.findall(NO_MEASUREMENT.sub(" ", text))]


def claims(page: str) -> list[tuple[str, list[str]]]:
    """Paragraphs, items and rows of tables, each with its commands, or those said last above it.

    The first cell of a row is what the paper says.
    """
    pieces = re.split(r"\n\n|\n(?=- |\|)", page)
    found, commands = [], ["none"]
    for piece in pieces:
        text = " ".join(piece.split())
        commands = COMMAND.findall(text) or commands
        is_row = text.startswith("|") and not text.startswith("| (")
        found.append((text.split(" | ", 1)[-1] if is_row else text, commands))
    return found


def unknown(page: str) -> list[tuple[str, str]]:
    """Numbers on a page that no finding of their command has."""
    stored = yaml.safe_load((ROOT / "docs/findings.yaml").read_text("utf-8"))
    told = {one["command"]: set(numbers(one["found"])) for one in stored}
    return [
        (number, text)
        for text, commands in claims(page)
        for number in numbers(text)
        if not any(number in told.get(command, ()) for command in commands)
    ]


PARTS = {
    "README": prose(README).partition("## What was found")[2].partition("## Documentation")[0],
    "results": prose(ROOT / "docs/results.md").partition("## The experiments")[2],
}


@pytest.mark.parametrize("part", PARTS)
def test_every_number_is_a_finding(part: str) -> None:
    assert unknown(PARTS[part]) == []


@pytest.mark.parametrize("part", PARTS)
def test_a_number_that_is_changed_by_hand_is_noticed(part: str) -> None:
    changed = PARTS[part].replace("14 to 46 %", "13 to 46 %")
    assert changed != PARTS[part]
    assert unknown(changed)
