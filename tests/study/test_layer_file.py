"""The file of a layer as a study names it: what is read of it, unrun, and its identity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rgr_dist.study.errors import StudyError
from rgr_dist.study.layer import Layer
from rgr_dist.study.layer_file import WANTED, read_fields, zoo
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from rgr_dist.study.yaml_document import load_yaml

TEXT = """
raise SystemExit("it is not run")

class Other:
    scores = 3

class MyLayer:
    d_model: int
    h: int
    d_k: int
    groups: int = 2
    scale: float = 1
    kind: str = "plain"
    flag: bool

    def parameters(self): ...
    def scores(self, X, p): ...
"""


def study_of(home: Path, model: Any, **keys: Any) -> Study:
    document = {"name": "x", "model": model, "cells": [{"m": 64, "d_model": 16}], **keys}
    return parse_study(document, "study", home)


def run_of(study: Study) -> Run:
    return Run(cell=study.cells[0], h=2, d_k=3, seed=0)


def test_a_file_is_read_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TEXT)
    study = study_of(tmp_path, {"file": "mine.py", "flag": True, "groups": 4, "scale": "1e0"})
    cell = study.cells[0]
    assert cell.model_name == "my_layer(flag=True, groups=4, kind=plain, scale=1.0)"
    assert cell.record.name == "file"
    assert cell.assets == (cell.layer.digest,)
    assert study.files == {cell.layer.digest: {"file": str(tmp_path / "mine.py")}}
    again = parse_study(load_yaml(study.to_yaml()))
    assert again == study


MODULE = """
class Inner:
    def __init__(self): ...
    def __init__(self, width): ...
    def forward(self, X): ...

class MyModule:
    def __init__(
        self, d_model: int, h: int, d_k: int, power: int, groups: int = 2, *, bias: bool, x: int = 3
    ) -> None: ...
    def forward(self, X): ...
"""


def test_a_module_of_torch_takes_its_keys_after_the_sizes(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    cell = study_of(tmp_path, {"file": "mine.py", "bias": True, "power": 4}).cells[0]
    assert cell.model_name == "my_module(bias=True, groups=2, power=4, x=3)"
    for key, other in (("power", {"bias": True}), ("bias", {"power": 4})):
        with pytest.raises(StudyError, match=rf"model\.{key}: missing"):
            study_of(tmp_path, {"file": "mine.py", **other})


def test_keys_are_in_alphabetical_order() -> None:
    layer = Layer.model_validate(
        {"digest": "0" * 64, "name": "MyLayer2Go", "keys": {"b": 1, "a": True}}
    )
    assert layer.keys == (("a", True), ("b", 1))
    assert layer.shown == "my_layer2_go(a=True, b=1)"


def test_several_layers_are_searched_in_every_cell(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TEXT)
    models = ["softmax", {"file": "mine.py", "flag": True}, {"zoo": "grouped", "groups": 4}]
    study = study_of(
        tmp_path, models, cells=[{"m": [32, 64], "d_model": 16}], training={"max_steps": [500, 900]}
    )
    names = [study.name_of(cell) for cell in study.cells]
    assert len({*names}) == len(names) == 3 * 2 * 2
    assert names[0] == "m=32,d_model=16,model=softmax,max_steps=500"
    assert {cell.training.max_steps for cell in study.cells} == {500, 900}
    again = parse_study(load_yaml(study.to_yaml()))
    assert {*again.cells} == {*study.cells}
    # The training that is not written is that of the first, for all of them.
    (first, *others) = study_of(tmp_path, models).cells
    assert {cell.training for cell in others} == {first.training}
    assert first.training.max_steps == 80_000


def test_the_identity_is_the_text_and_every_key(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/b.py").write_text(TEXT)
    (tmp_path / "c.py").write_text(TEXT + "\n")
    (tmp_path / "marked.py").write_text(TEXT, "utf-8-sig")  # as some editors save it
    named = {"flag": True}
    first = run_of(study_of(tmp_path, {"file": "a.py", **named}))
    same = (
        {"file": "deep/b.py", **named},
        {"file": "marked.py", **named},
        {"file": "a.py", "groups": 2, "scale": 1, "kind": "plain", **named},
    )
    assert {run_of(study_of(tmp_path, one)).run_id for one in same} == {first.run_id}
    others = ({"file": "c.py", **named}, {"file": "a.py", "groups": 3, **named})
    assert len({run_of(study_of(tmp_path, one)).run_id for one in others} | {first.run_id}) == 3
    plain = run_of(study_of(tmp_path, "max"))
    assert plain.run_id == "fdf5c81ea9c1d85afddde39ecb435d53"
    assert plain.cell.problem_json == first.cell.problem_json
    assert Run.model_validate_json(first.model_dump_json()) == first
    assert json.loads(first.config_json)["cell"]["layer"]["digest"] == first.cell.layer.digest


def without(text: str, old: str, new: str = "") -> str:
    assert old in text
    return text.replace(old, new)


TYPES = "give int, float, str, bool"
VALUES = "give a number, text, True or False"
ONE = (
    "one has the methods parameters and scores, or is a torch module whose __init__ takes "
    "d_model, h and d_k"
)
FIRST = "the first fields of MyLayer are not d_model: int, h: int, d_k: int, each without a default"
BESIDE = "from a file beside it, which workers do not have; copy that code into the layer's file"
BAD_FILES = {
    "untyped": (
        MODULE.replace("groups: int", "groups"),
        f"the key groups is of type unknown; {TYPES}",
    ),
    "a call": (MODULE.replace("= 2", "= two()"), f"the default of groups is two(); {VALUES}"),
    "other sizes": (MODULE.replace("d_k: int", "width: int"), f"no class is a layer; {ONE}"),
    "no python": ("class (", "not valid Python: line 1: invalid syntax"),
    "no class": ("x = 1", f"no class is a layer; {ONE}"),
    "two": (
        TEXT + TEXT.replace("MyLayer", "Second"),
        f"several classes are layers: MyLayer, Second; {ONE}",
    ),
    "one of another": (
        f"{TEXT}\nclass Second(MyLayer):\n    pass",
        f"several classes are layers: MyLayer, Second; {ONE}",
    ),
    "no sizes": (without(TEXT, "    h: int\n"), FIRST),
    "another order": (
        without(TEXT, "    h: int\n    d_k: int\n", "    d_k: int\n    h: int\n"),
        FIRST,
    ),
    "a first size with a default": (without(TEXT, "d_model: int", "d_model: int = 4"), FIRST),
    "no literal": (
        without(TEXT, '"plain"', "{[]: 1}"),
        f"the default of kind is {{[]: 1}}; {VALUES}",
    ),
    "a size with a default": (without(TEXT, "d_k: int", "d_k: int = 4"), FIRST),
    "a type": (without(TEXT, "kind: str", "kind: list"), f"the key kind is of type list; {TYPES}"),
    "a default": (without(TEXT, '"plain"', "str(3)"), f"the default of kind is str(3); {VALUES}"),
    "a default of 80 characters": (
        without(TEXT, '"plain"', f"f({'x' * 77})"),
        f"the default of kind is f({'x' * 77}); {VALUES}",
    ),
    "a default of 81 characters": (
        without(TEXT, '"plain"', f"f({'x' * 78})"),
        f"the default of kind is a long expression; {VALUES}",
    ),
    "a long default": (
        without(TEXT, '"plain"', " + ".join(['"a"'] * 500)),
        f"the default of kind is a long expression; {VALUES}",
    ),
    "a long type": (
        without(TEXT, "kind: str", f"kind: {' | '.join(['str'] * 500)}"),
        f"the key kind is of type a long expression; {TYPES}",
    ),
    "a wrong default": (
        without(TEXT, "int = 2", "int = 2.5"),
        "groups: 2.5 is not valid; give one of type int (input should be a valid integer)",
    ),
    **{
        f"our name {name}": (
            without(TEXT, "kind: str", f"{name}: str"),
            f"the key {name} has the name of one of ours; give another",
        )
        for name in ("file", "zoo", "scores", "parameters", "loss", "cached")
    },
    "not UTF-8": (b"\xff\xfe", "not a text file in UTF-8"),
    "a neighbour": (TEXT + "import os, beside.part\n", f"it imports beside.part {BESIDE}"),
    "a neighbour's part": (TEXT + "from beside import x\n", f"it imports beside {BESIDE}"),
    "a folder beside it": (
        TEXT + "from folder.deep import x\n",
        f"it imports folder.deep {BESIDE}",
    ),
    "in a function": (TEXT + "def f():\n    import beside\n", f"it imports beside {BESIDE}"),
    "a zero": (TEXT + "\0", "not valid Python: source code string cannot contain null bytes"),
    "relative": (TEXT + "from . import beside\n", f"it imports . {BESIDE}"),
}


@pytest.mark.parametrize(("text", "said"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_file_that_is_no_layer_is_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/__init__.py").write_text("")
    (tmp_path / "mine.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(StudyError) as caught:
        study_of(tmp_path, {"file": "mine.py", "flag": True})
    place = "" if isinstance(text, bytes) else "model.file: "
    assert str(caught.value) == f"study: {place}{tmp_path / 'mine.py'}: {said}; {WANTED}"


A_NUMBER, AT_MOST = "input should be a valid number", "string should have at most 100 characters"
TOO_LARGE = f"input should be less than {2**63}"
BOOL = "give one of type bool (input should be a valid boolean)"
BAD_KEYS: tuple[tuple[Any, str], ...] = (
    (
        {"flag": True, "grups": 2},
        (
            "model.grups: unknown key of MyLayer; did you mean 'groups'? valid: "
            "groups, scale, kind, flag"
        ),
    ),
    ({}, "model.flag: missing; it has no default"),
    (
        {"flag": 1},
        f"model.flag: 1 is not valid; {BOOL}",
    ),
    (
        {"flag": True, "groups": True},
        "model.groups: True is not valid; give one of type int (input should be a valid integer)",
    ),
    (
        {"flag": True, "groups": 2**63},
        f"model.groups: {2**63} is not valid; give one of type int ({TOO_LARGE})",
    ),
    (
        {"flag": True, "scale": 10**400},
        f"model.scale: 1{'0' * 56}… is not valid; give one of type float ({A_NUMBER})",
    ),
    ({"flag": "x" * 58}, f"model.flag: '{'x' * 58}' is not valid; {BOOL}"),
    ({"flag": "x" * 59}, f"model.flag: '{'x' * 56}… is not valid; {BOOL}"),
    (
        {"flag": True, "kind": "x" * 101},
        f"model.kind: '{'x' * 56}… is not valid; give one of type str ({AT_MOST})",
    ),
    (
        {"flag": True, "kind": "a\nb"},
        "model.kind: 'a\\nb' is not valid; give text that can be printed",
    ),
    ({"flag": True, "zoo": "max"}, "model: both file and zoo; give one"),
)


@pytest.mark.parametrize(("keys", "said"), BAD_KEYS)
def test_a_key_that_is_not_the_layers_is_refused(
    tmp_path: Path, keys: dict[str, Any], said: str
) -> None:
    (tmp_path / "mine.py").write_text(TEXT)
    with pytest.raises(StudyError) as caught:
        study_of(tmp_path, {"file": "mine.py", **keys})
    assert str(caught.value) == f"study: {said}"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("none.py", f"cannot be read: No such file or directory; {WANTED}"),
        ({"zoo": "groupd"}, "'groupd' is not known; did you mean 'grouped'? valid: cosine"),
        ({"zoo": 3}, "model.zoo: 3 is not valid; give a name"),
        ({"zoo": "xyz"}, f"model.zoo: 'xyz' is not known; valid: {', '.join(zoo())}"),
        ({"zoo": "tied", "a": 3}, "model.a: unknown key of Tied; it has no keys of its own"),
        ({"file": None}, "model.file: None is not valid; give a name"),
        ({"file": ""}, "model.file: '' is not valid; give a name"),
    ],
)
def test_a_wrong_name_says_what_is_valid(tmp_path: Path, model: Any, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        study_of(tmp_path, model)
    assert said in str(caught.value)


def test_keys_that_a_layer_does_not_use_are_refused(tmp_path: Path) -> None:
    for training in ({"batch_size": 4}, {"initial": "variance"}):
        with pytest.raises(StudyError, match="model file does not use it"):
            study_of(tmp_path, {"zoo": "max"}, training=training)


def test_the_zoo_says_what_each_layer_is() -> None:
    assert len(zoo()) == 13
    for name in zoo():
        fields = read_fields(Path(f"rgr_dist/models/zoo/{name}.py").read_text())
        assert set(fields.kinds) == set(fields.defaults)
