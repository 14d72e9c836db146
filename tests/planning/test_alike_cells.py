"""Cells of one size in one study: two step limits, of which one retest trains the other's runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rgr_dist.cli import call
from rgr_dist.planning.portfolio import stored_search
from rgr_dist.store.store import Store
from rgr_dist.study.from_yaml import parse_study
from tests.run_here import thresholds_here
from tests.small_study import SMALL, write_study

LIMITS = (400, 800)
SHORT: dict[str, Any] = {
    **SMALL,
    "training": {**SMALL["training"], "max_steps": LIMITS[0]},
    "search": {**SMALL["search"], "retest_steps": LIMITS[1] // LIMITS[0]},
}


def cell(max_steps: int) -> dict[str, Any]:
    return {"m": 16, "d_model": 8, "training": {"max_steps": max_steps}}


def test_they_have_the_thresholds_that_each_has_alone(tmp_path: Path, capsys: Any) -> None:
    both = parse_study({**SHORT, "cells": [cell(limit) for limit in LIMITS]})
    store = Store(tmp_path / "both")
    together = thresholds_here(both, store)
    assert stored_search(both, store).portfolio.is_done
    alone = []
    for limit in LIMITS:
        one = parse_study({**SHORT, "cells": [cell(limit)]})
        alone += thresholds_here(one, Store(tmp_path / str(limit)))
    assert together == alone
    assert {row["status"] for row in together} >= {"found"}
    assert len(store.runs()) == len(store.runs()["run_id"].unique())

    file = write_study(tmp_path, **{**SHORT, "cells": [cell(limit) for limit in LIMITS]})
    assert call(["thresholds", str(file), "--out", str(tmp_path / "both"), "--format", "csv"]) == 0
    shown = capsys.readouterr().out
    assert all(f'"m=16,d_model=8,max_steps={limit}"' in shown for limit in LIMITS)
    assert call(["report", str(file), "--out", str(tmp_path / "both")]) == 0
    page = Path(capsys.readouterr().out.strip()).read_text()
    for limit in LIMITS:  # in the tables of cells, heads and cost
        assert page.count(f'<td class="text">max_steps={limit}</td>') >= 3
