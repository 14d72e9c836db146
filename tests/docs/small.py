"""The documentation's studies and commands at a size that trains in seconds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from rgr_dist.study.yaml_document import shipped_studies, shipped_text
from tests.small_study import SMALL

CELL = {"m": 16, "d_model": 16}
CELLS = {
    "base-grid": [{"m": [12, 16], "d_model": [8, 16]}, {"m": 24, "d_model": 8}],
    "quickstart": [{"m": [12, 16], "d_model": 16}],
}
"""The cells of a study, where they are not ``CELL`` alone: those that laws are fitted to."""
FACTS: dict[str, Any] = {
    "facts": {},
    "training": {"max_steps": 60},
    "cells": [
        {"database": {"family": "function", "keys": 4, "queries": 2, "values": 4}, "d_model": 8}
    ],
}
"""What a study of facts has instead."""
CELL_NAMES = ("m=16,d_model=16", "m=12,d_model=16", "m=12,d_model=8", "m=16,d_model=8")
FEWER = {
    "--trials": "2",
    "search.transition_seeds": "2",
    "cells": f"[{{m: {CELL['m']}, d_model: {CELL['d_model']}}}]",
}
"""Options and keys that would take long, and what they are in a test."""


def small_study(document: dict[str, Any]) -> dict[str, Any]:
    """A study on a tiny cell or a few, with few heads and seeds; all else as it is."""
    if document.get("model") == "facts":
        per = {"total": 4} if "total" in document["search"]["per"] else {"d_qk": [1, 2]}
        search = {**document["search"], "per": per, "seeds": 2}
        return {**document, **FACTS, "search": search}
    made = isinstance(document.get("model"), dict)
    parts = {} if made else {"training": SMALL["training"], "context": SMALL["context"]}
    cells = CELLS.get(document["name"], [CELL])
    search = {**document.get("search", {}), "heads": [1, 2, 4], "seeds": 2}
    if search.get("confirm_seeds"):
        search["confirm_seeds"] = 2
    return {**document, **parts, "cells": cells, "search": search}


def write_small(folder: Path, source: str) -> None:
    """Write a small study beside the commands that name it.

    Args:
        source: a shipped study's name, or the text of a study called ``mine``.
    """
    text = shipped_text(source) if source in shipped_studies() else source
    document = yaml.safe_load(text)
    (folder / f"{document['name']}.yaml").write_text(yaml.safe_dump(small_study(document)))


def small_command(arguments: list[str]) -> list[str]:
    """The arguments of ``rgr`` with small studies in place of the shipped ones."""
    shipped, names = shipped_studies(), iter(CELL_NAMES)
    words = []
    for before, word in zip(["", *arguments], arguments, strict=False):
        key = word.partition("=")[0]
        if word in shipped:
            words.append(f"{word}.yaml")
        elif before == "--cell":
            words.append(next(names))
        elif before in ("init", "new-model"):
            words.append("another")  # mine.yaml is there, as a page shows it
        elif before in FEWER:
            words.append(FEWER[before])
        elif before == "--set" and key in FEWER:
            words.append(f"{key}={FEWER[key]}")
        else:
            words.append(word)
    if words[0] == "predict":
        words += ["--study", "base-grid.yaml"]
    if words[0] == "tune" and "--trials" not in words:
        words += ["--trials", "2"]
    return words


def small_script(text: str) -> str:
    """A script with small studies in place of the shipped ones."""
    text = re.sub(r'"m=\d+,d_model=\d+"', f'"{CELL_NAMES[0]}"', text).replace(
        "h=[1, 4]", "h=[1, 2]"
    )
    text = re.sub(r"cell=\(\d+, \d+\)", f"cell=({CELL['m']}, {CELL['d_model']})", text)
    return re.sub(rf'"({"|".join(shipped_studies())})"', r'"\1.yaml"', text)
