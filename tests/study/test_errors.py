"""Bad studies: every one is refused in one line that says what, where and what is valid."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from rgr_dist.study.document import shipped_studies
from rgr_dist.study.edge_list import read_edges
from rgr_dist.study.errors import StudyError
from rgr_dist.study.from_yaml import load_study, parse_study

# What is written into a valid study -> what its one line must say: place, fault, what is valid.
CELL = "cells: [{m: 64, d_model: 16}]"
BAD_STUDIES = {
    # unknown keys
    f"{CELL}\ntrainig: {{max_steps: 3}}": ["trainig: unknown key; did you mean 'training'?"],
    f"{CELL}\nzzz: 1": ["zzz: unknown key; valid: name, model, graph,"],
    f"{CELL}\ntraining: {{max_step: 3}}": [
        "training.max_step: unknown key; did you mean 'max_steps'?",
        "valid: learning_rate, sharpness",
    ],
    f"{CELL}\nsearch: {{hedas: [1]}}": ["search.hedas: unknown key; did you mean 'heads'?"],
    f"{CELL}\ncontext: {{lenght: 3}}": ["context.lenght: unknown key; did you mean 'length'?"],
    f"{CELL}\ngraph: {{famly: x}}": [
        "graph.famly: unknown key of family permutation; did you mean 'family'?"
    ],
    "cells: [{m: 64, d_model: 16}, {m: 32, d_model: 16, trainig: {}}]": [
        "cells[1].trainig: unknown key; did you mean 'training'?",
        "valid: m, d_model, context, training",
    ],
    "cells: [{m: 64, d_model: 16, training: {max_step: 3}}]": [
        "cells[0].training.max_step: unknown key; did you mean 'max_steps'?"
    ],
    # names
    f"{CELL}\nmodel: maxx": ["model: 'maxx' is not known", "valid: max"],
    f"{CELL}\ngraph: {{family: permutaton}}": ["graph.family: 'permutaton'", "permutation"],
    f"{CELL}\ngraph: {{family: regular}}": ["graph.degree: missing"],
    f"{CELL}\ngraph: {{family: regular, degree: 0}}": [
        "graph.degree: 0",
        "equal to 1",
    ],
    f"{CELL}\ngraph: {{family: regular, degree: []}}": ["graph.degree: []", "a valid integer"],
    f"{CELL}\ngraph: {{family: regular, degree: [1, 64]}}": ["graph.degree: 64", "at most 63"],
    f"{CELL}\ngraph: {{family: regular, degree: [2, 2]}}": ["m=64,d_model=16,degree=2 is listed"],
    f"{CELL}\ngraph: {{family: regular, degre: 2}}": [
        "graph.degre: unknown key of family regular; did you mean 'degree'? valid: family, degree"
    ],
    f"{CELL}\ngraph: {{degree: 2}}": ["graph.degree: unknown key of family permutation"],
    f"{CELL}\ngraph: {{family: [1]}}": ["graph.family: '[1]'", "regular"],
    f"{CELL}\ngraph: {{family: edges}}": ["graph.file: missing"],
    f"{CELL}\ngraph: {{family: edges, file: nowhere.csv}}": ["graph.file: ", "cannot be read"],
    f"{CELL}\ngraph: {{family: edges, file: 3}}": ["graph.file: 3", "a valid string"],
    "cells: [{m: 64, d_model: 16, graph: {family: regular, degre: 2}}]": ["cells[0].graph.degre:"],
    "cells: [{m: 64, d_model: 16, graph: {family: edges, fil: x}}]": ["cells[0].graph.fil: unk"],
    f"{CELL}\nembedding: {{family: onehot}}": ["embedding.family: onehot", "give d_model: 64"],
    f"{CELL}\nembedding: {{family: binary, density: 3}}": ["embedding.density: 3", "at most 2.66"],
    f"{CELL}\nembedding: {{family: binary, density: 0}}": [
        "embedding.density: 0",
        "than 0",
    ],
    f"{CELL}\nembedding: {{family: gausian}}": ["embedding.family: 'gausian'", "gaussian"],
    f"{CELL}\nsearch: {{mode: grd}}": ["search.mode: 'grd'", "'grid'", "threshold, grid"],
    # keys of another model
    f"{CELL}\nmodel: value\ntraining: {{sharpness: 5}}": [
        "training.sharpness: model value does not use it; leave it out"
    ],
    f"{CELL}\nmodel: value\ntraining: {{stop_score: 0.9}}": ["training.stop_score: model value"],
    f"{CELL}\nmodel: value\ntraining: {{weight_decay: 0.1}}": [
        "training.weight_decay: model value"
    ],
    f"{CELL}\nmodel: value\ntraining: {{tolerance: 2}}": [
        "training.tolerance: 2",
        "equal to 1",
    ],
    f"{CELL}\nmodel: softmax\ntraining: {{tolerance: 0.1}}": ["training.tolerance: model softmax"],
    f"{CELL}\ntraining: {{tolerance: 0.1}}": ["training.tolerance: model max does not use it"],
    f"{CELL}\nmodel: value\ngraph: {{family: regular, degree: 2}}": [
        "graph.family: model value has one target to each item; give permutation"
    ],
    # m and d_model
    "cells: [{m: 0, d_model: 16}]": ["cells[0].m: 0", "equal to 1"],
    "cells: [{m: 64, d_model: 16}, {m: -3, d_model: 16}]": [
        "cells[1].m: -3",
        "equal to 1",
    ],
    "cells: [{m: 2.5, d_model: 16}]": ["cells[0].m: 2.5", "integer"],
    "cells: [{m: '64', d_model: 16}]": ["cells[0].m: '64'", "integer"],
    "cells: [{m: true, d_model: 16}]": ["cells[0].m: true", "integer"],
    "cells: [{m: [64, 2.5], d_model: 16}]": ["cells[0].m", "2.5", "integer"],
    "cells: [{m: 64, d_model: 0}]": ["cells[0].d_model: 0", "equal to 1"],
    "cells: [{m: 64}]": ["cells[0].d_model: missing"],
    "cells: [{m: [], d_model: 16}]": ["cells[0].m: []", "at least one"],
    "cells: []": ["cells", "at least one"],
    "model: max": ["cells: missing"],
    "cells: [{m: [64, 64], d_model: 16}]": ["cells: m=64,d_model=16 is listed twice"],
    # heads
    f"{CELL}\nsearch: {{heads: [1, 2.5]}}": ["search.heads[1]: 2.5", "integer"],
    f"{CELL}\nsearch: {{heads: ['4']}}": ["search.heads[0]: '4'", "integer"],
    f"{CELL}\nsearch: {{heads: [true]}}": ["search.heads[0]: true", "integer"],
    f"{CELL}\nsearch: {{heads: [0]}}": ["search.heads[0]: 0", "equal to 1"],
    f"{CELL}\nsearch: {{heads: [1, 1]}}": ["search.heads: [1, 1] repeats"],
    f"{CELL}\nsearch: {{heads: []}}": ["search.heads: empty", "at least one"],
    f"{CELL}\nsearch: {{heads: [1, 8], max_D_K: 4}}": ["search.heads: 8 exceeds", "1 to 4"],
    f"{CELL}\nsearch: {{mode: grid, heads: [8], D_K: [4, 6]}}": ["heads: 8 exceeds", "1 to 6"],
    f"{CELL}\nsearch: {{mode: grid}}": ["search.D_K: missing"],
    f"{CELL}\nsearch: {{D_K: [4]}}": ["search.D_K: only for mode grid", "max_D_K"],
    # contexts, targets, training
    f"{CELL}\ncontext: {{length: 65}}": [
        "context.length: 65 takes 65 distinct items of m = 64",
        "2 to 64",
    ],
    "cells: [{m: 64, d_model: 16, context: {length: 65}}]": ["context.length: 65", "2 to 64"],
    f"{CELL}\ncontext: {{length: 1}}": ["context.length: 1", "equal to 2"],
    f"{CELL}\ncontext: {{positive_rate: 1.5}}": [
        "context.positive_rate: 1.5",
        "equal to 1",
    ],
    f"{CELL}\nsearch: {{target: 1.1}}": ["search.target: 1.1", "equal to 1"],
    f"{CELL}\nsearch: {{target: 0}}": ["search.target: 0", "than 0"],
    f"{CELL}\nsearch: {{target: .nan}}": ["search.target: NaN"],
    f"{CELL}\nsearch: {{seeds: 0}}": ["search.seeds: 0", "equal to 1"],
    f"{CELL}\ntraining: {{learning_rate: .nan}}": ["training.learning_rate: NaN", "finite"],
    f"{CELL}\ntraining: {{learning_rate: .inf}}": ["training.learning_rate: Infinity", "finite"],
    f"{CELL}\ntraining: {{learning_rate: fast}}": ["training.learning_rate: 'fast'", "number"],
    f"{CELL}\ntraining: {{max_steps: -1}}": [
        "training.max_steps: -1",
        "equal to 1",
    ],
    "cells: [{m: 64, d_model: 16, training: {max_steps: 0}}]": ["cells[0].training.max_steps: 0"],
    f"{CELL}\ntraining: {{schedule: cosin}}": ["schedule: 'cosin'", "did you mean 'cosine'?"],
    f"{CELL}\ntraining: {{schedule: step}}": ["valid: constant, cosine, warmup"],
    f"{CELL}\ntraining: {{initial: std}}": ["training.initial: 'std'", "deviation, variance"],
    f"{CELL}\ntraining: {{schedule: warmup, warmup_steps: 0}}": [
        "warmup_steps: 0",
        "equal to 1",
    ],
    f"{CELL}\ntraining: {{warmup_steps: 500}}": [
        "training.warmup_steps: schedule constant does not use it",
        "schedule: warmup",
    ],
    f"{CELL}\ntraining: {{schedule: warmup, max_steps: 900}}": [
        "training.warmup_steps: 2000 exceeds max_steps = 900",
        "valid are 1 to 900",
    ],
    "cells: [{m: 64, d_model: 16, training: {schedule: warmup, max_steps: 9}}]": [
        "cells[0].training.warmup_steps: 2000 exceeds",
    ],
    f"{CELL}\ntraining: 3": ["training: 3"],
    f"{CELL}\ntraining: {{1: 2}}": ["training.1: unknown key"],
    f"{CELL}\nname: ../x": ["name: '../x'"],
    f"{CELL}\nname: ''": ["name: ''"],
    f"{CELL}\nname: 3": ["name: 3", "a valid string"],
}


def one_line(error: pytest.ExceptionInfo[StudyError]) -> str:
    message = str(error.value)
    assert message.isprintable(), "one line, without control characters"
    return message


@pytest.mark.parametrize("written", BAD_STUDIES)
def test_bad_studies_are_refused_in_one_line(written: str) -> None:
    text = written if "name:" in written else f"name: x\n{written}"
    with pytest.raises(StudyError) as error:
        parse_study(yaml.safe_load(text), where="my.yaml")
    message = one_line(error)
    assert message.startswith("my.yaml: ")
    for part in BAD_STUDIES[written]:
        assert part in message


# What such a study did before it was refused.
DOUBTFUL = [
    (f"{CELL}\nsearch: {{target: true}}", "search.target: true", "True is taken as 1.0"),
    (f"{CELL}\ntraining: {{learning_rate: true}}", "learning_rate: true", "taken as 1.0 too"),
    (f"{CELL}\ncontext: {{positive_rate: false}}", "positive_rate: false", "taken as 0.0"),
    (f"{CELL}\nsearch: {{mode: grid, heads: [2], D_K: [3]}}", "search.", "no run, accepted"),
    (f"{CELL}\nsearch: {{mode: grid, D_K: [64, 64]}}", "search.D_K", "width twice, accepted"),
    ("cells: [{m: 64, d_modl: 16}]", "d_modl: unknown key", "says that d_model is missing"),
    ("cels: [{m: 64, d_model: 16}]", "cels: unknown key", "says that cells is missing"),
    (f'{CELL}\n"a\\nb": 3', "unknown key", "the key breaks the line"),
    (f"{CELL}\ntraining: {{tuple: 3}}", "training.tuple: unknown key", "loses the key's name"),
]


@pytest.mark.parametrize(
    ("written", "part"),
    [pytest.param(text, part, id=reason) for text, part, reason in DOUBTFUL],
)
def test_doubtful_studies_are_refused_in_one_line(written: str, part: str) -> None:
    with pytest.raises(StudyError) as error:
        parse_study(yaml.safe_load(f"name: x\n{written}"))
    assert part in one_line(error)


BAD_FILES = {
    b"name: x\ncells: [\n": "not valid YAML",
    b"": "a study is a mapping",
    b"- 1\n- 2": "a study is a mapping",
    b"text": "a study is a mapping",
    b"name: \xff\xfe\x00": "not a text file",
    b"name: x\x00": "not valid YAML",
    b"? {a: b}\n: 3": "not valid YAML",
    b"name: !!python/object:os.system x": "not valid YAML",
}


@pytest.mark.parametrize("content", BAD_FILES)
def test_files_that_hold_no_study_are_refused_in_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(content)
    with pytest.raises(StudyError) as error:
        load_study(str(path))
    assert one_line(error).startswith(f"{path}: {BAD_FILES[content]}")


def test_an_impossible_date_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text("name: 2026-02-31")
    with pytest.raises(StudyError):
        load_study(str(tmp_path / "study.yaml"))


def test_a_key_that_is_written_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(f"name: x\n{CELL}\ntraining: {{max_steps: 5}}\ntraining: {{patience: 2}}")
    with pytest.raises(StudyError):
        load_study(str(path))


def test_paths_that_cannot_be_read_are_refused_in_one_line(tmp_path: Path) -> None:
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    for path in (tmp_path, tmp_path / "missing.yaml", loop, tmp_path / ("x" * 300 + ".yaml")):
        with pytest.raises(StudyError) as error:
            load_study(str(path))
        assert one_line(error).startswith(f"{path}: cannot be read: ")
        assert "give a readable YAML file" in str(error.value)


@pytest.mark.parametrize(
    ("name", "hint"), [("quickstrt", "'quickstart'"), ("base_grid", "'base-grid'"), ("zzz", "")]
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


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("training.max_steps", ["--set training.max_steps", "key.subkey=value"]),
        ("=3", ["--set =3", "key.subkey=value"]),
        ("name.x=3", ["--set name.x=3", "'name' has no keys below it"]),
        ("cells.m=3", ["--set cells.m=3", "'cells' has no keys below it"]),
        ("search.heads=[1,", ["--set search.heads=[1,", "YAML"]),
        ("training.max_step=3", ["training.max_step: unknown key; did you mean 'max_steps'?"]),
        ("search.target=2", ["search.target: 2", "equal to 1"]),
        ("name=../y", ["name: '../y'"]),
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
    document["search"] = search | {"extra_seeds": -1, "mode": "gird"}
    with pytest.raises(StudyError, match=r"; 2 more$"):
        parse_study(document, "x.yaml")


def test_a_list_with_a_fault_in_an_item_is_not_called_empty() -> None:
    document = {"name": "x", "cells": [{"m": "sixty", "d_model": 8}]}
    with pytest.raises(StudyError) as told:
        parse_study(document, "x.yaml")
    assert str(told.value) == (
        "x.yaml: cells[0].m: 'sixty' is not valid: input should be a valid integer"
    )


def test_pipes_devices_and_odd_paths_are_refused_before_anything_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "large.yaml").write_bytes(b"#" * (11 * 2**20))
    for path, said in (
        (tmp_path / "pipe.yaml", "a pipe or a device; give a readable YAML file"),
        (Path("/dev/zero"), "a pipe or a device"),
        (tmp_path / "large.yaml", "larger than 10 MiB"),
        (tmp_path / ("x" * 300 + ".yaml"), "File name too long"),
        (Path("x" * 5000), "unknown; valid: base-grid"),
    ):
        with pytest.raises(StudyError, match=said):
            load_study(str(path))
    with pytest.raises(StudyError, match="a pipe or a device; an edge list has two columns"):
        read_edges(tmp_path / "pipe.yaml")


def test_yaml_that_would_expand_without_end_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    for text, said in (
        ("\n".join(lines), "more than 1,000,000 values, aliases written out"),
        ("cells: " + "[" * 3000 + "]" * 3000, "nested too deeply"),
        ("a: &a [*a]", "nested too deeply, or in itself"),
        ("m: " + "1" * 5000, "not valid YAML"),
    ):
        (tmp_path / "odd.yaml").write_text(text)
        with pytest.raises(StudyError, match=said):
            load_study(str(tmp_path / "odd.yaml"))
    for override in ("search.seeds=" + "1" * 5000, "training={max_steps: 10, max_steps: 20}"):
        with pytest.raises(StudyError, match="not valid YAML"):
            load_study("quickstart", [override])
