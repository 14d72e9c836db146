"""Head counts that a model cannot have are refused with those that it can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgr_dist.study.errors import StudyError
from rgr_dist.study.study_file import parse_study


def parse(model: Any, heads: list[int], **parts: Any) -> None:
    document = {"name": "x", "model": model, "cells": [{"m": 64, "d_model": 12}]}
    parse_study({**document, "search": {"heads": heads}, **parts})


def test_one_head_is_decided_of_one_head() -> None:
    parse({"construction": "one-head"}, [1, 2])
    with pytest.raises(StudyError, match=r"heads: .*\[1\]"):
        parse({"construction": "one-head"}, [2])


def test_algorithm_5_needs_a_head_for_each_edge_that_leaves_or_enters_an_item(
    tmp_path: Path,
) -> None:
    regular = {"family": "regular", "degree": 3}
    parse({"construction": 5}, [3, 4], graph=regular)
    with pytest.raises(StudyError, match=r"heads: .*3"):
        parse({"construction": 5}, [2, 4], graph=regular)
    (tmp_path / "e.csv").write_text("source,target\na,d\nb,d\nc,d\na,b\nb,c\n")
    graph = {"family": "edges", "file": str(tmp_path / "e.csv")}
    parse({"construction": 5}, [3], graph=graph)
    with pytest.raises(StudyError, match=r"heads: .*3"):
        parse({"construction": 5}, [2], graph=graph)


def test_constructions_are_listed_after_what_is_trained() -> None:
    made = {"construction": "ours"}
    parse(["max", made], [1])
    parse([made, {"construction": "one-head"}], [1])
    with pytest.raises(StudyError, match=r"^study: model: "):
        parse([made, "max"], [1])
    with pytest.raises(StudyError, match=r"^study: model: "):
        parse([made, "max", made], [1])
    with pytest.raises(StudyError, match=r"^study: model: "):
        parse([], [1])


def test_what_is_wrong_with_one_of_several_models_is_said_at_its_place() -> None:
    for model, said in (
        ({"construction": "ours", "iterations": -1}, r"model\[1\]\.iterations: "),
        ({"fil": "mine.py"}, r"model\[1\]: .*'file'"),
        ("maxx", r"model\[1\]: .*'max'"),
        ("value", r"model\[1\]: value"),
    ):
        with pytest.raises(StudyError, match=f"^study: {said}"):
            parse(["max", model], [1])


def test_heads_of_a_transformer_divide_d_model() -> None:
    parse("transformer", [1, 2, 4])
    with pytest.raises(StudyError, match=r"heads: .*12"):
        parse("transformer", [1, 8])


def test_a_run_ends_at_a_check() -> None:
    parse("max", [1], training={"max_steps": 1000, "check_every": 500})
    with pytest.raises(StudyError, match=r"max_steps: 1000 .*600"):
        parse("max", [1], training={"max_steps": 1000, "check_every": 600})


@pytest.mark.parametrize(("model", "m", "largest"), [("max", 9, 9), ("transformer", 9, 4)])
def test_a_context_that_is_too_long_is_refused_with_the_longest(
    model: str, m: int, largest: int
) -> None:
    cells = [{"m": m, "d_model": 12}]
    parse(model, [1], cells=cells, context={"length": largest})
    with pytest.raises(StudyError, match=rf"2 to {largest}$"):
        parse(model, [1], cells=cells, context={"length": largest + 1})


def test_a_context_needs_as_many_items() -> None:
    cells = [{"m": 15, "d_model": 12}]
    parse("max", [1], cells=cells, context={"length": 15})
    with pytest.raises(StudyError, match="length"):
        parse("max", [1], cells=cells, context={"length": 16})
    parse("transformer", [1], cells=cells, context={"length": 7})
    with pytest.raises(StudyError, match="length"):
        parse("transformer", [1], cells=cells, context={"length": 8})
