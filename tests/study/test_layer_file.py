"""A layer's file: which class, which keys, what of its text is its identity."""

from __future__ import annotations

import inspect
import tokenize
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.study import assets
from rgr_dist.study.errors import StudyError
from rgr_dist.study.layer import Layer
from rgr_dist.study.layer_file import class_of, code_of, load_layer, zoo
from rgr_dist.study.study_file import parse_study

LAYER = '''
"""A layer."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mine:
    """Its class."""

    d_model: int
    h: int
    d_k: int
    groups: int = 2  # how many
    rate: float = 0.5
    kind: str = "a  b"
    causal: bool = False

    def parameters(self):
        """Its parameters."""
        return {"W": ((self.d_model, self.d_k), 1.0)}

    def scores(self, X, p):
        return X @ p["W"] @ p["W"].T @ X.T
'''
MODULE = """
import torch

class Other(torch.nn.Linear):
    pass

class Mine(torch.nn.Module):
    def __init__(self, d_model, h, d_k, *, bias=True, groups=2):
        super().__init__()

    def forward(self, X):
        return X
"""


def layer(folder: Path, text: str, **keys: Any) -> Layer:
    (folder / "mine.py").write_text(text, "utf-8")
    return load_layer({"file": "mine.py", **keys}, folder)[0]


def test_a_layer_has_every_key_with_its_default_or_as_written(tmp_path: Path) -> None:
    found = layer(tmp_path, LAYER, rate=2, causal=True)
    assert found.name == "Mine"
    right = {"causal": True, "groups": 2, "kind": "a  b", "rate": 2.0}
    assert dict(found.keys) == right
    assert type(dict(found.keys)["rate"]) is float
    assert assets.get(found.digest).tobytes().decode() == LAYER, "workers run the text"
    other = layer(tmp_path, MODULE, bias=False)
    assert dict(other.keys) == {"bias": False, "groups": 2}
    assert other.shown == "mine(bias=False, groups=2)"
    bare = layer(tmp_path, MODULE.replace(", *, bias=True, groups=2", "").replace("Mine", "MyOwn"))
    assert bare.shown == "my_own"


def test_a_default_has_the_type_that_its_key_is_said_to_have(tmp_path: Path) -> None:
    text = LAYER.replace("rate: float = 0.5", "rate: float = 2")
    for written in (text, "from __future__ import annotations\n" + text[text.index("from ") :]):
        rate = dict(layer(tmp_path, written).keys)["rate"]
        assert (rate, type(rate)) == (2, float)
        with pytest.raises(StudyError, match=r"'fast' .*float$"):
            layer(tmp_path, written, rate="fast")


def test_a_layer_is_named_by_its_whole_path_or_by_its_name_in_the_zoo(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(LAYER)
    assert load_layer({"file": "mine.py"}, tmp_path)[1] == {"file": str(tmp_path / "mine.py")}
    assert load_layer({"zoo": "grouped"}, tmp_path)[1] == {"zoo": "grouped"}
    for wrong, said in (("", "''"), (3, "3")):
        for key in ("file", "zoo"):
            with pytest.raises(StudyError, match=f"^model.{key}: {said} "):
                load_layer({key: wrong}, tmp_path)


SAME = {
    "a comment": LAYER + "# the end\n",
    "a docstring": LAYER.replace("A layer.", "Another.\n\nAt length."),
    "no docstring": LAYER.replace('    """Its class."""\n', ""),
    "blank lines": LAYER.replace("\n\n", "\n\n\n\n"),
    "spaces": LAYER.replace('{"W": ((self', '{ "W":  (  (self').replace("    ", "  "),
    "a mark of UTF-8": "\ufeff" + LAYER,
    "line ends": LAYER.replace("\n", "\r\n"),
    "a comment within": LAYER.replace("  # how many", "  # why"),
}
OTHER = {
    "a default": LAYER.replace("= 2", "= 3"),
    "a text": LAYER.replace('"a  b"', '"a b"'),
    "an operation": LAYER.replace("X @ p", "X + p"),
    "a name": LAYER.replace("Mine", "Ours"),
    "a block": LAYER.replace("\n    def scores", "\n    if True:\n      pass\n    def scores"),
}


def test_only_code_is_the_identity_of_a_layer(tmp_path: Path) -> None:
    first = layer(tmp_path, LAYER)
    for name, text in SAME.items():
        assert layer(tmp_path, text) == first, name
    assert len({layer(tmp_path, text).digest for text in [LAYER, *OTHER.values()]}) == 6


@given(st.lists(st.sampled_from(["a", "b1", "=", "+", "1", "'x'", "(", ")"]), max_size=6))
@settings(max_examples=50, deadline=None)
def test_code_with_other_tokens_has_another_identity(words: list[str]) -> None:
    try:
        code = code_of(" ".join(words) + "\n")
    except (SyntaxError, tokenize.TokenError):
        return
    assert code_of(code + "\n") == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import os\n", "import os\n"),
        ("x  =  1 # one\nfor a in x: b(a, 2)\n", "x=1\nfor a in x:b(a,2)\n"),
        ("def f(a):\n    return a\n\n\nx = f('a b')\n", "def f(a):\n{return a\n}x=f('a b')\n"),
        ("def f():\n    'Why.'\n    return 'a'\n", "def f():\n{return'a'\n}"),
        ("'Why.'\nx = 1\n'a'.join(y)\n'unused'\n", "x=1\n'a'.join(y)\n"),
    ],
)
def test_a_layer_keeps_its_identity(text: str, code: str) -> None:
    assert code_of(text) == code


def test_the_source_of_a_layers_methods_can_be_had_as_torch_wants_it() -> None:
    assert inspect.getsource(class_of(LAYER).scores) == LAYER[LAYER.index("    def scores") :]


def test_other_classes_beside_a_layer_are_none(tmp_path: Path) -> None:
    sizes = "d_model: int\n    h: int\n    d_k: int\n"
    helper = f"@dataclass\nclass Sizes:\n    {sizes}\n"
    assert (
        layer(tmp_path, LAYER + f"\n\nfrom dataclasses import dataclass\n{helper}").name == "Mine"
    )


REFUSED = {
    "x = 3\n": "no class is a layer",
    "def f(:\n": "SyntaxError",
    "import nowhere_at_all\n": "nowhere_at_all",
    LAYER + LAYER.replace("Mine", "Ours"): "Mine, Ours",
    LAYER.replace("    d_k: int\n", ""): "d_model, h and d_k",
    LAYER.replace("def scores", "def score"): "no class is a layer",
    LAYER.replace("groups: int = 2", "groups: tuple = (2,)"): "bool, int, float, str",
    LAYER.replace("groups: int = 2", "groups: int = None"): "model.groups: null",
}


@pytest.mark.parametrize("text", REFUSED, ids=list(REFUSED.values()))
def test_a_file_that_is_no_layer_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError) as error:
        layer(tmp_path, text)
    assert REFUSED[text] in str(error.value)
    assert "model." in str(error.value)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"group": 3}, "model.group: .*'groups'"),
        ({"groups": 2.5}, "model.groups: 2.5 .*int$"),
        ({"groups": True}, "model.groups: true .*int$"),
        ({"causal": 1}, "model.causal: 1 .*bool$"),
        ({"rate": "0.5"}, "model.rate: '0.5' .*float$"),
    ],
)
def test_a_key_of_another_name_or_type_is_refused(
    keys: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(StudyError, match=said):
        layer(tmp_path, LAYER, **keys)


def test_a_key_without_a_default_must_be_given(tmp_path: Path) -> None:
    text = LAYER.replace("d_k: int\n", "d_k: int\n    width: int\n")
    with pytest.raises(StudyError, match=r"model\.width: missing"):
        layer(tmp_path, text)
    assert dict(layer(tmp_path, text, width=3).keys)["width"] == 3


@pytest.mark.parametrize("name", zoo())
def test_every_layer_of_the_zoo_makes_cells(name: str) -> None:
    study = parse_study({"name": "x", "model": {"zoo": name}, "cells": [{"m": 64, "d_model": 16}]})
    (cell,) = study.cells
    assert cell.model_name.partition("(")[0].replace("_", "") == name.replace("_", "")
    if name in ("max", "softmax"):
        assert cell.layer is None, "it is the paper's model, at its address"
