"""What a running study says of itself, from made-up runs: findings, and the time left."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest
from rich.console import Console

from rgr_dist.analysis.wording import duration
from rgr_dist.live import SAY_EVERY, LiveView
from rgr_dist.planning.forecast import Forecast, forecast
from rgr_dist.running.progress import Summary
from rgr_dist.search.portfolio import Portfolio, Probe
from rgr_dist.study.study import Study
from tests.planning.made_up_runs import opened, study_of, trained
from tests.store.made_up_runs import run_row


def portfolio_of(study: Study, rows: list[dict[str, Any]]) -> Portfolio:
    return opened(study, rows)


def said(study: Study, portfolio: Portfolio, summary: Summary) -> str:
    """What a plain view prints after a silence."""
    console = Console(file=io.StringIO(), width=200)
    view = LiveView(console)
    view._said -= 2 * SAY_EVERY
    view.update(study, portfolio, summary)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def left(study: Study, rows: list[dict[str, Any]]) -> Forecast:
    return sum(forecast(study, portfolio_of(study, rows)), Forecast())


def test_of_heads_that_tie_the_one_with_the_better_mean_is_found_as_in_the_report() -> None:
    study = study_of(heads=[1, 2])
    (cell,) = study.cells
    rows: list[dict[str, Any]] = []
    while isinstance(probe := (portfolio := portfolio_of(study, rows)).ask(), Probe):
        passing = 0.995 if probe.arm == 1 else 1.0
        score = passing if probe.arm * probe.value >= 8 else 0.5
        rows += [run_row(probe.arm, probe.value, seed, cell, score=score) for seed in probe.seeds]
    assert "found D_K* = 8 at h=2, d_k=4" in said(study, portfolio, Summary())


@pytest.mark.parametrize("hours", [1, 30])
def test_the_time_left_is_the_work_left_at_the_pace_of_the_work_done(hours: int) -> None:
    study = study_of(seeds=1)
    coming = left(study, [])
    assert coming.work > 0
    summary = Summary(
        runs=5,
        work=coming.work / hours,
        started=time.monotonic() - 7200,  # with an hour of compiling, which is no pace
        paced_from=time.monotonic() - 3600,
        reported=time.monotonic(),
    )
    expected = f"about {duration(3600 * hours + 1)} left"
    assert expected in said(study, portfolio_of(study, []), summary)


def test_a_finished_study_has_no_work_left() -> None:
    study = study_of()
    assert left(study, trained(study)) == Forecast()
