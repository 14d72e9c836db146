"""What makes a run another run, and what does not."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

import pytest

from rgr_dist.study.address import canonical_json, digest
from rgr_dist.study.cell import read_cell
from rgr_dist.study.study_file import parse_study
from rgr_dist.study.training import Training
from tests.written_studies import PAPER, document, run_of


def test_a_digest_is_the_start_of_that_of_its_canonical_json() -> None:
    whole = hashlib.sha256(b'{"a":1,"b":[2]}').hexdigest()
    assert digest({"b": [2], "a": 1}, 8) == whole[:8]
    assert digest({"b": [2], "a": 1}, 64) == whole


SCHEDULES: tuple[Literal["constant", "cosine", "warmup"], ...] = ("constant", "cosine", "warmup")


def test_canonical_json_is_the_same_for_any_order_of_keys() -> None:
    assert canonical_json({"b": 1, "a": {"d": 2.0, "c": [3]}}) == '{"a":{"c":[3],"d":2.0},"b":1}'
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"a": float("nan")})


@pytest.mark.parametrize(
    "same",
    [
        {"training": {"sharpness": 10, "learning_rate": 0.001}},
        {"training": {"learning_rate": 1e-3, "sharpness": 10.0}},
        {"context": {"positive_rate": 5e-1, "length": 16}, "model": "max"},
        {"training": {"initial_scale": 1, "initial": "deviation", "schedule": "constant"}},
        {"training": {"embeddings": "frozen", "relations": 1}},
        {"graph": {"family": "permutation"}, "training": {"patience": 5}},
        {"name": "y", "search": {"heads": [3], "seeds": 1, "target": 0.5, "max_D_K": 9}},
        {"search": {"mode": "grid", "D_K": [6], "heads": [2]}},
    ],
)
def test_spelling_order_name_and_search_do_not_change_a_run(same: dict[str, Any]) -> None:
    assert run_of(**same) == run_of()
    assert run_of(**same).run_id == run_of().run_id


def test_a_whole_number_is_the_same_run_however_it_is_spelt() -> None:
    for rates in ((1, 1.0), (0, 0.0, -0.0)):
        assert len({run_of(context={"positive_rate": rate}).run_id for rate in rates}) == 1


def test_every_part_of_the_science_changes_the_run() -> None:
    other_training = {
        key: value / 2 if isinstance(value, float) else 2 * value
        for key, value in PAPER["training"].items()
    } | {"initial_scale": 0.5, "initial": "variance", "schedule": "cosine"}
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
        run_of(training={"embeddings": "trained"}),
        run_of(training={"embeddings": "trained", "relations": 2}),
        run_of(training={"schedule": "warmup"}),
        run_of(training={"schedule": "warmup", "warmup_steps": 1_000}),
    ]
    assert len(other_training) == 11
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
    longer = run.with_limit(20_001)
    assert longer.cell.cell_id != run.cell.cell_id
    assert (longer.with_limit(20_000), longer.with_limit(20_000).run_id) == (run, run.run_id)
    paths = {name: Training(schedule=name).path_depends_on_limit for name in SCHEDULES}
    assert paths == {"constant": False, "cosine": True, "warmup": False}
    assert run.D_K == 6


def test_a_later_key_changes_an_address_only_off_its_default() -> None:
    plain, spelt = run_of(model="value"), run_of(model="value", training={"tolerance": 1e-3})
    assert plain.run_id == spelt.run_id
    assert "tolerance" not in plain.config_json
    assert run_of(model="value", training={"tolerance": 0}).run_id != plain.run_id
    warm_up = {"schedule": "warmup", "warmup_steps": 2_000}
    assert run_of(training=warm_up).run_id == run_of(training={"schedule": "warmup"}).run_id


@pytest.mark.parametrize(
    ("short", "spelt"),
    [
        (
            {"model": "transformer", "training": {"weight_decay": 0}, "search": {"heads": [1]}},
            {"training": {"weight_decay": -0.0}},
        ),
    ],
)
def test_a_key_that_says_what_leaving_it_out_means_changes_no_address(
    short: dict[str, Any], spelt: dict[str, Any]
) -> None:
    (one,), (other,) = (parse_study(document(**keys)).cells for keys in (short, short | spelt))
    assert one.cell_id == other.cell_id
    assert one == other
    assert read_cell(one.model_dump_json()) == one


def test_every_model_of_a_graph_is_a_cell_of_its_own_on_the_same_task() -> None:
    cells = [run_of(model=model).cell for model in ("max", "softmax", "value")]
    assert len({cell.cell_id for cell in cells}) == 3
    assert len({cell.problem_json for cell in cells}) == 1
    others = ({"cells": [{"m": 65, "d_model": 16}]}, {"context": {"length": 15}})
    tasks = {run_of(**keys).cell.problem_json for keys in others} | {cells[0].problem_json}
    assert len(tasks) == 3
    assert [cell.record.minimised for cell in cells] == [False, False, True]
    assert [cell.training.max_steps for cell in cells] == [20_000, 80_000, 20_000]
