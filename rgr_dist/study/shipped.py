"""The studies that come with the package, and what the head of each file says of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml


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


def shipped_studies() -> list[str]:
    """Their names."""
    folder = resources.files("rgr_dist") / "studies"
    return sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".yaml"))


def shipped_text(name: str) -> str:
    """The file of a shipped study."""
    return (resources.files("rgr_dist") / "studies" / f"{name}.yaml").read_text(encoding="utf-8")


def about(name: str) -> Shipped:
    """What the head of a shipped study's file says of it.

    Raises:
        ValueError: the head lacks a part.
    """
    head = shipped_text(name).partition("\nname:")[0]
    text = " ".join(line.lstrip("#").strip() for line in head.splitlines())
    parts = re.fullmatch(r"(.*?[.?])(?: .*?)? Paper: (.*) On two cores: (.*)\.", text)
    if parts is None:
        raise ValueError(f"{name}: its head lacks a question, 'Paper: ….' or 'On two cores: ….'")
    question, paper, cost = parts.groups()
    return Shipped(name, question, paper.rstrip("."), _count_cells(shipped_text(name)), cost)


def _count_cells(text: str) -> int:
    """How many cells a study has, without loading the files that it names."""
    study = yaml.safe_load(text)
    count = 0
    for item in study["cells"]:
        if study.get("model") == "facts":
            count += _count_databases(study, item)
            continue
        of_graph = {**study.get("graph", {}), **item.get("graph", {})}
        of_training = {**study.get("training", {}), **item.get("training", {})}
        listed = (item["m"], item["d_model"], of_graph.get("degree"), of_training.get("max_steps"))
        count += _product(listed)
    return count


def _count_databases(study: Mapping[str, Any], item: Mapping[str, Any]) -> int:
    """The cells of one entry of a study of facts; another family takes none of the common keys."""
    own, common = item.get("database", {}), study.get("database", {})
    same = own.get("family", common.get("family")) == common.get("family")
    database = {**common, **own} if same else own
    of_facts = {**study.get("facts", {}), **item.get("facts", {})}
    of_training = {**study.get("training", {}), **item.get("training", {})}
    listed = [item["d_model"], of_training.get("max_steps"), *database.values()]
    return _product([*listed, *of_facts.values()])


def _product(listed: Iterable[Any]) -> int:
    return math.prod(len(values) if isinstance(values, list) else 1 for values in listed)
