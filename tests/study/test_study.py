"""Studies: the paper's defaults, expansion, the way back to YAML, and bad input."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist import paper
from rgr_dist.study import shipped
from rgr_dist.study.errors import StudyError, as_written
from rgr_dist.study.search import Search
from rgr_dist.study.select import cell_named, cells_named
from rgr_dist.study.shipped import about
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import load_study, parse_study
from rgr_dist.study.yaml_document import shipped_studies
from tests.written_studies import PAPER, document


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


@pytest.mark.parametrize(
    ("given", "target"), [({}, 0.5), ({"seeds": 3}, 0.5), ({"target": 0.99}, 0.99)]
)
def test_an_error_is_to_be_halved_where_no_target_is_written(
    given: dict[str, Any], target: float
) -> None:
    """Retrieving nothing has the error 1: the paper's 0.99 of F1 would pass at any width."""
    study = parse_study(document(model="value", search=given))
    assert study.search.target == target
    assert study.search.seeds == given.get("seeds", 10)


def test_binary_vectors_may_have_no_zeros_but_not_fewer() -> None:
    cells = [{"m": 16, "d_model": 4}]
    parse_study(document(cells=cells, embedding={"family": "binary", "density": 1.0}))
    with pytest.raises(StudyError, match=r"density: 1\.01 .* at most 1$"):
        parse_study(document(cells=cells, embedding={"family": "binary", "density": 1.01}))


def test_a_value_of_a_study_is_shown_in_at_most_sixty_characters() -> None:
    assert as_written("x" * 58) == f"'{'x' * 58}'"
    assert as_written("x" * 59) == f"'{'x' * 56}…"
    assert as_written({"a": [1, None, "é"]}) == '{"a": [1, null, "\\u00e9"]}'


def test_studies_are_equal_if_they_ask_for_the_same() -> None:
    one, other = parse_study(document()), parse_study(document(model="max"))
    assert one == other
    assert one.document != other.document
    for parts in ({"model": "softmax"}, {"name": "y"}, {"search": {"seeds": 3}}):
        assert parse_study(document(**parts)) != one
    assert one != document()


def test_the_base_grid_is_the_papers_with_table_2s_limits() -> None:
    study = load_study("base-grid")
    limits = {(cell.m, cell.d_model): cell.training.max_steps for cell in study.cells}
    assert limits == {place: paper.TABLE_2_MAX_STEPS[place] for place in paper.IMPLIED}
    assert len(study.cells) == 12
    for cell in study.cells:
        written = cell.model_dump(exclude={"m", "d_model"})
        written["training"]["max_steps"] = 20_000
        assert written == PAPER
    assert study.search == Search()


def test_quickstart_has_small_cells_of_the_base_grid() -> None:
    quickstart, base = load_study("quickstart"), load_study("base-grid")
    assert len(quickstart.cells) == 6
    assert set(quickstart.cells) <= set(base.cells)
    assert max(cell.m for cell in quickstart.cells) == 256
    assert quickstart.search == base.search


def test_dense_is_app_a_3s_sizes_and_degrees_with_the_papers_protocol() -> None:
    study = load_study("dense")
    assert [cell.graph.degree for cell in study.cells] == [1, 2, 4, 8, 16, 32]
    assert [cell.n_edges for cell in study.cells] == [128 * r for r in (1, 2, 4, 8, 16, 32)]
    for cell in study.cells:
        written = cell.model_dump(exclude={"m", "d_model"})
        assert (cell.m, cell.d_model, cell.scale) == (128, 32, cell.n_edges * 7 / 32)
        assert written | {"graph": PAPER["graph"]} == PAPER
        assert cell.graph.model_dump() == {"family": "regular", "degree": cell.graph.degree}


def test_the_diagonal_has_the_papers_cells_with_table_2s_limits() -> None:
    study = load_study("diagonal")
    limits = {(cell.m, cell.d_model): cell.training.max_steps for cell in study.cells}
    assert limits.pop((1024, 32)) == 80_000  # which Table 2 leaves out
    assert limits.items() <= paper.TABLE_2_MAX_STEPS.items()
    assert [cell.m / cell.d_model for cell in study.cells] == [8] * 6 + [32] * 2
    assert study.search == Search(confirm_seeds=0)


DENSE = {"family": "regular", "degree": [2, 5]}


@pytest.mark.parametrize(
    ("common", "own", "degrees"),
    [
        (DENSE, {}, [2, 5]),
        ({}, DENSE, [2, 5]),
        ({"family": "regular"}, {"degree": 3}, [3]),
        ({"degree": [4, 1]}, {"family": "regular"}, [4, 1]),  # as --set graph.degree writes it
        (DENSE, {"degree": 7}, [7]),
        (DENSE, {"family": "permutation"}, [1]),
    ],
)
def test_a_cell_has_its_own_graph_or_the_studys(
    common: dict[str, Any], own: dict[str, Any], degrees: list[int]
) -> None:
    cells = [{"m": [16, 32], "d_model": 4, **({"graph": own} if own else {})}]
    study = parse_study(document(graph=common, cells=cells))
    places = [(cell.m, cell.graph.degree) for cell in study.cells]
    assert places == [(m, degree) for m in (16, 32) for degree in degrees]
    assert parse_study(yaml.safe_load(study.to_yaml())) == study


def test_an_override_of_the_degree_holds_in_every_cell_and_only_one_is_not_in_its_name() -> None:
    study = load_study("dense", ["graph.degree=[3, 1]"])
    assert [(cell.graph.degree, cell.name) for cell in study.cells] == [
        (3, "m=128,d_model=32,degree=3"),
        (1, "m=128,d_model=32"),
    ]


def test_a_study_is_written_back_in_its_order(tmp_path: Path) -> None:
    text = "name: x\ncells:\n- m: 64\n  d_model: 16\nmodel: max\n"
    (tmp_path / "x.yaml").write_text(text)
    assert load_study(str(tmp_path / "x.yaml")).to_yaml() == text
    written = load_study(str(tmp_path / "x.yaml"), ["model=softmax"]).to_yaml()
    assert written == text.replace("max", "softmax")
    (tmp_path / "x.yaml").write_text("name: x\n")
    with pytest.raises(StudyError, match="cells: missing"):
        load_study(str(tmp_path / "x.yaml"), ["model=softmax"])


def test_an_override_holds_in_a_cell_that_has_a_value_of_its_own(tmp_path: Path) -> None:
    own = {"m": 64, "d_model": 16, "training": {"patience": 2, "max_steps": 1_500}}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(document(cells=[own])))
    (cell,) = load_study(str(tmp_path / "own.yaml"), ["training.patience=7"]).cells
    assert (cell.training.patience, cell.training.max_steps) == (7, 1_500)
    (cell,) = load_study(str(tmp_path / "own.yaml"), ["training={max_steps: 7000}"]).cells
    assert (cell.training.patience, cell.training.max_steps) == (5, 7_000)


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
            training={"patience": 7, "max_steps": 1_500},
            context={"length": 4, "positive_rate": 0.2},
        )
    )
    shared, changed = study.cells
    assert (shared.training.patience, shared.training.max_steps) == (7, 1_500)
    assert (changed.training.patience, changed.training.max_steps) == (2, 1_500)
    assert (shared.context.length, shared.context.positive_rate) == (4, 0.2)
    assert (changed.context.length, changed.context.positive_rate) == (8, 0.2)


def trainings() -> st.SearchStrategy[dict[str, Any]]:
    positive = st.floats(1e-6, 1e6)
    share = st.floats(0, 1)
    keys = {"learning_rate": positive, "sharpness": positive, "stop_score": share}
    keys |= {"initial_scale": positive, "initial": st.sampled_from(["deviation", "variance"])}
    counts = ("patience", "validation_contexts", "test_contexts")
    keys |= {key: st.integers(1, 10**6) for key in counts}
    keys |= {"check_every": st.sampled_from([1, 20, 500, 2_000])}
    keys |= {"max_steps": st.integers(1, 500).map(lambda count: 2_000 * count)}
    keys |= {"schedule": st.sampled_from(["constant", "cosine"])}
    return st.fixed_dictionaries({}, optional=keys)


def contexts() -> st.SearchStrategy[dict[str, Any]]:
    keys = {"length": st.integers(2, 16), "positive_rate": st.floats(0, 1)}
    return st.fixed_dictionaries({}, optional=keys)


def graphs() -> st.SearchStrategy[dict[str, Any]]:
    degree = st.integers(1, 15)
    several = st.lists(degree, min_size=1, max_size=3, unique=True)
    regular = st.fixed_dictionaries({"family": st.just("regular"), "degree": degree | several})
    return st.just({}) | st.just({"family": "permutation"}) | regular


def searches() -> st.SearchStrategy[dict[str, Any]]:
    heads = st.lists(st.integers(1, 8), min_size=1, unique=True)
    common = {
        "heads": heads,
        "seeds": st.integers(1, 20),
        "target": st.floats(0.5, 1),
        "keep_within": st.none(),
    }
    widths = st.lists(st.integers(1, 9), unique=True).map(lambda extra: [6720, *extra])
    own = {"max_D_K": st.integers(64, 900), "keep_within": st.floats(0, 9)}
    return st.fixed_dictionaries(
        {}, optional=common | {key: st.none() | value for key, value in own.items()}
    ) | st.fixed_dictionaries({"mode": st.just("grid"), "D_K": widths}, optional=common)


@st.composite
def studies(draw: st.DrawFn) -> Study:
    ms = draw(st.lists(st.integers(16, 99), min_size=1, max_size=4, unique=True))
    parts = {"training": trainings(), "context": contexts(), "graph": graphs()}
    own = st.fixed_dictionaries({}, optional=parts)
    cells = [{"m": m, "d_model": draw(st.integers(1, 64)), **draw(own)} for m in ms]
    return parse_study(
        {
            "name": draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,9}", fullmatch=True)),
            "cells": cells,
            "training": draw(trainings()),
            "context": draw(contexts()),
            "embedding": draw(st.sampled_from([{}, {"family": "binary", "density": 0.1}])),
            "graph": draw(graphs()),
            "search": draw(searches()),
        }
    )


@given(studies())
def test_a_study_written_out_is_the_same_study(study: Study) -> None:
    again = Study.model_validate_json(study.model_dump_json())
    assert again == study
    assert parse_study(yaml.safe_load(study.to_yaml())) == study
    assert [cell.cell_id for cell in again.cells] == [cell.cell_id for cell in study.cells]


def test_protocols_of_one_study_are_written_out_and_read_back() -> None:
    own = [{}, {"schedule": "constant"}, {"warmup_steps": 500}, {"initial": "variance"}]
    cells = [{"m": 64 + i, "d_model": 16, "training": keys} for i, keys in enumerate(own)]
    study = parse_study(document(cells=cells, training={"schedule": "warmup"}))
    assert parse_study(yaml.safe_load(study.to_yaml())) == study
    written = [(cell.training.schedule, cell.training.warmup_steps) for cell in study.cells]
    assert written == [("warmup", 2000), ("constant", 2000), ("warmup", 500), ("warmup", 2000)]


def test_lists_of_embeddings_and_of_relations_make_a_cell_for_each() -> None:
    sizes = {"m": 64, "d_model": 16}
    both = {"training": {"embeddings": ["frozen", "trained"]}}
    shared = {"training": {"embeddings": "trained", "relations": [2, 4]}}
    study = parse_study(document(cells=[{**sizes, **both}, {**sizes, **shared}]))
    made = [(cell.training.embeddings, cell.training.relations) for cell in study.cells]
    assert made == [("frozen", 1), ("trained", 1), ("trained", 2), ("trained", 4)]
    assert study.cells[0] == parse_study(document()).cells[0]
    assert study.name_of(study.cells[3]) == "m=64,d_model=16,embeddings=trained,relations=4"


def test_protocols_of_one_size_are_named_by_the_keys_in_which_they_differ() -> None:
    own: list[dict[str, Any]] = [
        {},
        {"sharpness": 30},
        {"learning_rate": 3e-4, "schedule": "cosine"},
        {"initial": "variance"},
        {"learning_rate": 3e-3},
    ]
    sizes = {"m": [64, 128], "d_model": 16}
    study = parse_study(document(cells=[{**sizes, "training": keys} for keys in own]))
    told = ["", ",sharpness=30", ",learning_rate=0.0003,schedule=cosine", ",initial=variance"]
    names = [f"m={m},d_model=16{end}" for end in [*told, ",learning_rate=0.003"] for m in (64, 128)]
    assert [study.name_of(cell) for cell in study.cells] == names
    added = [name.partition(",d_model=16")[2].removeprefix(",") for name in names]
    assert [study.differences[cell.cell_id] for cell in study.cells] == added
    assert study.has_alike_cells
    assert not load_study("base-grid").has_alike_cells
    known = study.keys_of(study.cells[0])
    for key, value in known.items():
        part, _, name = key.rpartition(".")
        assert value == getattr(getattr(study.cells[0], part) if part else study.cells[0], name)
    assert {"model", "graph.family", "context.length"} <= known.keys()
    assert [cell_named(study, name) for name in names] == list(study.cells)
    (wide,) = cells_named(study, "m=64, sharpness=30.0")
    assert cells_named(study, "sharpness=30") == [wide, study.cells[3]]
    papers = "m=128,learning_rate=1e-3,sharpness=10,initial=deviation,schedule=constant"
    assert cells_named(study, papers) == [study.cells[1]]
    assert len(cells_named(study, "m=64,d_model=16")) == 5


def test_constructions_beside_training_are_made_once_for_every_step_limit() -> None:
    models = ["max", {"construction": "one-head"}, {"construction": "ours", "iterations": 9}]
    search = {"mode": "grid", "D_K": [32], "heads": [1, 2]}
    training = {"max_steps": [20_000, 40_000], "sharpness": 3, "test_contexts": 9}
    cells = [{"m": 64, "d_model": 16}, {"m": 64, "d_model": 16, "training": {"sharpness": 4}}]
    study = parse_study(document(model=models, cells=cells, training=training, search=search))
    assert [cell.model for cell in study.cells] == [*["max"] * 4, "one-head", "ours"]
    assert {cell.problem_json for cell in study.cells} == {study.cells[0].problem_json}
    made = study.cells[-1]
    assert (made.construction.iterations, made.training.test_contexts) == (9, 9)
    assert made.training.sharpness == 10  # its default: it does not use it
    assert [study.target_of(cell) for cell in study.cells] == [0.99] * 4 + [1, 1]
    lower = parse_study(document(model=models, cells=cells, search=search | {"target": 0.9}))
    assert {lower.target_of(cell) for cell in lower.cells} == {0.9, 1}
    alone = parse_study(document(model=models[1], cells=cells[:1], search=search | {"target": 0.9}))
    assert {alone.target_of(cell) for cell in alone.cells} == {0.9}
    names = ["", ",max_steps=40000", ",sharpness=4", ",sharpness=4,max_steps=40000"]
    names += [",model=one-head", ",model=ours"]
    assert [study.name_of(cell) for cell in study.cells] == [f"m=64,d_model=16{x}" for x in names]
    assert [cell_named(study, f"m=64,d_model=16{x}") for x in names] == list(study.cells)
    assert parse_study(yaml.safe_load(study.to_yaml())) == study


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_algorithm_5_alone_colours_evenly(number: int) -> None:
    model = {"construction": number}
    cells = [{"m": 64, "d_model": 64 if number == 3 else 16}]
    embedding = {"family": "onehot"} if number == 3 else {}
    (cell,) = parse_study(document(model=model, cells=cells, embedding=embedding)).cells
    assert (cell.model, cell.construction.iterations) == (f"algorithm-{number}", 1000)
    assert cell.construction.colouring == ("equitable" if number == 5 else "batched")


def test_lists_of_rates_and_step_limits_are_every_combination() -> None:
    training = {"learning_rate": [1e-3, 3e-4], "max_steps": [40_000, 20_000]}
    study = parse_study(document(cells=[{"m": 64, "d_model": 16}], training=training))
    asked = [(cell.training.learning_rate, cell.training.max_steps) for cell in study.cells]
    assert asked == [(rate, limit) for rate in (1e-3, 3e-4) for limit in (20_000, 40_000)]
    assert [len(family) for family in study.budgets.values()] == [2] * 4
    assert parse_study(yaml.safe_load(study.to_yaml())) == study


def test_two_step_limits_of_one_cell_share_a_study() -> None:
    cells = [
        {"m": 64, "d_model": 16, "training": {"max_steps": [20_000, 40_000, 80_000]}},
        {"m": 64, "d_model": 32, "training": {"max_steps": [20_000, 40_000]}},
    ]
    study = parse_study(document(cells=cells))
    names = [study.name_of(cell) for cell in study.cells]
    assert names == [
        "m=64,d_model=16",
        "m=64,d_model=16,max_steps=40000",
        "m=64,d_model=16,max_steps=80000",
        "m=64,d_model=32",
        "m=64,d_model=32,max_steps=40000",
    ]
    assert [cell_named(study, name) for name in names] == list(study.cells)
    with pytest.raises(StudyError, match=r"names 3 cells; name one of .*max_steps=40000"):
        cell_named(study, "64,16")
    graph = {"family": "regular", "degree": [1, 2]}
    denser = parse_study(document(cells=[{"m": 64, "d_model": 16}], graph=graph))
    assert cell_named(denser, "m=64,d_model=16") == denser.cells[0]  # that is its whole name
    for sizes in ("64,16", (64, 16)):
        with pytest.raises(StudyError, match=r"^cell 64,16: names 2 cells; name one of .*degree=2"):
            cell_named(denser, sizes)
    limits = [[one.training.max_steps for one in study.budgets[c.cell_id]] for c in study.cells]
    assert limits == [[20_000, 40_000, 80_000]] * 3 + [[20_000, 40_000]] * 2
    assert parse_study(yaml.safe_load(study.to_yaml())) == study


@pytest.mark.parametrize(
    ("given", "limits"),
    [(7000, [7000]), ([7000], [7000]), ([9000, 7000], [7000, 9000])],
)
def test_a_cell_has_a_threshold_for_each_of_its_step_limits(given: Any, limits: list[int]) -> None:
    for study in (
        parse_study(document(training={"max_steps": given})),
        parse_study(document(cells=[{"m": 64, "d_model": 16, "training": {"max_steps": given}}])),
    ):
        assert [cell.training.max_steps for cell in study.cells] == limits
        assert study.has_budgets == (len(limits) > 1)


def test_the_head_of_a_study_has_a_question_a_place_in_the_paper_and_a_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    head = "# Is it?\n# More. Paper: Fig. 1, of two. On two cores: 3 minutes.\nname: x\n\nname: y\n"
    monkeypatch.setattr(shipped, "shipped_text", lambda _: head)
    told = {"question": "Is it?", "paper": "Fig. 1, of two", "on two cores": "3 minutes"}
    assert about("quickstart") == {"study": "quickstart", "cells": 6, **told}
    monkeypatch.setattr(shipped, "shipped_text", lambda _: "# Is it? Paper: Fig. 1.\nname: x\n")
    lacks = "a question, 'Paper: ….' or 'On two cores: ….'"
    with pytest.raises(ValueError, match=f"^quickstart: its head lacks {re.escape(lacks)}$"):
        about("quickstart")


@pytest.mark.parametrize("name", shipped_studies())
def test_a_shipped_study_loads_under_its_name_and_its_head_says_what_it_is_about(name: str) -> None:
    found = about(name)
    assert len(found["question"]) < 120
    assert found["paper"]
    assert found["on two cores"]
    if name != "gpt2":  # needs files that are not here
        study = load_study(name)
        assert (study.name, len(study.cells)) == (name, found["cells"])


def test_cells_of_one_size_may_have_embeddings_of_their_own_and_are_named_by_them() -> None:
    own = [{}, {"family": "binary"}, {"family": "binary", "density": 0.5}, {"family": "gaussian"}]
    cells = [{"m": 64 + i // 3, "d_model": 16, "embedding": keys} for i, keys in enumerate(own)]
    study = parse_study(document(cells=cells))
    families = [cell.embedding.family for cell in study.cells]
    assert families == ["gaussian", "binary", "binary", "gaussian"]
    assert [cell_named(study, name) for name in study.cell_names.values()] == list(study.cells)
    assert study.cells[0].cell_id == parse_study(document()).cells[0].cell_id
