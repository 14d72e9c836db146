"""The signs of a head count's bracket, for searches that end or stop in every way."""

from __future__ import annotations

from typing import Any

from rgr_dist.planning.bracket_signs import MEANINGS, Sign, bracket_sign
from rgr_dist.search.portfolio import Probe
from tests.planning.made_up_runs import opened, study_of, trained
from tests.store.made_up_runs import run_row

SETTLED = {"heads": [1], "confirm_seeds": 0}


def sign_of(scores: dict[int, float | None], **search: Any) -> Sign:
    """The sign of one head whose widths have these scores; None for runs that failed."""
    study = study_of(**SETTLED, **search)
    (cell,) = study.cells
    rows = [
        run_row(1, d_k, seed, cell, score=score, stop_reason="converged" if score else "failed")
        for d_k, score in scores.items()
        for seed in range(2)
    ]
    return bracket_sign(opened(study, rows).search(cell.cell_id), 1)


def next_width(scores: dict[int, float]) -> int:
    """The width that the search asks for once these have their scores."""
    study = study_of(**SETTLED)
    (cell,) = study.cells
    rows = [run_row(1, d_k, seed, cell, score=scores[d_k]) for d_k in scores for seed in range(2)]
    probe = opened(study, rows).ask()
    assert isinstance(probe, Probe)
    return probe.value


def test_a_bracket_closes_from_both_sides() -> None:
    assert sign_of({}) == Sign("·", "untried")
    first = next_width({})
    assert sign_of({first: 1.0}) == Sign(f"0–{first}", "open")
    failed: dict[int, float | None] = {first: 0.5}
    assert sign_of(failed) == Sign(f"> {first} …", "open")
    higher = next_width({first: 0.5})
    assert sign_of(failed | {higher: 1.0}) == Sign(f"{first}–{higher}", "open")


def test_a_bracket_that_cannot_close_says_why() -> None:
    assert sign_of({4: 0.5}, max_D_K=4) == Sign("> 4", "censored")
    assert sign_of({next_width({}): None}) == Sign("failed", "failed")


def test_a_head_is_found_and_one_far_from_the_best_is_pruned() -> None:
    study = study_of(**SETTLED | {"heads": [1, 8]}, keep_within=0.1)
    rows = trained(study, passes=lambda probe: probe.value >= 9)
    state = opened(study, rows).search(study.cells[0].cell_id)
    signs = {h: bracket_sign(state, h) for h in (1, 8)}
    assert signs == {1: Sign("9", "found"), 8: Sign("–", "pruned")}


def test_the_legend_explains_every_look() -> None:
    looks = [sign.look for sign, _ in MEANINGS]
    assert {"found", "pruned", "censored", "failed", "untried"} < {*looks}
