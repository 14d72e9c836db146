"""Reads what the comment at the head of a shipped study's file says about the study."""

from __future__ import annotations

import re
from typing import Any

from rgr_dist.study.study_file import load_study
from rgr_dist.study.yaml_document import read_document, shipped_text


def about(name: str) -> dict[str, Any]:
    """What the comment at the head of a shipped study's file says: a row of ``rgr studies``.

    Returns:
        ``study``, its name; ``question``, its first sentence; ``paper``, where the paper has it,
        such as ``Figs. 2 and 3``, or which addition of ours it is; ``cells``, their number; ``on
        two cores``, what it takes on them from an empty store.

    Raises:
        ValueError: the head lacks a part.
    """
    text = shipped_text(name)
    head = " ".join(line.lstrip("#").strip() for line in text.partition("\nname:")[0].splitlines())
    parts = re.fullmatch(r"(.*?[.?])(?: .*?)? Paper: (.*) On two cores: (.*)\.", head)
    if parts is None:
        raise ValueError(f"{name}: its head lacks a question, 'Paper: ….' or 'On two cores: ….'")
    question, paper, cost = parts.groups()
    # A file of vectors that does not ship may be missing; with any other there are as many cells.
    is_missing = "family: vectors" in text and "file: data/" not in text
    overrides = ["embedding={}"] if is_missing else []
    models = read_document(name).get("model")
    layers = models if "{zoo: " in text and isinstance(models, list) else [models]
    if len(layers) > 1:
        overrides.append("model=max")  # to run no file, which takes torch
    cells = load_study(name, overrides).cells * len(layers)
    return {
        "study": name,
        "question": question,
        "paper": paper.rstrip("."),
        "cells": len(cells),
        "on two cores": cost,
    }
