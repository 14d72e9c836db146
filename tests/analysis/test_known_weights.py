"""What limits a threshold, from what else the store holds of its problem: rows made up, by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rgr_dist.analysis.laws.conclusions import sentences
from rgr_dist.analysis.laws.fits import fits_of
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.thresholds.known_weights import (
    best_with_known,
    rests_on,
    thresholds_with_known,
)
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up

SEEDS = 3


def study_of(model: object = "max", training: dict[str, Any] | None = None, **more: Any) -> Study:
    keys = {"name": "s", "model": model, "cells": [{"m": 64, "d_model": 16}], **more}
    search = {"heads": [1, 2, 4], "seeds": SEEDS, **more.pop("search", {})}
    return parse_study({**keys, "training": training or {}, "search": search})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path))


def keep(store: Store, study: Study, h: int, d_k: int, *scores: float, **other: Any) -> None:
    """Store the runs of a probe, a seed after another."""
    (cell,) = study.cells
    store.append(
        [made_up.run_row(cell, h, d_k, s, score, **other) for s, score in enumerate(scores)]
    )


def limits(store: Store, *rows: dict[str, Any], study: Study | None = None) -> pd.DataFrame:
    """The thresholds of a study beside what the store knows."""
    study = study or study_of()
    results = made_up.results_of(study, [], rows)
    return thresholds_with_known(replace(results, store=store))


def at(h: int, d_k: int | None, **other: Any) -> dict[str, Any]:
    return made_up.threshold_row(study_of().cells[0], h, d_k, **other)


CENSORED = {"status": "censored"}
SETTLED = {"stop_reason": "converged"}
OURS = {"construction": "ours"}
ONE_HEAD = {"construction": "one-head"}


@pytest.mark.parametrize("config", ["{}", "null", "{", '{"cell":{}}', '{"cell":{"training":1}}'])
def test_a_run_whose_config_says_no_cell_is_no_evidence(store: Store, config: str) -> None:
    keep(store, study_of(OURS), 1, 4, *[1.0] * SEEDS, config=config)
    assert limits(store, at(1, 6))["possible_D_K"].tolist() == [6]


def told(table: pd.DataFrame, *names: str) -> list[tuple[Any, ...]]:
    rows = table[[*names]].astype("object").itertuples(index=False)
    return [tuple(None if pd.isna(value) else value for value in row) for row in rows]


WIDTHS = ("possible_D_K", "possible_source", "exact_D_K", "limited_by")


def test_without_other_weights_a_threshold_is_its_own_and_nobody_knows_what_limits_it(
    store: Store,
) -> None:
    table = limits(store, at(2, 9), at(4, None))
    own = (18, "training at 20,000 steps", None, "unknown")
    assert told(table, *WIDTHS) == [own, (None, None, None, None)]


def test_a_construction_below_a_threshold_says_that_optimisation_limits_it(store: Store) -> None:
    keep(store, study_of(OURS), 2, 7, 1.0, 1.0, 1.0)
    keep(store, study_of(OURS), 2, 6, 1.0, 1.0)  # of a seed nothing is known
    keep(store, study_of(OURS), 2, 5, 0.4, 0.4, 0.4, val_score=0.2)
    keep(store, study_of(OURS, embedding={"family": "binary"}), 2, 3, 1.0, 1.0, 1.0)
    assert told(limits(store, at(2, 9), at(4, 5)), *WIDTHS) == [
        (14, "construction", 14, "optimisation"),
        (20, "training at 20,000 steps", None, "unknown"),
    ]


def test_what_an_answer_rests_on_is_told_with_where_it_is_from(store: Store) -> None:
    def told_of(*rows: dict[str, Any]) -> dict[str, str]:
        study = study_of()
        results = made_up.results_of(study, [], rows)
        return rests_on(replace(results, store=store), study.cells[0])

    assert told_of(at(2, 9)) == {}
    keep(store, study_of({"construction": 5}), 2, 7, 1.0, 1.0, 1.0)
    keep(store, study_of(ONE_HEAD, search={"heads": [1]}), 1, 16, 0.9, 1.0, 0.9, **SETTLED)
    answer = told_of(at(1, None, **CENSORED), at(2, 9))
    proved = "in 2 of 3 draws no weights of one head, however wide, are right on all pairs (Gordan"
    assert answer.pop("proved").startswith(proved)
    assert answer == {
        "known_weights": "pass at D_K = 14, h = 2: construction algorithm-5 (App. B.4, Algorithm 5)"
    }
    assert told_of(at(2, 7)) == {}
    assert "known_weights" in told_of(at(2, None, **CENSORED))
    keep(store, study_of(training={"max_steps": 80_000}), 2, 6, 1.0, 1.0, 1.0)
    longer = "pass at D_K = 12, h = 2: training at 80,000 steps"
    assert told_of(at(2, 9)) == {"known_weights": longer}


def test_weights_wider_than_all_that_was_tried_do_not_say_what_limits_it(store: Store) -> None:
    keep(store, study_of(OURS), 2, 14, 1.0, 1.0, 1.0)
    for low, limit in (18, "unknown"), (30, "optimisation"):
        row = at(2, None, **CENSORED, D_K_low=low, limited_by="unknown")
        assert told(limits(store, row), "possible_D_K", "limited_by") == [(28, limit)]


def test_passing_on_contexts_and_exact_on_all_pairs_are_told_apart(store: Store) -> None:
    keep(store, study_of(OURS), 2, 7, 1.0, 1.0, 1.0)
    keep(store, study_of(OURS), 2, 6, 0.9, 1.0, 1.0, val_score=0.995)
    assert told(limits(store, at(2, 9)), *WIDTHS) == [(12, "construction", 14, "optimisation")]


def test_a_longer_run_of_the_same_protocol_is_one_of_budget_and_another_rate_is_not(
    store: Store,
) -> None:
    longer = study_of(training={"max_steps": 80_000})
    keep(store, longer, 2, 7, 0.99, 0.99, 0.99)
    keep(store, study_of(training={"learning_rate": 0.01}), 2, 7, 1.0, 1.0, 1.0)
    source = "training at 80,000 steps"
    assert told(limits(store, at(2, 9)), *WIDTHS) == [(14, source, None, "budget")]
    keep(store, study_of(training={"learning_rate": 0.01}), 2, 6, 1.0, 1.0, 1.0)
    source = "training at 20,000 steps"
    assert told(limits(store, at(2, 9)), *WIDTHS) == [(12, source, None, "optimisation")]


def test_a_longer_run_that_could_have_been_given_up_is_one_of_budget(store: Store) -> None:
    keep(store, study_of(training={"max_steps": 80_000, "give_up_below": 0.5}), 2, 7, 1.0, 1.0, 1.0)
    source = "training at 80,000 steps"
    assert told(limits(store, at(2, 9)), *WIDTHS) == [(14, source, None, "budget")]


def test_training_from_constructed_weights_is_a_source_of_its_own(store: Store) -> None:
    keep(store, study_of(training={"start": "constructed"}), 2, 6, 1.0, 1.0, 1.0)
    assert told(limits(store, at(2, 9)), *WIDTHS) == [
        (12, "constructed start", None, "optimisation")
    ]


def test_what_passes_on_the_first_seeds_and_fails_on_others_is_not_known_to_pass(
    store: Store,
) -> None:
    keep(store, study_of(training={"max_steps": 80_000}), 2, 7, 1.0, 1.0, 1.0, 0.95)
    assert told(limits(store, at(2, 9)), *WIDTHS)[0][0] == 18


def test_one_head_is_proved_where_every_draw_is_impossible_and_no_weights_pass(
    store: Store,
) -> None:
    proved = ("proved_draws", "decided_draws", "limited_by")
    keep(store, study_of(ONE_HEAD, search={"heads": [1]}), 1, 16, 0.3, 0.2, **SETTLED)
    rows = at(1, None, **CENSORED), at(2, None, **CENSORED)
    assert told(limits(store, *rows), *proved) == [(2, 2, "unknown"), (None, None, "unknown")]
    keep(store, study_of(ONE_HEAD, search={"heads": [1]}), 1, 16, 0.3, 0.2, 0.1, **SETTLED)
    assert told(limits(store, *rows), *proved)[0] == (3, 3, "proved")
    keep(store, study_of(training={"max_steps": 80_000}), 1, 16, 0.99, 0.99, 0.99)
    assert told(limits(store, *rows), *proved)[0] == (3, 3, "budget")


def test_one_head_is_decided_at_one_width_which_nothing_but_a_proof_limits(store: Store) -> None:
    keep(store, study_of(OURS), 1, 2, 1.0, 1.0, 1.0)
    study, limit = study_of(ONE_HEAD, search={"heads": [1]}), ("possible_D_K", "limited_by")
    row = made_up.threshold_row(study.cells[0], 1, 16)
    assert told(limits(store, row, study=study), *limit) == [(2, None)]
    other = study_of(ONE_HEAD, search={"heads": [1]}, cells=[{"m": 64, "d_model": 8}])
    keep(store, other, 1, 8, 0.3, 0.2, 0.1, **SETTLED)
    runs = [made_up.run_row(other.cells[0], 1, 8, s, 0.2, **SETTLED) for s in range(SEEDS)]
    row = made_up.threshold_row(other.cells[0], 1, None, **CENSORED)
    results = replace(made_up.results_of(other, runs, [row]), store=store)
    assert told(thresholds_with_known(results), *limit) == [(None, "proved")]


def test_a_draw_that_one_head_can_hold_or_that_is_undecided_proves_nothing(store: Store) -> None:
    one_head = study_of(ONE_HEAD, search={"heads": [1]})
    (cell,) = one_head.cells
    rows = [made_up.run_row(cell, 1, 16, seed, 0.2) for seed in range(3)]
    rows[1] |= {"score": 1.0, "stop_reason": "converged"}
    rows[2] |= {"stop_reason": "max_steps"}
    rows[0] |= {"stop_reason": "converged"}
    store.append(rows)
    names = ("proved_draws", "decided_draws", "limited_by")
    assert told(limits(store, at(1, None, **CENSORED)), *names) == [(1, 2, "unknown")]


def test_the_best_of_a_cell_competes_with_every_head_count_of_the_store(store: Store) -> None:
    keep(store, study_of(OURS), 3, 5, 1.0, 1.0, 1.0)
    study = study_of()
    runs = [made_up.run_row(study.cells[0], 2, 9, seed, 0.996) for seed in range(SEEDS)]
    made = made_up.results_of(study, runs, [at(2, 9), at(1, None, **CENSORED), at(4, 5)])
    results = StudyResults(study, made.runs, made.thresholds, store=store)
    names = ("D_K", "h_star", "possible_D_K", "possible_h", "limited_by")
    assert told(best_with_known(results), *names) == [(18, 2, 15, 3, "optimisation")]


def test_the_law_of_known_widths_is_theirs_and_stands_only_where_one_is_lower(
    store: Store,
) -> None:
    sizes, known = [(64, 32), (128, 32), (256, 32), (512, 32)], [7, 16, 50, 101]
    cells = [{"m": m, "d_model": d_model} for m, d_model in sizes]
    study = study_of(cells=cells, search={"heads": [1]})
    rows = [made_up.threshold_row(cell, 1, 120) for cell in study.cells]
    made = made_up.results_of(study, [], rows)
    results = StudyResults(study, made.runs, made.thresholds, store=store)
    assert not [law for law in fits_of(results).laws if "possible" in law.name]
    for (m, d_model), d_k in zip(sizes, known, strict=True):
        keep(store, study_of(OURS, cells=[{"m": m, "d_model": d_model}]), 1, d_k, 1.0, 1.0, 1.0)
    fits = fits_of(StudyResults(study, results.runs, results.thresholds, store=store))
    law = next(law for law in fits.laws if law.name == "D_K_possible_power")
    line = np.polyfit(
        np.log([m * np.log2(m) / d for m, d in sizes]), np.log(np.add(known, -0.5)), 1
    )
    assert (law.n, law.exponent) == (4, pytest.approx(line[0], abs=0.01))
    assert law.exponent_low is not None
    assert law.exponent_low < law.exponent
    assert "The smallest known D_K grows as (m′ log₂ m / d_model) to" in sentences(fits)[-1]
