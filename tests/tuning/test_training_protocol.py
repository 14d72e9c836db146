"""Tuning the training protocol: where, which protocols, and how a trial stands."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.study.errors import StudyError
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from rgr_dist.study.training import Training
from rgr_dist.tuning.training_protocol import (
    SPACE,
    TunedProbe,
    bounds,
    described,
    is_hopeless,
    present_protocol,
    probe_rows,
    probes_to_tune,
    rounded,
)
from tests.planning.made_up_runs import WIDTHS, opened, study_of, trained


def probes(study: Study, rows: list[dict[str, Any]], **chosen: Any) -> list[tuple[int, int]]:
    portfolio = opened(study, rows)
    return [(probe.h, probe.d_k) for probe in probes_to_tune(portfolio, study.cells, **chosen)]


def test_a_head_is_tuned_one_width_below_its_threshold_by_default() -> None:
    study = study_of()
    rows = trained(study)
    assert probes(study, rows) == [(2, WIDTHS[2] - 1)]  # D_K of 8 is the least
    assert probes(study, rows, heads=(1, 8)) == [(1, WIDTHS[1] - 1), (8, WIDTHS[8] - 1)]


def test_a_head_without_a_threshold_is_tuned_below_the_predicted_width() -> None:
    study = study_of()
    guess = opened(study).state(study.cells[0].cell_id).plan.guess_cost
    ((h, d_k),) = probes(study, [])
    assert h in study.search.heads
    assert 0.5 * guess - h < h * d_k < guess


def test_a_given_width_is_that_of_every_head_and_must_be_a_multiple_of_it() -> None:
    assert probes(study_of(), [], heads=(2, 8), D_K=16) == [(2, 8), (8, 2)]
    with pytest.raises(StudyError, match=r"--D_K 12: not a multiple of h = 8"):
        probes(study_of(), [], heads=(2, 8), D_K=12)


@pytest.mark.parametrize(
    "keys",
    [
        {"graph": {"family": "regular", "degree": [1, 2]}},
        {"search": {"retest_steps": 2}},
        {"graph": {"family": "regular", "degree": [1, 2]}, "search": {"retest_steps": 2}},
    ],
)
def test_the_rows_of_probes_tell_their_cells_apart(keys: dict[str, Any]) -> None:
    study = parse_study({"name": "s", "cells": [{"m": 16, "d_model": 8}], **keys})
    rows = probe_rows(study, [TunedProbe(cell, 1, 4) for cell in study.cells])
    assert len({tuple(row.items()) for row in rows}) == len(study.cells) > 1
    assert {(row["m"], row["d_model"], row["D_K"]) for row in rows} == {(16, 8, 4)}


def test_a_place_trains_its_cell_with_the_protocols_keys_alone_changed() -> None:
    study = study_of()
    run = TunedProbe(study.cells[0], 2, 3).run({"learning_rate": 0.02, "initial_scale": 0.5}, 7)
    assert (run.h, run.d_k, run.seed) == (2, 3, 7)
    before, after = study.cells[0].training.model_dump(), run.cell.training.model_dump()
    assert after == before | {"learning_rate": 0.02, "initial_scale": 0.5}
    assert TunedProbe(study.cells[0], 2, 3).run(
        present_protocol(study.cells[0]), 0
    ).cell.cell_id == (study.cells[0].cell_id)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
    st.floats(0, 1),
    st.sampled_from([0.0, 1.0]),
    st.data(),
)
def test_pruning_never_loses_a_trial_that_could_have_been_the_best(
    scores: list[float], best: float, perfect: float, data: st.DataObject
) -> None:
    known = data.draw(st.integers(1, len(scores)))
    so_far = scores[:known], len(scores), perfect
    luckiest = scores[:known] + [perfect] * (len(scores) - known)
    off = abs(sum(luckiest) / len(scores) - perfect)
    if is_hopeless(*so_far, best):
        assert off >= abs(best - perfect) - 1e-12
    else:
        assert off <= abs(best - perfect) + 1e-12
    assert not is_hopeless(*so_far, None)


@given(st.fixed_dictionaries({key: st.floats(1e-6, 1e6) for key in SPACE}))
def test_bounds_hold_the_present_protocol_and_a_printed_protocol_reads_back(
    protocol: dict[str, float],
) -> None:
    for key, (low, high) in bounds(protocol).items():
        assert low <= protocol[key] <= high
        assert (low, high) == SPACE[key] or protocol[key] in (low, high)
    printed = rounded(protocol)
    assert printed == pytest.approx(protocol, rel=1e-3)
    section = Training(**yaml.safe_load(json.dumps(printed)))
    assert {key: getattr(section, key) for key in SPACE} == printed
    assert rounded(printed) == printed


def test_only_keys_that_the_model_uses_are_tuned() -> None:
    document = {"name": "x", "model": "transformer", "cells": [{"m": 64, "d_model": 16}]}
    study = parse_study({**document, "search": {"heads": [1, 2]}})
    present = present_protocol(study.cells[0])
    assert list(present) == ["learning_rate", "initial_scale"]
    assert bounds(present) == {key: SPACE[key] for key in present}
    probe = TunedProbe(study.cells[0], 2, 4)
    assert set(described(study, [probe])["bounds"]) == set(present)
    run = probe.run(rounded(present), 0)
    assert run == Run(cell=study.cells[0], h=2, d_k=4, seed=0)


def test_trials_are_shared_by_tunings_of_the_same_places_seeds_and_limits_alone() -> None:
    def common(h: int = 2, **parts: Any) -> str:
        document = {"name": "x", "cells": [{"m": 16, "d_model": 8}], **parts}
        study = parse_study(document)
        return json.dumps(described(study, [TunedProbe(study.cells[0], h, 3)]))

    assert common() == common(training={"learning_rate": 0.02, "initial_scale": 2.0})
    others = [
        common(h=4),
        common(search={"seeds": 4}),
        common(training={"max_steps": 7}),
        common(training={"patience": 7}),
        common(training={"learning_rate": 0.5}),  # wider bounds
        common(cells=[{"m": 17, "d_model": 8}]),
    ]
    assert len({common(), *others}) == 7
