"""What is refused, as data: one line that names the key or the place, and shows a valid value."""

from __future__ import annotations

import io
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.cli import call
from rgr_dist.study.edges import read_edges, read_triples
from rgr_dist.study.errors import StudyError
from rgr_dist.study.study_file import load_study, parse_study
from rgr_dist.study.vectors import read_vectors
from rgr_dist.study.yaml_document import load_yaml, plain
from tests.golden import golden
from tests.study import test_edges, test_vectors

FILES = [  # bad files of each kind, and what reads them
    *((case, one[0], read_edges) for case, one in test_edges.REFUSED.items()),
    *((case, one[0], read_triples) for case, one in test_edges.TRIPLES_REFUSED.items()),
    *((case, one[0], read_vectors) for case, one in test_vectors.REFUSED.items()),
]
REFUSALS = yaml.safe_load((Path(__file__).parents[1] / "data/refusals.yaml").read_text())
VALID: dict[str, Any] = {"name": "x", "cells": [{"m": 64, "d_model": 16}]}


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: str(case["names"]))
def test_one_line_names_the_key_and_shows_a_valid_value(case: dict[str, Any]) -> None:
    said = refusal(case)
    assert str(case["names"]) in said
    assert case["shows"] in said


def refusal(case: dict[str, Any]) -> str:
    """The one line that refuses it; nothing is printed beside it, nor written."""
    out, said = io.StringIO(), io.StringIO()
    with TemporaryDirectory() as folder, chdir(folder), redirect_stdout(out), redirect_stderr(said):
        text = case.get("text", yaml.safe_dump({**VALID, **case.get("study", {})}))
        Path("x.yaml").write_text(text)
        assert call(case.get("call", ["plan", "x.yaml"])) == 2
        assert [*Path().iterdir()] == [Path("x.yaml")]
    assert not out.getvalue()
    (line,) = said.getvalue().splitlines()
    return line.replace(folder, "")


def refusals() -> list[str]:
    """What is said of every case, and of bad files."""
    said = [*map(refusal, REFUSALS)]
    for name, written, read in FILES:
        with TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_text(written) if isinstance(written, str) else written(path)
            try:
                read(path)
            except Exception as error:
                said.append(f"{name}: {error}".replace(folder, "").splitlines()[0])
    return said


def test_refusals_are_as_somebody_has_read_them() -> None:
    assert refusals() == golden("refusals")


@settings(max_examples=200, deadline=None)
@given(st.text() | st.text("[]{}:,-&*!|>'\"#%@` \nab1", max_size=40))
def test_any_text_is_a_value_or_a_study_error(text: str) -> None:
    try:
        value = load_yaml(text)
    except StudyError:
        return
    if isinstance(value, dict):
        with pytest.raises(StudyError):
            parse_study(value)


WORDS = st.text(max_size=5) | st.sampled_from(["family", "m", "file", "zoo"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
KEYS = ["model", "graph", "embedding", "context", "training", "cells", "search"]


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3))
def test_any_values_of_the_keys_are_a_study_or_a_study_error(keys: dict[str, Any]) -> None:
    try:
        parse_study({**VALID, **keys})
    except StudyError as error:
        said = str(error)
    else:
        said = ""
    assert said == "" or said.isprintable()


@pytest.mark.parametrize("value", [object(), {1, 2}, {(1, 2): 3}, b"max", "x" * 99])
def test_no_value_of_python_that_is_no_model_gets_through(value: Any) -> None:
    for model in (value, {"zoo": "grouped", "groups": value}):
        with pytest.raises(StudyError, match="model") as error:
            parse_study({**VALID, "model": model})
        assert len(str(error.value)) < 400


def test_what_yaml_and_python_write_alike_is_read_alike(tmp_path: Path) -> None:
    import numpy as np

    text = """
    name: x
    cells: &sizes
      - {m: [64, 128], d_model: 16}
    training: {learning_rate: 1e-3, max_steps: 20_000}
    search: {heads: [1, 2], keep_within: null}
    """
    (tmp_path / "x.yaml").write_text(text)
    of_file = load_study(str(tmp_path / "x.yaml"))
    keys = {
        "name": "x",
        "cells": ({"m": np.array([64, 128]), "d_model": np.int64(16)},),
        "training": {"learning_rate": np.float64(1e-3)},
        "search": {"heads": range(1, 3), "keep_within": None},
    }
    assert parse_study(keys) == of_file
    assert plain({"a": (Path("b"), np.arange(2))}) == {"a": ["b", [0, 1]]}


def test_set_holds_in_every_cell_and_makes_keys_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    cell = {"m": 64, "d_model": 16, "training": {"max_steps": 30_000}}
    path.write_text(yaml.safe_dump({**VALID, "cells": [cell]}))
    study = load_study(str(path), ["training.max_steps=500", "search.seeds=3", "name=y"])
    assert study.cells[0].training.max_steps == 500
    with pytest.raises(StudyError, match=r"file: .*a=b"):
        load_study(str(path), ["graph={family: edges, file: a=b.csv}"])
    assert (study.search.seeds, study.name) == (3, "y")
