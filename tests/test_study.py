"""Studies: the paper's defaults, expansion, identity, the way back to YAML, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.study import (
    Run,
    Study,
    StudyError,
    canonical_json,
    load_study,
    parse_study,
    shipped_studies,
)

PAPER = {  # App. A.1; heads, target and seeds from Sec. 6.1
    "model": "max",
    "graph": {"family": "permutation"},
    "embedding": {"family": "gaussian"},
    "context": {"length": 16, "positive_rate": 0.5},
    "training": {
        "learning_rate": 1e-3,
        "sharpness": 10.0,
        "max_steps": 20_000,
        "check_every": 500,
        "patience": 5,
        "stop_score": 0.995,
        "validation_contexts": 500,
        "test_contexts": 2_000,
    },
}
TABLE_2 = {  # training step cutoffs by (m, d_model)
    (m, d_model): {(256, 16): 30_000, (512, 16): 80_000}.get((m, d_model), 20_000)
    for m in (64, 128, 256, 512)
    for d_model in (16, 32, 64)
}


def document(**parts: Any) -> dict[str, Any]:
    return {"name": "x", "cells": [{"m": 64, "d_model": 16}], **parts}


def run_of(h: int = 2, d_k: int = 3, seed: int = 0, **parts: Any) -> Run:
    return Run(cell=parse_study(document(**parts)).cells[0], h=h, d_k=d_k, seed=seed)


def test_what_is_not_written_takes_the_papers_value() -> None:
    (cell,) = parse_study(document()).cells
    assert cell.model_dump() == {"m": 64, "d_model": 16, **PAPER}
    assert cell.graph.degree == 1
    assert cell.n_edges == 64


def test_what_is_not_written_of_the_search_takes_the_papers_value() -> None:
    search = parse_study(document()).search
    assert search.mode == "threshold"
    assert search.heads == (1, 2, 4, 8, 16, 32, 64)
    assert (search.target, search.seeds, search.keep_within) == (0.99, 10, 0.10)
    assert (search.max_D_K, search.D_K) == (None, None)


@pytest.mark.parametrize("name", shipped_studies())
def test_shipped_studies_load_under_their_file_name(name: str) -> None:
    assert load_study(name).name == name


def test_the_base_grid_is_the_papers_with_table_2s_limits() -> None:
    study = load_study("base-grid")
    limits = {(cell.m, cell.d_model): cell.training.max_steps for cell in study.cells}
    assert limits == TABLE_2
    assert len(study.cells) == 12
    for cell in study.cells:
        written = cell.model_dump(exclude={"m", "d_model"})
        written["training"]["max_steps"] = 20_000
        assert written == PAPER
    assert study.search == parse_study(document()).search


def test_quickstart_has_small_cells_of_the_base_grid() -> None:
    quickstart, base = load_study("quickstart"), load_study("base-grid")
    assert len(quickstart.cells) == 7
    assert set(quickstart.cells) <= set(base.cells)
    assert max(cell.m for cell in quickstart.cells) == 256
    assert quickstart.search == base.search


def test_cells_expand_to_the_product_of_their_lists_in_order() -> None:
    cells = [{"m": [8, 4], "d_model": [2, 3]}, {"m": 16, "d_model": 2}]
    study = parse_study(document(cells=cells, context={"length": 4}))
    places = [(cell.m, cell.d_model) for cell in study.cells]
    assert places == [(8, 2), (8, 3), (4, 2), (4, 3), (16, 2)]
    assert study.cells[1].name == "m=8,d_model=3"


def test_a_cell_overrides_only_the_keys_it_names() -> None:
    own = {"m": 8, "d_model": 3, "training": {"patience": 2}, "context": {"length": 8}}
    study = parse_study(
        document(
            cells=[{"m": 8, "d_model": 2}, own],
            training={"patience": 7, "max_steps": 9},
            context={"length": 4, "positive_rate": 0.2},
        )
    )
    shared, changed = study.cells
    assert (shared.training.patience, shared.training.max_steps) == (7, 9)
    assert (changed.training.patience, changed.training.max_steps) == (2, 9)
    assert (shared.context.length, shared.context.positive_rate) == (4, 0.2)
    assert (changed.context.length, changed.context.positive_rate) == (8, 0.2)


def test_canonical_json_is_the_same_for_any_order_of_keys() -> None:
    assert canonical_json({"b": 1, "a": {"d": 2.0, "c": [3]}}) == '{"a":{"c":[3],"d":2.0},"b":1}'
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"a": float("nan")})


@pytest.mark.parametrize(
    "same",
    [
        {"training": {"sharpness": 10, "learning_rate": 0.001}},
        {"training": {"learning_rate": "1e-3", "sharpness": 10.0}},  # YAML 1.1 reads 1e-3 as text
        {"context": {"positive_rate": 5e-1, "length": 16}, "model": "max"},
        {"graph": {"family": "permutation"}, "training": {"patience": 5}},
        {"name": "y", "search": {"heads": [3], "seeds": 1, "target": 0.5, "max_D_K": 9}},
        {"search": {"mode": "grid", "D_K": [6], "heads": [2]}},
    ],
)
def test_spelling_order_name_and_search_do_not_change_a_run(same: dict[str, Any]) -> None:
    assert run_of(**same) == run_of()
    assert run_of(**same).run_id == run_of().run_id


def test_a_rate_of_one_is_the_same_run_however_it_is_spelt() -> None:
    runs = [run_of(context={"positive_rate": rate}) for rate in (1, 1.0)]
    assert runs[0].run_id == runs[1].run_id


def test_every_part_of_the_science_changes_the_run() -> None:
    other_training = {
        key: value / 2 if isinstance(value, float) else value + 1
        for key, value in PAPER["training"].items()  # type: ignore[attr-defined]
    }
    runs = [
        run_of(),
        run_of(h=3),
        run_of(d_k=4),
        run_of(h=3, d_k=2),  # the same D_K
        run_of(seed=1),
        run_of(cells=[{"m": 65, "d_model": 16}]),
        run_of(cells=[{"m": 64, "d_model": 17}]),
        run_of(context={"length": 15}),
        run_of(context={"positive_rate": 0.4}),
        *(run_of(training={key: value}) for key, value in other_training.items()),
    ]
    assert len(other_training) == 8
    assert len({run.run_id for run in runs}) == len(runs)


def test_the_address_of_a_run_is_pinned() -> None:
    """Stored rows are found by it: change it only with ``PROTOCOL``."""
    run = run_of()
    assert json.loads(run.config_json) == {
        "protocol": 1,
        "cell": {"m": 64, "d_model": 16, **PAPER},
        "h": 2,
        "d_k": 3,
        "seed": 0,
    }
    assert run.run_id == "fdf5c81ea9c1d85afddde39ecb435d53"
    assert run.cell.cell_id == "83201c2ef1a6f1f5"
    assert run.D_K == 6


def trainings() -> st.SearchStrategy[dict[str, Any]]:
    positive = st.floats(1e-6, 1e6)
    share = st.floats(0, 1)
    keys = {"learning_rate": positive, "sharpness": positive, "stop_score": share}
    counts = ("max_steps", "check_every", "patience", "validation_contexts", "test_contexts")
    return st.fixed_dictionaries({}, optional=keys | {k: st.integers(1, 10**6) for k in counts})


def contexts() -> st.SearchStrategy[dict[str, Any]]:
    keys = {"length": st.integers(2, 16), "positive_rate": st.floats(0, 1)}
    return st.fixed_dictionaries({}, optional=keys)


def searches() -> st.SearchStrategy[dict[str, Any]]:
    heads = st.lists(st.integers(1, 8), min_size=1, unique=True)
    common = {
        "heads": heads,
        "seeds": st.integers(1, 20),
        "target": st.floats(0.5, 1),
        "keep_within": st.none() | st.floats(0, 9),
        "intervals": st.booleans(),
    }
    widths = st.lists(st.integers(1, 9), unique=True).map(lambda extra: [6720, *extra])
    return st.fixed_dictionaries(
        {}, optional=common | {"max_D_K": st.none() | st.integers(64, 900)}
    ) | st.fixed_dictionaries({"mode": st.just("grid"), "D_K": widths}, optional=common)


@st.composite
def studies(draw: st.DrawFn) -> Study:
    ms = draw(st.lists(st.integers(16, 99), min_size=1, max_size=4, unique=True))
    own = st.fixed_dictionaries({}, optional={"training": trainings(), "context": contexts()})
    cells = [{"m": m, "d_model": draw(st.integers(1, 64)), **draw(own)} for m in ms]
    return parse_study(
        {
            "name": draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,9}", fullmatch=True)),
            "cells": cells,
            "training": draw(trainings()),
            "context": draw(contexts()),
            "search": draw(searches()),
        }
    )


@given(studies())
def test_a_study_written_out_is_the_same_study(study: Study) -> None:
    again = parse_study(yaml.safe_load(study.to_yaml()))
    assert again == study
    assert [cell.cell_id for cell in again.cells] == [cell.cell_id for cell in study.cells]


@pytest.mark.parametrize("name", shipped_studies())
def test_a_study_written_out_writes_every_default(name: str) -> None:
    written = yaml.safe_load(load_study(name).to_yaml())
    assert {key: written[key] for key in PAPER} == PAPER
    assert set(written["search"]) == set(type(load_study(name).search).model_fields)


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
    f"{CELL}\ngraph: {{famly: x}}": ["graph.famly: unknown key; did you mean 'family'?"],
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
    f"{CELL}\nembedding: {{family: gausian}}": ["embedding.family: 'gausian'", "gaussian"],
    f"{CELL}\nsearch: {{mode: grd}}": ["search.mode: 'grd'", "'grid'", "threshold, grid"],
    # m and d_model
    "cells: [{m: 0, d_model: 16}]": ["cells[0].m: 0", "at least 2"],
    "cells: [{m: 64, d_model: 16}, {m: -3, d_model: 16}]": ["cells[1].m: -3", "at least 2"],
    "cells: [{m: 2.5, d_model: 16}]": ["cells[0].m: 2.5", "integer"],
    "cells: [{m: '64', d_model: 16}]": ["cells[0].m: '64'", "integer"],
    "cells: [{m: true, d_model: 16}]": ["cells[0].m: true", "integer"],
    "cells: [{m: [64, 2.5], d_model: 16}]": ["cells[0].m", "2.5", "integer"],
    "cells: [{m: 64, d_model: 0}]": ["cells[0].d_model: 0", "at least 1"],
    "cells: [{m: 64}]": ["cells[0].d_model: missing"],
    "cells: [{m: [], d_model: 16}]": ["cells[0].m: []", "at least 1"],
    "cells: []": ["cells", "at least 1"],
    "model: max": ["cells: missing"],
    "cells: [{m: [64, 64], d_model: 16}]": ["cells: m=64,d_model=16 is listed twice"],
    # heads
    f"{CELL}\nsearch: {{heads: [1, 2.5]}}": ["search.heads[1]: 2.5", "integer"],
    f"{CELL}\nsearch: {{heads: ['4']}}": ["search.heads[0]: '4'", "integer"],
    f"{CELL}\nsearch: {{heads: [true]}}": ["search.heads[0]: true", "integer"],
    f"{CELL}\nsearch: {{heads: [0]}}": ["search.heads[0]: 0", "at least 1"],
    f"{CELL}\nsearch: {{heads: [1, 1]}}": ["search.heads: [1, 1] repeats"],
    f"{CELL}\nsearch: {{heads: []}}": ["search.heads: empty", "at least one"],
    f"{CELL}\nsearch: {{heads: [1, 8], max_D_K: 4}}": ["search.heads: 8 exceeds", "1 to 4"],
    f"{CELL}\nsearch: {{mode: grid, heads: [8], D_K: [4, 6]}}": ["heads: 8 exceeds", "1 to 6"],
    f"{CELL}\nsearch: {{mode: grid}}": ["search.D_K: missing"],
    f"{CELL}\nsearch: {{D_K: [4]}}": ["search.D_K: only for mode grid", "max_D_K"],
    # contexts, targets, training
    f"{CELL}\ncontext: {{length: 65}}": ["context.length: 65 exceeds m = 64", "2 to 64"],
    "cells: [{m: 64, d_model: 16, context: {length: 65}}]": ["context.length: 65", "2 to 64"],
    f"{CELL}\ncontext: {{length: 1}}": ["context.length: 1", "at least 2"],
    f"{CELL}\ncontext: {{positive_rate: 1.5}}": ["context.positive_rate: 1.5", "at most 1"],
    f"{CELL}\nsearch: {{target: 1.1}}": ["search.target: 1.1", "at most 1"],
    f"{CELL}\nsearch: {{target: 0}}": ["search.target: 0", "above 0"],
    f"{CELL}\nsearch: {{target: .nan}}": ["search.target: NaN"],
    f"{CELL}\nsearch: {{seeds: 0}}": ["search.seeds: 0", "at least 1"],
    f"{CELL}\ntraining: {{learning_rate: .nan}}": ["training.learning_rate: NaN", "finite"],
    f"{CELL}\ntraining: {{learning_rate: .inf}}": ["training.learning_rate: Infinity", "finite"],
    f"{CELL}\ntraining: {{learning_rate: fast}}": ["training.learning_rate: 'fast'", "number"],
    f"{CELL}\ntraining: {{max_steps: -1}}": ["training.max_steps: -1", "at least 1"],
    "cells: [{m: 64, d_model: 16, training: {max_steps: 0}}]": ["cells[0].training.max_steps: 0"],
    f"{CELL}\ntraining: 3": ["training: 3"],
    f"{CELL}\ntraining: {{1: 2}}": ["training: the key 1 is not a text"],
    f"{CELL}\nname: ../x": ["name: '../x'"],
    f"{CELL}\nname: ''": ["name: ''"],
    f"{CELL}\nname: 3": ["name: 3", "a text"],
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
    (f"{CELL}\nsearch: {{target: true}}", "search.target: True", "True is taken as 1.0"),
    (f"{CELL}\ntraining: {{learning_rate: true}}", "learning_rate: True", "taken as 1.0 too"),
    (f"{CELL}\ncontext: {{positive_rate: false}}", "positive_rate: False", "taken as 0.0"),
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
        ("search.target=2", ["search.target: 2", "at most 1"]),
        ("name=../y", ["name: '../y'"]),
    ],
)
def test_bad_overrides_are_refused_in_one_line(override: str, parts: list[str]) -> None:
    with pytest.raises(StudyError) as error:
        load_study("quickstart", [override])
    message = one_line(error)
    for part in parts:
        assert part in message
