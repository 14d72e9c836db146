"""The plan of a cell's search: the widths of every head count, where it starts, what it follows."""

from __future__ import annotations

from typing import Any

import pytest

from rgr_dist.planning.first_guesses import papers_expectation
from rgr_dist.planning.portfolio import plan_cell
from rgr_dist.search.protocol import Budget, Transition
from rgr_dist.store.prior import Expectation
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.search import Search
from tests.planning.made_up_runs import facts_of, study_of


def test_a_plan_holds_what_the_study_asks_for() -> None:
    asked = {"keep_within": 0.2, "keep_heads": [8], "intervals": "best", "confirm_seeds": 4}
    study = study_of(**asked, transition_seeds=3, transition_window=0.25)
    (cell,) = study.cells
    plan = plan_cell(cell, study.search, Expectation(30.0, 3.0, 1.7, "it"))
    assert (plan.guess_cost, plan.guess_arm, plan.spread) == (30, 3, 1.7)
    assert (plan.cell, plan.words) == (cell.cell_id, study.search.sizes.words)
    assert (plan.every_value, plan.every_arm, plan.cost) == (False, False, None)
    assert plan.budget == Budget(f"{cell.training.max_steps} steps", None, None)
    assert (plan.keep_within, plan.keep_arms, plan.intervals) == (0.2, (8,), "best")
    assert (plan.confirm_seeds, plan.transition) == (4, Transition(3, 0.25))
    assert plan_cell(cell, study_of(heads="all").search).every_arm
    grid = plan_cell(cell, study_of(mode="grid", D_K=[8, 16], max_D_K=None).search)
    assert (grid.every_value, grid.keep_within) == (True, None)
    assert plan_cell(cell, Search(heads=(1,), mode="widest")).keep_within is None
    own, papers = plan_cell(cell, study_of(intervals=False).search), papers_expectation(cell)
    assert own.intervals is False
    assert (own.guess_cost, own.guess_arm, own.spread) == (papers.D_K, papers.h, papers.spread)


@pytest.mark.parametrize(
    ("mode", "guides"),
    [
        (
            {},
            {1000: [None, None], 4000: [1000, None], 3000: [None, 4000], 2000: [None, 3000]},
        ),
        (
            {"mode": "grid", "D_K": [8], "max_D_K": None},
            {4000: [None, None], 3000: [None, 4000], 2000: [None, 3000], 1000: [None, 2000]},
        ),
    ],
)
def test_of_several_limits_the_least_is_searched_first_or_all_from_the_largest_down(
    mode: dict[str, Any], guides: dict[int, list[int | None]]
) -> None:
    cells = [{"m": 16, "d_model": 8, "training": {"max_steps": [1000, 2000, 3000, 4000]}}]
    study = study_of(cells, **mode)
    limits = {cell.cell_id: cell.training.max_steps for cell in study.cells}
    for cell in study.cells:
        budget = plan_cell(cell, study.search, budgets=study.cells).budget
        before = [None if name is None else limits[name] for name in budget[1:]]
        assert before == guides[cell.training.max_steps]


@pytest.mark.parametrize(
    ("cell", "search", "largest"),
    [  # of the first two the law says 64 · 6 / 16 = 24, and four times that is the limit
        ({}, {"heads": [1, 3, 64]}, {1: 96, 3: 32, 64: 4}),  # at least 4 widths a head
        ({}, {"heads": "all"}, {h: 96 // h for h in range(1, 97)}),
        ({}, {"heads": [1, 3], "max_D_K": 50}, {1: 50, 3: 16}),
        ({}, {"heads": "all", "max_D_K": 1}, {1: 1}),
        ({"model": "ours", "m": 512}, {"heads": [1, 32, 64]}, {1: 16, 32: 16, 64: 16}),
        ({"model": "ours", "m": 512}, {"heads": [1, 64], "max_D_K": 640}, {1: 16, 64: 10}),
        (
            {"model": "ours", "m": 512},
            {"heads": "all", "max_D_K": 40},
            {h: min(16, 40 // h) for h in range(1, 41)},
        ),
    ],
)
def test_heads_are_searched_up_to_four_times_the_law_and_projected_ones_up_to_d_model(
    cell: dict[str, Any], search: dict[str, Any], largest: dict[int, int]
) -> None:
    plan = plan_cell(
        Cell(**{"m": 64, "d_model": 16} | cell), study_of(**{"max_D_K": None} | search).search
    )
    assert plan.axes == {h: range(1, d_k + 1) for h, d_k in largest.items()}


def test_too_many_heads_are_refused() -> None:
    largest = Cell(m=2**16, d_model=16)
    with pytest.raises(StudyError) as refused:
        plan_cell(largest, study_of(heads="all", max_D_K=5_001).search)
    assert str(refused.value) == (
        "search.heads: all are 5,001 of cell m=65536,d_model=16; list some, or give a max_D_K of "
        "at most 5,000"
    )
    assert len(plan_cell(largest, study_of(heads="all", max_D_K=5_000).search).axes) == 5_000


@pytest.mark.parametrize(
    ("asked", "widths"),
    [({}, range(1, 17)), ({"max_d_vo": 5}, range(1, 6))],
)
def test_facts_are_searched_up_to_d_model_unless_a_limit_is_given(
    asked: dict[str, Any], widths: range
) -> None:
    study = facts_of(**asked)
    plan = plan_cell(study.cells[0], study.search)
    assert plan.axes == {2: widths, 4: widths}
    assert plan.cost is not None
    assert plan.cost(4, 3) == 6
