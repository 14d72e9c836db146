"""What a threshold says of its step limit, where cells are searched at several."""

from __future__ import annotations

import json

import pytest

from rgr_dist.planning.budgets import AtLimit, limited_by, missing_at_larger_limits
from rgr_dist.planning.tables import threshold_rows
from tests.planning.made_up_runs import opened, runs_of, study_of, trained
from tests.store.made_up_runs import run_row


@pytest.mark.parametrize(
    ("total", "at_each", "by"),
    [
        (20, [20, 20, 12], "budget"),  # a larger limit has a lower one
        (12, [20, 20, 12], "budget"),  # the last two still differ
        (12, [">= 65", 12], "budget"),  # pruned or censored but at the largest limit
        (24, [24, None, 24], None),  # not yet known at the second largest
        (24, [24, None, 12], "budget"),  # lower at the largest all the same
        (20, [20, 12, 12], "budget"),
        (12, [20, 12, 12], "unknown"),
        (12, [12, 16], "unknown"),
        (12, [">= 10", 12], "unknown"),
        (None, [">= 65", 12], None),
        (12, [12, None], None),  # open at the largest limit
        (12, [12, ">= 65"], None),  # censored there
        (12, [12], None),
    ],
)
def test_what_limits_a_threshold(
    total: int | None, at_each: list[int | str | None], by: str | None
) -> None:
    known = [
        AtLimit(None, int(one.removeprefix(">= "))) if isinstance(one, str) else AtLimit(one)
        for one in at_each
    ]
    assert limited_by(total, known) == by


def test_a_search_that_ended_without_a_threshold_tells_the_least_it_can_be() -> None:
    for status in ("censored", "pruned"):
        assert AtLimit.of(status, 12, 10) == AtLimit(12, 10)
    for status in ("found", "inconsistent"):
        assert AtLimit.of(status, 12, 10) == AtLimit(12)
    assert AtLimit.of("open", 12, 10) == AtLimit(None)


@pytest.mark.parametrize(
    ("widths", "by", "passes_from"),
    [
        ((9, 9), ["unknown", "unknown"], [1000, 1000]),
        ((9, 5), ["budget", "budget"], [1000, 2000]),
        ((99, 5), [None, "budget"], [None, 2000]),
        ((9, 99), [None, None], [1000, None]),
    ],
)
def test_the_table_says_from_which_limit_on_a_threshold_passes(
    widths: tuple[int, int], by: list[str | None], passes_from: list[int | None]
) -> None:
    """Smallest passing d_k of one head at both limits; 99 is beyond the largest allowed."""
    training = {"max_steps": 1000}
    cells = [{"m": 16, "d_model": 8, "training": training}]
    study = study_of(cells, heads=[1], retest_steps=2, confirm_seeds=0, intervals=False)
    smallest = dict(zip([cell.cell_id for cell in study.cells], widths, strict=True))
    rows = trained(study, passes=lambda probe: probe.value >= smallest[probe.cell])
    table = threshold_rows(study, opened(study, rows))
    assert [row["limited_by"] for row in table] == by
    certificates = [json.loads(row["certificate"] or '{"pass": {}}') for row in table]
    assert [sides["pass"].get("passes_from_max_steps") for sides in certificates] == passes_from


def test_what_a_longer_run_implies_takes_the_place_of_one_that_failed() -> None:
    training = {"max_steps": [1000, 2000]}
    study = study_of([{"m": 16, "d_model": 8, "training": training}], heads=[1])
    short, long = study.cells
    converged = run_row(1, 4, 0, short, steps=500, max_steps=1000, trained_to=1000)
    failed = run_row(1, 4, 0, long, stop_reason="failed", score=None, error="the worker died")
    (implied,) = missing_at_larger_limits(study, runs_of([converged, failed]))
    assert implied["run_id"] == failed["run_id"]
    again = run_row(1, 4, 0, long, steps=500, max_steps=2000, trained_to=1000)
    assert missing_at_larger_limits(study, runs_of([converged, again])) == []
