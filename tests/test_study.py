"""Studies: the paper's defaults, expansion, identity, the way back to YAML, and bad input."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from analysis import paper
from rgr_dist.study import Run, Study, canonical_json
from rgr_dist.study_file import load_study, parse_study, shipped_studies

PAPER: dict[str, Any] = {  # App. A.1; heads, target and seeds from Sec. 6.1
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

SHIPPED = [name for name in shipped_studies() if name != "gpt2"]
"""All but the one that needs GPT-2's weights."""


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


@pytest.mark.parametrize("name", SHIPPED)
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


def test_dense_is_app_a_3s_sizes_and_degrees_with_the_papers_protocol() -> None:
    study = load_study("dense")
    assert [cell.graph.degree for cell in study.cells] == [1, 2, 4, 8, 16, 32]
    assert [cell.n_edges for cell in study.cells] == [128 * r for r in (1, 2, 4, 8, 16, 32)]
    for cell in study.cells:
        written = cell.model_dump(exclude={"m", "d_model"})
        assert (cell.m, cell.d_model) == (128, 32)
        assert written | {"graph": PAPER["graph"]} == PAPER
        assert cell.graph.model_dump() == {"family": "regular", "degree": cell.graph.degree}


def test_the_diagonal_has_the_papers_cells_with_table_2s_limits() -> None:
    study = load_study("diagonal")
    limits = {(cell.m, cell.d_model): cell.training.max_steps for cell in study.cells}
    assert limits.pop((1024, 32)) == 80_000  # which Table 2 leaves out
    assert limits.items() <= paper.TABLE_2_MAX_STEPS.items()
    assert [cell.m / cell.d_model for cell in study.cells] == [8] * 6 + [32] * 2
    assert study.search == load_study("base-grid").search


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


def test_only_a_degree_that_is_not_one_is_in_the_name() -> None:
    graph = {"family": "regular", "degree": [1, 4]}
    cells = parse_study(document(graph=graph)).cells
    assert [cell.name for cell in cells] == ["m=64,d_model=16", "m=64,d_model=16,degree=4"]


def test_a_regular_graph_of_degree_one_is_another_cell_than_a_permutation() -> None:
    """App. A.3 weighs its positives otherwise, and it has no fixed points."""
    regular, permutation = run_of(graph={"family": "regular", "degree": 1}), run_of()
    assert regular.cell.n_edges == permutation.cell.n_edges
    assert regular.run_id != permutation.run_id


def test_an_override_of_the_degree_holds_in_every_cell() -> None:
    study = load_study("dense", ["graph.degree=[3, 1]"])
    assert [cell.graph.degree for cell in study.cells] == [3, 1]


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
        for key, value in PAPER["training"].items()
    } | {"initial_scale": 0.5}
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
        run_of(graph={"family": "regular", "degree": 1}),
        run_of(graph={"family": "regular", "degree": 2}),
        run_of(embedding={"family": "binary"}),
        run_of(embedding={"family": "binary", "density": 1.5}),
        run_of(embedding={"family": "onehot"}, cells=[{"m": 16, "d_model": 16}]),
        *(run_of(training={key: value}) for key, value in other_training.items()),
    ]
    assert len(other_training) == 9
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


def test_a_later_key_changes_an_address_only_off_its_default() -> None:
    plain, spelt = run_of(model="value"), run_of(model="value", training={"tolerance": 1e-3})
    assert plain.run_id == spelt.run_id
    assert "tolerance" not in plain.config_json
    assert run_of(model="value", training={"tolerance": 0}).run_id != plain.run_id


def test_every_model_of_a_graph_is_a_cell_of_its_own_on_the_same_task() -> None:
    cells = [run_of(model=model).cell for model in ("max", "softmax", "value")]
    assert len({cell.cell_id for cell in cells}) == 3
    assert len({cell.problem_json for cell in cells}) == 1
    assert [cell.minimised for cell in cells] == [False, False, True]
    assert [cell.training.max_steps for cell in cells] == [20_000, 80_000, 20_000]


def trainings() -> st.SearchStrategy[dict[str, Any]]:
    positive = st.floats(1e-6, 1e6)
    share = st.floats(0, 1)
    keys = {"learning_rate": positive, "sharpness": positive, "stop_score": share}
    keys |= {"initial_scale": positive}
    counts = ("max_steps", "check_every", "patience", "validation_contexts", "test_contexts")
    return st.fixed_dictionaries({}, optional=keys | {k: st.integers(1, 10**6) for k in counts})


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
    again = parse_study(yaml.safe_load(study.to_yaml()))
    assert again == study
    assert [cell.cell_id for cell in again.cells] == [cell.cell_id for cell in study.cells]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_study_written_out_writes_every_default(name: str) -> None:
    written = yaml.safe_load(load_study(name).to_yaml())
    for key in ("context", "training"):
        assert set(PAPER[key]) <= set(written[key])  # type: ignore[arg-type]
    if written["model"] == "max":
        graph = load_study(name).cells[0].graph.model_dump()
        assert {key: written[key] for key in PAPER} == PAPER | {"graph": graph}
    assert set(written["search"]) == set(type(load_study(name).search).model_fields)
