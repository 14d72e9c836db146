"""Bad studies: every one is refused in one line that says what, where and what is valid."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pytest_regressions.file_regression import FileRegressionFixture

from rgr_dist.study.errors import StudyError
from rgr_dist.study.study_file import load_study, parse_study
from rgr_dist.study.yaml_document import load_yaml, shipped_studies, shipped_text

FUNCTION = {"family": "function", "keys": 8, "queries": 4, "values": 8}
VALID: dict[str, dict[str, Any]] = {
    "relations": {"cells": [{"m": 64, "d_model": 16}]},
    "transformer": {
        "cells": [{"m": 64, "d_model": 16}],
        "search": {"mode": "grid", "D_K": [8], "heads": [1, 2]},
    },
    "facts": {
        "database": FUNCTION,
        "cells": [{"d_model": 16}],
        "search": {"axis": "d_vo", "per": {"d_qk": [1, 2, 4]}},
    },
}
"""What a valid study of each kind of model needs; null in what is written leaves a key out."""

REFUSED = [  # what is written into a valid study
    "search: {intervals: 'no'}",
    "search: {intervals: 1}",
    # unknown keys
    "trainig: {max_steps: 3}",
    "zzz: 1",
    "cels: [{m: 64, d_model: 16}]\ncells: null",
    "cells: [{m: 64, d_modl: 16}]",
    '"a\\nb": 3',
    "training: {tuple: 3}",
    "training: {1: 2}",
    "training: 3",
    "training: {max_step: 3}",
    "cells: [{m: 64, d_model: 16}, {m: 32, d_model: 16, trainig: {}}]",
    "cells: [{m: 64, d_model: 16, training: {max_step: 3}}]",
    "graph: {famly: x}",
    "graph: {degree: 2}",
    "graph: {family: regular, degre: 2}",
    "cells: [{m: 64, d_model: 16, graph: {family: regular, degre: 2}}]",
    "cells: [{m: 64, d_model: 16, graph: {family: edges, fil: x}}]",
    # names
    "model: maxx",
    "graph: {family: permutaton}",
    "graph: {family: [1]}",
    "embedding: {family: gausian}",
    "search: {mode: grd}",
    "training: {schedule: step}",
    "training: {initial: std}",
    "name: ../x",
    "name: ''",
    "name: 3",
    # graphs and embeddings
    "graph: {family: regular}",
    "graph: {family: regular, degree: 0}",
    "graph: {family: regular, degree: []}",
    "graph: {family: regular, degree: [1, 64]}",
    "graph: {family: regular, degree: [2, 2]}",
    "graph: {family: edges}",
    "training: {learning_rate: '1_0.5'}",
    "search: {target: '0.5'}",
    "search: {family: 12}",
    'model: "a\\nb"',
    "graph: {family: edges, file: nowhere.csv}",
    "graph: {family: edges, file: 3}",
    "embedding: {family: onehot}",
    "embedding: {family: binary, density: 3}",
    "embedding: {family: binary, density: 0}",
    # keys of another model
    "model: value\ntraining: {sharpness: 5}",
    "model: value\ntraining: {stop_score: 0.9}",
    "model: value\ntraining: {weight_decay: 0.1}",
    "model: value\ntraining: {tolerance: 2}",
    "model: value\ngraph: {family: regular, degree: 2}",
    "model: softmax\ntraining: {tolerance: 0.1}",
    "training: {tolerance: 0.1}",
    "training: {batch_size: 4}",
    "training: {weight_decay: 0.1}",
    "database: {family: function, keys: 8, queries: 4, values: 8}",
    "search: {axis: d_vo}",
    "name: my study",
    # m and d_model
    "cells: [{m: 0, d_model: 16}]",
    "cells: [{m: 64, d_model: 16}, {m: -3, d_model: 16}]",
    "cells: [{m: '64', d_model: 16}]",
    "cells: [{m: true, d_model: 16}]",
    "cells: [{m: [64, 2.5], d_model: 16}]",
    "cells: [{m: 64, d_model: 0}]",
    "cells: [{m: 64}]",
    "cells: [{d_model: 16}]",
    "cells: [{m: [], d_model: 16}]",
    "cells: []",
    "cells: null",
    "cells: [{m: [64, 64], d_model: 16}]",
    # the search
    "search: {heads: [1, 2.5]}",
    "search: {heads: [1, 1]}",
    "search: {heads: []}",
    "search: {extra_seeds: 10001}",
    "search: {heads: [1, 8], max_D_K: 4}",
    "search: {mode: grid, heads: [8], D_K: [4, 6]}",
    "search: {mode: grid, heads: [2], D_K: [3]}",
    "search: {mode: grid, D_K: [64, 64]}",
    "search: {mode: grid}",
    "search: {mode: grid, D_K: [8], heads: [1], confirm_seeds: 5}",
    "search: {mode: grid, D_K: [8], heads: all, confirm_seeds: 0}",
    "search: {mode: grid, D_K: [8], heads: [1], keep_within: 0.5}",
    "search: {mode: widest, keep_within: 0}",
    "search: {transition_window: 3}",
    "search: {mode: widest, max_D_K: 64}",
    "search: {mode: widest, D_K: [8]}",
    "search: {mode: widest, heads: all, confirm_seeds: 0}",
    "search: {D_K: [4]}",
    "search: {keep_heads: [3]}",
    "search: {d_vo: [3]}",
    "search: {target: 1.1}",
    "search: {target: 0}",
    "search: {target: .nan}",
    "search: {target: true}",
    "search: {seeds: 0}",
    # contexts and training
    "context: {length: 65}",
    "cells: [{m: 64, d_model: 16, context: {length: 65}}]",
    "context: {length: 1}",
    "context: {positive_rate: 1.5}",
    "context: {positive_rate: false}",
    "training: {learning_rate: true}",
    "training: {learning_rate: .nan}",
    "training: {learning_rate: .inf}",
    "training: {learning_rate: fast}",
    "training: {max_steps: -1}",
    "cells: [{m: 64, d_model: 16, training: {max_steps: 0}}]",
    "training: {max_steps: [700, 0]}",
    "training: {max_steps: [700, x]}",
    "training: {max_steps: []}",
    "training: {max_steps: [700, 700]}",
    "training: {schedule: warmup, warmup_steps: 0}",
    "training: {give_up_below: 0.81}",
    "training: {give_up_below: 0.5, schedule: cosine}",
    "training: {give_up_below: 0.5, schedule: warmup}",
    "training: {give_up_below: 0.5}\nsearch: {target: 0.9}",
    "training: {give_up_below: 0.5}\nsearch: {transition_seeds: 9}",
    "training: {give_up_below: 0.5}\nsearch: {mode: grid, D_K: [64]}",
    "model: value\ntraining: {give_up_below: 0.5}",
    "training: {warmup_steps: 500}",
    "training: {schedule: warmup, max_steps: 900}",
    # constructions
    "model: {construction: 6}",
    "model: {construction: ours, p: 0.7}",
    "model: {construktion: 1}",
    "model: {construction: 3}",
    "model: {construction: 5, signatures: orthogonal}",
    "model: {construction: 1, p: 0.2}",
    "model: {construction: 4, p: 0.2}",
    "model: {construction: 2, tau: best}",
    "model: {construction: ours, p: 0.1}",
    "model: {construction: 1, iterations: 9}",
    "model: {construction: 5, colouring: batched}",
    "model: {construction: 5}\ngraph: {family: regular, degree: 4}\nsearch: {heads: [2, 4]}",
    "model: {construction: ours}\nsearch: {retest_steps: 4}",
    "model: {construction: ours}\ntraining: {initial: variance}",
    "search: {rule: confirmed, mode: grid, D_K: [64]}",
    "model: {construction: ours}\ntraining: {learning_rate: 1}",
    "model: [max, {construction: ours}]",
    "model: []",
    "model: [max, {construction: ours}, softmax]\nsearch: {mode: widest}",
    "model: [max, softmax, max]",
    "model: [{zoo: tied}, {zoo: tied}]",
    "model: [max, transformer]",
    "model: [max, {construction: 1}, {construction: 1, tau: best}]\nsearch: {mode: widest}",
    "model: [value, {construction: ours}]\nsearch: {mode: widest}",
    "model: [max, {construction: one-head}]\nsearch: {mode: widest, heads: [2]}",
    # model transformer
    "model: transformer\ntraining: {sharpness: 5}",
    "model: transformer\ntraining: {patience: 2}",
    "model: transformer\ntraining: {stop_score: 0.9}",
    "model: transformer\ncontext: {positive_rate: 0.4}",
    "model: transformer\ncontext: {length: 32}",
    "model: transformer\ntraining: {batch_size: null}",
    "model: transformer\ntraining: {batch_size: 0}",
    "model: transformer\ntraining: {weight_decay: -0.1}",
    "model: transformer\nsearch: {mode: grid, D_K: [6], heads: [1, 3]}",
    "model: transformer\nsearch: {heads: all}",
    # model facts
    "model: facts\ndatabase: null",
    "model: facts\ncells: [{m: 8, d_model: 16}]",
    "model: facts\nfacts: {residual: 'no'}",
    "model: facts\nfacts: {train_embedding: 1}",
    "model: facts\ncells: [{d_model: 16, database: {keys: 0}}]",
    "model: facts\ndatabase: {family: function, keys: 8, queries: 4, values: 8, key: 3}",
    "model: facts\ndatabase: {family: functoin, keys: 8}",
    "model: facts\ndatabase: {keys: 8, queries: 4, values: 8}",
    "model: facts\ndatabase: {family: null, keys: 8}",
    "model: facts\ndatabase: 8",
    "model: facts\ndatabase: [8]",
    "model: facts\ndatabase: {family: low-rank, keys: 8, queries: 4, values: 8, rank: 9}",
    "model: facts\ndatabase: {family: function, keys: 1, queries: 1, values: 2}",
    "model: facts\ncells: [{d_model: 16, database: {keys: [9, 1], queries: 1}}]",
    "model: facts\nfacts: {tau: 1.5}",
    "model: facts\ngraph: {family: regular, degree: 2}",
    "model: facts\ncontext: {length: 4}",
    "model: facts\ntraining: {patience: 2}",
    "model: facts\ntraining: {batch_size: 33}",
    "model: facts\nsearch: {}",
    "model: facts\nsearch: {axis: d_vo, heads: [1, 2]}",
    "model: facts\nsearch: {axis: d_vo, per: {d_qk: [1, 2], h: [1, 2]}}",
    "model: facts\nsearch: {axis: d_vo, per: {d_qk: [2, 2]}}",
    "model: facts\nsearch: {axis: d_vo, mode: grid}",
    # at the limits
    "training: {learning_rate: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}",
    "training: {learning_rate: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}",
    "training: {sharpness: [1, 2]}",
    "cells: [{d_model: 16, graph: {family: edges, file: nowhere.csv}}]",
    "cells: 3",
    "model: [max, 3]",
    "model: 3",
    "model: {construction: 5}\ngraph: {family: regular, degree: 2}\nsearch: {heads: all}",
    "model: facts\ndatabase: {family: function, keys: 715827883, queries: 3, values: 8}",
]


def one_line(error: pytest.ExceptionInfo[StudyError]) -> str:
    message = str(error.value)
    assert message.isprintable(), "one line, without control characters"
    return message


def test_bad_studies_are_refused_in_one_line(file_regression: FileRegressionFixture) -> None:
    """Each as approved in ``test_errors/``; pytest's --force-regen writes that copy anew."""
    told = []
    for written in REFUSED:
        keys = yaml.safe_load(written)
        document = {"name": "x", **VALID.get(str(keys.get("model")), VALID["relations"]), **keys}
        document = {key: value for key, value in document.items() if value is not None}
        with pytest.raises(StudyError) as error:
            parse_study(document, where="my.yaml")
        told.append(f"{written}\n    {one_line(error)}\n".replace(str(Path().absolute()), "."))
        assert "    my.yaml: " in told[-1]
    file_regression.check("\n".join(told))


BAD_FILES = [
    (b"# soon\n", "it holds no key; rgr init NAME writes a study to begin with"),
    (b"", "it holds no key"),
    (b"name: x\ncells: [\n", "not valid YAML"),
    (b"- 1\n- 2", "a study is a mapping"),
    (b"name: \xff\xfe\x00", "not a text file"),
    (b"name: x\x00", "not valid YAML"),
    (b"x: [\n1,\n!!python/object:os.system x]", "line 3: the tag !!python/object:os.system is not"),
    (b"x: !!binary a", "line 1: the tag !!binary is not read here; leave it out"),
    (b"! x: 1", "line 1: the tag ! is not read here"),
    (b"? {a: b}\n: 3", "line 1: a key is no text; quote it"),
    (b"x:\n  1: 2", "line 2: a key is no text"),
    (b"name: x\nsearch: {}\nsearch: {}", "the mapping at line 1 has 'search' twice; write it once"),
    (b"a: 1\n--- \na: 1", "it holds several documents"),
    (b"cells: " + b"[" * 50 + b"]" * 50, "nested too deeply, more than 50 times"),
    (b"a: &a [1]", "line 1: the anchor a is not read here; leave it out"),
    (b"a: [\n*a]", "line 2: the anchor a is not read here"),
    (b"m: " + b"1" * 101, f"line 1: '{'1' * 40}' is not read here; give a decimal number of at"),
    (b"{" + b"".join(b"k%d: 1, " % i for i in range(60_000)) + b"}", "it holds more than 100,000"),
    (b"#" * 2**20 + b"#", "cannot be read: larger than 1 MiB; RGR_LARGEST_FILE sets another"),
]
ODD = "yes no on off 2026-02-31 2026-11-24T10:00:00Z 1:30 1:30.5 017 0x1f 0b1 1_000 .inf .nan << ="
BAD_FILES += [(f"x: {odd}".encode(), f"line 1: '{odd}' is not read here") for odd in ODD.split()]
BAD_FILES += [(f"{odd}: 1".encode(), f"line 1: '{odd}' is not read here") for odd in ODD.split()]


@pytest.mark.parametrize(("content", "said"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_files_that_hold_no_study_are_refused_in_one_line(
    content: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(content)
    with pytest.raises(StudyError) as error:
        load_study(str(path))
    assert one_line(error).startswith(f"{path}: {said}")


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
    with pytest.raises(StudyError, match=f"^study '{name}': unknown") as error:
        load_study(name)
    message = one_line(error)
    assert all(known in message for known in shipped_studies())
    assert ("did you mean" in message) == bool(hint)
    assert hint in message


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
        ("training.max_steps", ["--set training.max_steps", "key.subkey=value"]),
        ("=3", ["--set =3", "key.subkey=value"]),
        ("name.x=3", ["--set name.x=3", "'name' has no keys below it"]),
        ("cells.m=3", ["--set cells.m=3", "'cells' has no keys below it"]),
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


def test_several_faults_are_reported_at_once_and_many_are_counted() -> None:
    search = {"seeds": 0, "target": 2}
    document = {"name": "x", "cells": [{"m": 16, "d_modl": 8}], "search": search}
    with pytest.raises(StudyError) as reported:
        parse_study(document, "x.yaml")
    message = str(reported.value)
    assert message.startswith("x.yaml: cells[0].d_modl: unknown key; did you mean 'd_model'?")
    for fault in ("search.target: 2 is not valid", "search.seeds: 0 is not valid"):
        assert message.count(fault) == 1
    assert "\n" not in message
    assert "more" not in message
    document["search"] = search | {"extra_seeds": -1, "mode": "gird"}
    with pytest.raises(StudyError, match=r"; 2 more$"):
        parse_study(document, "x.yaml")


def test_a_list_with_a_fault_in_an_item_is_at_fault_for_that_alone() -> None:
    document = {"name": "x", "cells": [{"m": "sixty", "d_model": 8}], "search": {"heads": [1, 2.5]}}
    integer = "is not valid: input should be a valid integer"
    with pytest.raises(StudyError) as told:
        parse_study(document, "x.yaml")
    assert (
        str(told.value) == f"x.yaml: cells[0].m: 'sixty' {integer}; search.heads[1]: 2.5 {integer}"
    )


def test_lists_of_too_many_keys_and_cells_are_refused_before_they_are_multiplied() -> None:
    many = [*range(1, 1001)]
    sizes = {"family": "function", "keys": many, "queries": [1, 2, 3], "values": 2}
    facts = {"name": "x", "model": "facts", "search": {"axis": "d_vo"}, "database": sizes}
    keys = {f"k{i}": 1 for i in range(50_000)}
    training = {"max_steps": [*range(1, 10_001)], **keys}
    for document, said in (
        ({**facts, "cells": [{"m": many, "d_model": 8}]}, "cells: 3,000 or more"),
        (
            {**facts, "cells": [{"d_model": 8}], "facts": {"tau": [0.5] * 9999}},
            "cells: 3,000 or more",
        ),
        ({"name": "x", "cells": [{"m": 9, "d_model": 8}], "training": training}, "training.k0: "),
    ):
        tracemalloc.start()
        with pytest.raises(StudyError) as error:
            parse_study(document)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert one_line(error).startswith(f"study: {said}")
        assert peak < 100 * 2**20


@pytest.mark.parametrize("override", ["search.\udcff=5", "name=\udcff"])
def test_an_override_that_is_no_text_is_refused(override: str) -> None:
    with pytest.raises(StudyError, match=r"^--set [^ ]+: not (valid YAML: 'utf-8'|of the form)"):
        load_study("quickstart", [override])
