"""Studies as written: what is read of a file and of ``--set``, and what is refused in one line."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.faults import LONGEST_MESSAGE
from rgr_dist.study.errors import StudyError
from rgr_dist.study.study_file import load_study
from rgr_dist.study.yaml_document import (
    is_known,
    load_yaml,
    plain,
    read_document,
    shipped_studies,
    shipped_text,
    yaml_of,
)

INF = math.inf


def one_line(error: pytest.ExceptionInfo[StudyError]) -> str:
    message = str(error.value)
    assert message.isprintable(), "one line, without control characters"
    return message


NOT_READ = "is not read here; leave it out"
NO_DECIMAL = (
    "is not read here; give a decimal number of at most 100 digits, true, false or null, or text "
    "in quotes"
)
BAD_FILES = [
    (b"# soon\n", "it holds no key; rgr init NAME writes a study to begin with"),
    (b"", "it holds no key; rgr init NAME writes a study to begin with"),
    (b"name: x\ncells: [\n", "not valid YAML: line 3: did not find expected node content"),
    (b"- 1\n- 2", "a study is a mapping with the keys name, cells, search, …"),
    (b"name: \xff\xfe\x00", "not a text file in UTF-8; give a readable YAML file"),
    (
        b"name: x\x00",
        (
            "not valid YAML: unacceptable character #x0000: control characters are not allowed in "
            '"<unicode string>", position 7'
        ),
    ),
    (
        b"x: [\n1,\n!!python/object:os.system x]",
        f"line 3: the tag !!python/object:os.system {NOT_READ}",
    ),
    (b"x: !!binary a", f"line 1: the tag !!binary {NOT_READ}"),
    (b"! x: 1", f"line 1: the tag ! {NOT_READ}"),
    (b"? {a: b}\n: 3", "line 1: a key is no text; quote it"),
    (b"x:\n  1: 2", "line 2: a key is no text; quote it"),
    (b"name: x\nsearch: {}\nsearch: {}", "the mapping at line 1 has 'search' twice; write it once"),
    (b"a: 1\n--- \na: 1", "it holds several documents; give one"),
    (b"cells: " + b"[" * 3000 + b"]" * 3000, "nested too deeply, more than 50 times"),
    (b"cells: " + b"[" * 50 + b"]" * 50, "nested too deeply, more than 50 times"),
    (b"a: &a [1]", f"line 1: the anchor a {NOT_READ}"),
    (b"a: [\n*a]", f"line 2: the anchor a {NOT_READ}"),
    (b"m: " + b"1" * 101, f"line 1: '{'1' * 40}' {NO_DECIMAL}"),
    (
        b"{" + b"".join(b"k%d: 1, " % i for i in range(60_000)) + b"}",
        "it holds more than 100,000 values",
    ),
    (
        b"#" * 2**20 + b"#",
        (
            "cannot be read: larger than 1 MiB; RGR_LARGEST_FILE sets another limit; give a "
            "readable YAML file"
        ),
    ),
]
ODD = "yes no on off 2026-02-31 2026-11-24T10:00:00Z 1:30 1:30.5 017 0x1f 0b1 1_000 .inf .nan << ="
BAD_FILES += [(f"x: {odd}".encode(), f"line 1: '{odd}' {NO_DECIMAL}") for odd in ODD.split()]
BAD_FILES += [(f"{odd}: 1".encode(), f"line 1: '{odd}' {NO_DECIMAL}") for odd in ODD.split()]


@pytest.mark.parametrize(("content", "said"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_files_that_hold_no_study_are_refused_in_one_line(
    content: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(content)
    with pytest.raises(StudyError) as error:
        load_study(str(path))
    assert one_line(error) == f"{path}: {said}"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)
"""What JSON can say."""


@given(JSON)
def test_what_json_can_say_comes_back_from_yaml_as_it_went(value: Any) -> None:
    """What is written of a study is read again, and by either of PyYAML's parsers."""
    assert load_yaml(yaml.safe_dump(value)) == value
    assert load_yaml("[" * 50 + "]" * 50)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(yaml, "CSafeLoader", raising=False)
        assert load_yaml(yaml.safe_dump(value)) == value


@pytest.mark.parametrize("study", shipped_studies())
def test_a_shipped_study_says_the_same_as_in_any_yaml(study: str) -> None:
    text = shipped_text(study)
    assert load_yaml(text) == yaml.safe_load(text)


def test_paths_that_cannot_be_read_are_refused_before_anything_waits(tmp_path: Path) -> None:
    loop, pipe = tmp_path / "loop.yaml", tmp_path / "pipe.yaml"
    loop.symlink_to(loop)
    os.mkfifo(pipe)
    for path, fault in {
        tmp_path: "Is a directory",
        tmp_path / "missing.yaml": "No such file",
        loop: "",
        tmp_path / ("x" * 300 + ".yaml"): "File name too long",
        pipe: "a pipe or a device",
        Path("/dev/zero"): "a pipe or a device",
    }.items():
        with pytest.raises(StudyError) as error:
            load_study(str(path))
        assert one_line(error).startswith(f"{path}: cannot be read: {fault}")
        assert "give a readable YAML file" in str(error.value)


@pytest.mark.parametrize(
    ("name", "hint"), [("quickstrt", "'quickstart'"), ("zzz", ""), ("x" * 5000, "")]
)
def test_an_unknown_study_is_named_beside_the_valid_ones(name: str, hint: str) -> None:
    with pytest.raises(StudyError, match="unknown") as error:
        load_study(name)
    message = one_line(error)
    valid = f"valid: {', '.join(shipped_studies())}, or a YAML file's path"
    told = f"did you mean {hint}? {valid}" if hint else valid
    if len(name) > LONGEST_MESSAGE:
        assert message.endswith(f"{name[-90:]}': unknown; {told}")
    else:
        assert message == f"study '{name}': unknown; {told}"


@pytest.mark.parametrize("name", ["", " \n"])
def test_a_study_without_a_name_is_told(name: str) -> None:
    with pytest.raises(StudyError, match="no name; give a shipped study, or a YAML file's path"):
        load_study(name)


def test_overrides_are_read_as_yaml_and_the_last_wins() -> None:
    overrides = ["training.patience=3", "search.heads=[1, 4]", "training.patience=2", "model=max"]
    study = load_study("quickstart", overrides)
    assert study.search.heads == (1, 4)
    assert {cell.training.patience for cell in study.cells} == {2}
    assert load_study("quickstart", ["training.learning_rate=1e-4"]).cells[0].training == (
        study.cells[0].training.model_copy(update={"patience": 5, "learning_rate": 1e-4})
    )
    with pytest.raises(StudyError, match="cells: 3 is not valid"):
        load_study("quickstart", ["cells=3", "training.patience=3"])


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("training.max_steps", ["--set training.max_steps: not of the form key.subkey=value"]),
        ("=3", ["--set =3: not of the form key.subkey=value"]),
        ("name.x=3", ["--set name.x=3: 'name' has no keys below it"]),
        ("cells.m=3", ["--set cells.m=3: 'cells' has no keys below it"]),
        ("search.heads=[1,", ["--set search.heads=[1,", "YAML"]),
        ("search.seeds=" + "1" * 5000, ["give a decimal number of at most 100 digits"]),
        ("search.seeds=1:30", ["'1:30' is not read here"]),
        ("training={max_steps: 10, max_steps: 20}", ["has 'max_steps' twice"]),
        ("model" + ".x" * 5000 + "=1", ["key.subkey=value"]),
        ("search.target=2", ["search.target: 2"]),
    ],
)
def test_bad_overrides_are_refused_in_one_line(override: str, parts: list[str]) -> None:
    with pytest.raises(StudyError) as error:
        load_study("quickstart", [override])
    message = one_line(error)
    for part in parts:
        assert part in message


@pytest.mark.parametrize("override", ["search.\udcff=5", "name=\udcff"])
def test_an_override_that_is_no_text_is_refused(override: str) -> None:
    with pytest.raises(StudyError, match=r"^--set [^ ]+: not (valid YAML: 'utf-8'|of the form)"):
        load_study("quickstart", [override])


def test_values_of_python_are_as_yaml_would_give_them() -> None:
    value = {
        "path": Path("a/b"),
        "array": np.array([[1, 2]]),
        "number": np.float64(0.5),
        "kept": ("text", None, True, range(2), {1: (2,)}),
    }
    kept = ["text", None, True, [0, 1], {1: [2]}]
    assert plain(value) == {"path": "a/b", "array": [[1, 2]], "number": 0.5, "kept": kept}
    for deep, told in ((0, ((1,),)), (1, [(1,)]), (2, [[1]])):
        assert plain(((1,),), deep) == told
    assert plain({"a": {"b": (1,)}}, 2) == {"a": {"b": (1,)}}
    beyond = 10**5000  # Python refuses to print it
    assert plain({"a": [beyond, -beyond], beyond: 2**70}) == {"a": [INF, -INF], INF: 2**70}


@pytest.mark.parametrize("mark", ["", "'", '"'])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("12", 12), ("-0.5", -0.5), ("1.5e+3", 1500.0), (".5", 0.5), ("1" * 100, int("1" * 100))],
        *[("true", True), ("False", False), ("null", None), ("~", None), ("1e-3", 0.001)],
        *[("-2E3", -2000.0), (".5e1", 5.0), ("1e+400", INF), ("e3", "e3"), ("1e3x", "1e3x")],
    ],
)
def test_only_a_scalar_without_quotes_is_no_text(mark: str, text: str, value: Any) -> None:
    read = load_yaml(f"- {mark}{text}{mark}")
    assert read == [text if mark else value]
    assert type(read[0]) is (str if mark else type(value))


NUMERIC = r"[-+]?[0-9]{0,2}\.?[0-9]{0,2}[eE]?[-+]?[0-9]{0,3}"


@given(st.from_regex(NUMERIC, fullmatch=True) | st.text())
def test_text_that_looks_like_a_number_is_written_so_that_it_stays_text(text: str) -> None:
    assert load_yaml(yaml_of({"a": [text], "b": text})) == {"a": [text], "b": text}


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**99), 10**99))
def test_a_number_is_read_as_it_was_written(number: float) -> None:
    assert load_yaml(yaml_of({"a": number})) == {"a": number}
    assert load_yaml(f"[{number!r}]") == [number]


def test_values_are_counted_and_so_are_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgr_dist.study.yaml_document.MOST_VALUES", 7)
    assert load_yaml("{a: [1, 2], b: 3}") == {"a": [1, 2], "b": 3}
    with pytest.raises(StudyError, match=r"^it holds more than 7 values$"):
        load_yaml("{a: [1, 2, 3], b: 3}")
    assert load_yaml("[[], [[]], []]") == [[], [[]], []]
    assert load_yaml("") is None


def test_what_is_known_is_shipped_or_a_file_or_looks_like_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text("")
    for source in ("quickstart", "mine", "a.yaml", "a.yml", "a/b", "../a"):
        assert is_known(source)
    for source in ("quickstrt", "a.txt", "a"):
        assert not is_known(source)


def test_an_override_takes_the_place_of_what_cells_have_of_their_own(tmp_path: Path) -> None:
    own = {"training": {"patience": 2, "max_steps": 9}, "graph": {"family": "regular", "degree": 3}}
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump({"name": "x", "cells": [{"m": 64, "d_model": 8, **own}]}))
    for override, changed in (
        ("training.patience=7", {"training": {"max_steps": 9}}),
        (" training.patience =7", {"training": {"max_steps": 9}}),
        ("training={}", {"graph": own["graph"]}),
        ("graph.degree=2", {"graph": {"family": "regular"}}),
        ("training.patience.x=7", {}),
        ("name=y", {}),
    ):
        read = read_document(str(path), [override])
        expected = {**own, **changed}
        if override == "training={}":
            del expected["training"]
        assert read["cells"] == [{"m": 64, "d_model": 8, **expected}]
        *parts, last = override.partition("=")[0].strip().split(".")
        for part in parts:
            read = read[part]
        assert read[last] == load_yaml(override.partition("=")[2])
    for cells in ("3", "[3]", "[[3]]"):
        told = read_document(str(path), [f"cells={cells}", "training.patience=7", "m=3"])
        assert told["cells"] == load_yaml(cells)
    deep = ".".join("x" * 51)
    assert read_document(str(path), [f"{deep}=1"])["x"]
    for bad in (f"x.{deep}=1", "x..y=1", "x.=1", "a\nb=1"):
        with pytest.raises(StudyError, match=r"not of the form key\.subkey=value$"):
            read_document(str(path), [bad])
