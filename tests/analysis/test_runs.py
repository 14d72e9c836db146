"""Which runs count for a study, and what they cost: tables known by hand."""

from __future__ import annotations

import math

import pandas as pd

from rgr_dist.analysis.runs import asked, cost_of, scored
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up


def test_runs_count_by_cell_head_and_seed_in_the_studys_order() -> None:
    study = made_up.study_of([(64, 16), (32, 16)], heads=[2, 4], seeds=3)
    big, small = study.cells
    (other,) = made_up.study_of([(16, 16)]).cells
    row = made_up.run_row
    rows = [
        row(small, 2, 5, 1, 0.7),
        row(big, 4, 5, 0, 0.9),
        row(big, 2, 10, 2, 0.8),
        row(big, 2, 10, 0, 0.6),
        row(big, 2, 9, 2, None, stop_reason="diverged"),
        row(big, 2, 9, 1, None, stop_reason="failed"),
        row(big, 2, 10, 3, 0.99),  # a seed that the study does not ask for
        row(big, 1, 10, 0, 0.99),  # a head that it does not ask for
        row(other, 2, 5, 0, 0.99),  # a cell that it does not have
        row(big, 2, 10, 0, 0.6),  # stored twice
    ]
    kept = scored(made_up.results_of(study, rows, []).runs, study)
    names = ["cell_id", "h", "d_k", "seed", "score"]
    assert kept[names].values.tolist() == [
        [big.cell_id, 2, 9, 2, 0.0],
        [big.cell_id, 2, 10, 0, 0.6],
        [big.cell_id, 2, 10, 2, 0.8],
        [big.cell_id, 4, 5, 0, 0.9],
        [small.cell_id, 2, 5, 1, 0.7],
    ]
    assert kept.index.tolist() == [0, 1, 2, 3, 4]
    assert list(kept.columns) == list(rows[0])
    assert kept["score"].dtype == "float64"


def test_a_diverged_run_has_the_worst_score_even_if_one_is_stored() -> None:
    f1 = made_up.study_of([(64, 16)], heads=[2])
    cells = [{"m": 64, "d_model": 16}]
    errors = parse_study({"name": "errors", "model": "value", "cells": cells})
    for study, worst in ((f1, 0.0), (errors, math.inf)):
        rows = [made_up.run_row(study.cells[0], 2, 5, 0, 0.9, stop_reason="diverged")]
        assert scored(made_up.results_of(study, rows, []).runs, study)["score"].tolist() == [worst]


def limits(seeds: int, confirm_seeds: int) -> Study:
    """Two cells at two step limits each."""
    return parse_study(
        {
            "name": "made-up",
            "cells": [{"m": [64, 32], "d_model": 16}],
            "training": {"max_steps": [20_000, 80_000]},
            "search": {"heads": [2, 4], "seeds": seeds, "confirm_seeds": confirm_seeds},
        }
    )


def test_every_budget_and_the_fresh_seeds_are_asked_for() -> None:
    study = limits(seeds=4, confirm_seeds=1)
    cell, longer = (one for one in study.cells if one.m == 64)
    rows = [made_up.run_row(cell, 2, 5, seed, 0.9) for seed in range(7)]
    rows.append(made_up.run_row(longer, 2, 5, 1, 0.9))
    rows.append(made_up.run_row(cell, 2, 5, 0, None, stop_reason="failed"))
    rows.append(made_up.run_row(cell, 8, 5, 0, 0.9))  # a head that it does not ask for
    kept = asked(made_up.results_of(study, rows, []).runs, study)
    assert kept["seed"].tolist() == [0, 1, 2, 3, 4, 1, 0]


def test_what_each_cell_cost() -> None:
    study = limits(seeds=3, confirm_seeds=2)
    big, longer = (one for one in study.cells if one.m == 64)
    row, failed = made_up.run_row, {"stop_reason": "failed", "steps": 0, "seconds": 0.0}
    rows = [
        row(big, 2, 5, 0, 0.9, steps=100, seconds=1.0),
        row(big, 2, 5, 1, 0.5, steps=50, seconds=0.5),
        row(big, 4, 5, 0, 0.9, steps=100, seconds=1.0),
        row(big, 4, 5, 1, None, **failed),
        row(big, 4, 6, 1, None, **failed),
        row(longer, 4, 5, 0, 0.9, steps=400, seconds=4.0),
        row(longer, 4, 6, 0, 0.999, steps=50, seconds=0.0, trained_to=20_000),  # read off another
        row(big, 2, 5, 4, 0.9, steps=100, seconds=1.0),  # one of the fresh seeds
    ]
    expected = pd.DataFrame(
        {
            "cell_id": [cell.cell_id for cell in study.cells],
            "m": [64, 64, 32, 32],
            "d_model": [16] * 4,
            "degree": [1] * 4,
            "runs": [6, 2, 0, 0],
            "failed": [2, 0, 0, 0],
            "steps": [350, 400, 0, 0],
            "seconds": [3.5, 4.0, 0.0, 0.0],
        }
    )
    table = cost_of(made_up.results_of(study, rows, []))
    pd.testing.assert_frame_equal(table, expected)
