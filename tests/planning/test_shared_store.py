"""Studies that share a store and a cell: each lists, counts and believes its own runs alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgr_dist.planning.explain import explain_cell
from rgr_dist.planning.listing import plan_study, run_rows
from rgr_dist.planning.search_of import stored_search
from rgr_dist.store.store import Store
from tests.planning.made_up_runs import facts_of, study_of
from tests.store.made_up_runs import failed_row, run_row


def test_another_studys_runs_are_neither_counted_nor_listed(tmp_path: Path) -> None:
    one, store = study_of(heads=[2]), Store(tmp_path)
    (cell,) = one.cells
    own = [run_row(2, d_k, seed, cell, steps=1000) for d_k in (3, 4) for seed in (0, 1)]
    diverged: dict[str, Any] = {"score": None, "val_score": None, "stop_reason": "diverged"}
    others = [
        run_row(1, 9, 0, cell),
        run_row(8, 2, 0, cell, **diverged),
        run_row(2, 13, 0, cell),  # beyond max_D_K
        failed_row(h=8, d_k=1, cell=cell),
    ]
    store.append([*others, *own])
    _, facts = plan_study(one, store)
    assert (facts["runs_done"], facts["runs_failed"]) == (len(own), 0)
    listed, _ = run_rows(one, store)
    assert [(row["h"], row["d_k"], row["seed"]) for row in listed] == [
        (2, d_k, seed) for d_k in (3, 4) for seed in (0, 1)
    ]
    assert "failures" not in explain_cell(one, cell, store)[1]
    other = study_of(heads=[8])
    assert plan_study(other, store)[1]["runs_failed"] == 1
    assert run_rows(study_of(heads=[4]), store) == ([], False)


@pytest.mark.parametrize("h", [1, 2])
def test_facts_at_another_head_count_are_no_evidence(h: int, tmp_path: Path) -> None:
    """A probe is named by d_qk and d_vo alone, whatever h the study has in every setting."""
    study = facts_of(per={"d_qk": [2, 4], "h": h})
    store, (cell,) = Store(tmp_path), study.cells
    store.append([run_row(2, 2, seed, cell, d_vo=3, D_V=6) for seed in (0, 1)])
    search = stored_search(study, store)
    assert len(search.runs) == (2 if h == 2 else 0)
    known = search.portfolio.scores(cell.cell_id, (2, 3))
    assert set(known) == ({0, 1} if h == 2 else set())
