"""Studies that share a store and a cell: each lists, counts and believes its own runs alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rgr_dist.planning.explain import explain_cell
from rgr_dist.planning.listing import plan_study, run_rows
from rgr_dist.store.store import Store
from tests.planning.made_up_runs import study_of
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
