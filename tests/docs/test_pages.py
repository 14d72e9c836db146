"""What the pages say can be typed: links lead somewhere, commands and studies are valid."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

import generate
from rgr_dist.cli import app
from rgr_dist.study.study_file import parse_study
from tests.docs.pages import PAGES, ROOT, anchors, blocks, prose

COMMANDS: Any = typer.main.get_command(app)
LINK = re.compile(r"\]\(([^)\s]+)\)")
NEEDS_A_FILE = ("file:", "mine.py", "edges", "vectors")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if "://" not in link:
            place, _, anchor = link.partition("#")
            target = (page.parent / place).resolve() if place else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def commands(page: Path) -> list[list[str]]:
    """Every ``rgr`` command of a page, in its blocks and within its sentences."""
    told = [words for block in blocks(page, "sh") for words in block.commands]
    told += [shlex.split(text) for text in re.findall(r"`(rgr [^`…]+)`", prose(page))]
    told = [words[words.index("rgr") + 1 :] for words in told if "rgr" in words]
    return [words for words in told if words and not words[-1].isupper()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_ones_that_rgr_takes(page: Path) -> None:
    told = commands(page)
    if page.name == "results.md":
        stored = yaml.safe_load((ROOT / "docs/findings.yaml").read_text("utf-8"))
        told += [shlex.split(one["command"])[1:] for one in stored if "rgr " in one["command"]]
    for verb, *arguments in told:
        if arguments or verb in ("studies", "verify"):  # `rgr tune` alone names the verb
            COMMANDS.commands[verb].make_context(verb, list(arguments))
        assert verb in COMMANDS.commands


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_studies_are_valid(page: Path) -> None:
    """A whole one as it stands, a part of one within the smallest that there is."""
    for block in blocks(page, "yaml"):
        if not any(word in block.text for word in NEEDS_A_FILE):
            document = {"name": "part", "cells": [{"m": 128, "d_model": 32}]}
            document |= yaml.safe_load(block.text)
            assert parse_study(document).cells


def test_public_names_are_there() -> None:
    page = (ROOT / "docs/reference.md").read_text("utf-8")
    rows = re.findall(r"^\| `(rgr_dist\.[\w.]+)` \| (.+) \|$", page, re.MULTILINE)
    names = [(module, name) for module, told in rows for name in re.findall(r"`(\w+)`", told)]
    assert len(names) > 10
    assert all(hasattr(importlib.import_module(module), name) for module, name in names)


@pytest.mark.parametrize("page", generate.PAGES, ids=lambda page: page.name)
def test_generated_tables_are_those_of_the_code(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text == generate.rewritten(text), "python docs/generate.py"
