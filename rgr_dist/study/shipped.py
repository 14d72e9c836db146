"""What the head of a shipped study's file says of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rgr_dist.study.document import shipped_text
from rgr_dist.study.from_yaml import load_study


@dataclass(frozen=True)
class Shipped:
    """What a shipped study is about, from the comment at the head of its file.

    Attributes:
        question: its first sentence.
        paper: where the paper has it, such as ``Figs. 2 and 3``; or what of ours it is.
        cells: how many.
        cost: what it takes on two cores from an empty store.
    """

    name: str
    question: str
    paper: str
    cells: int
    cost: str


def about(name: str) -> Shipped:
    """What the head of a shipped study's file says of it.

    Raises:
        ValueError: the head lacks a part.
    """
    text = shipped_text(name)
    head = " ".join(line.lstrip("#").strip() for line in text.partition("\nname:")[0].splitlines())
    parts = re.fullmatch(r"(.*?[.?])(?: .*?)? Paper: (.*) On two cores: (.*)\.", head)
    if parts is None:
        raise ValueError(f"{name}: its head lacks a question, 'Paper: ….' or 'On two cores: ….'")
    question, paper, cost = parts.groups()
    # A token table is a file, which may not be there; any vectors make as many cells.
    overrides = ["embedding={}"] if "family: table" in text else []
    cells = load_study(name, overrides).cells
    return Shipped(name, question, paper.rstrip("."), len(cells), cost)
