"""The search of a study of facts: settings in place of head counts, d_vo in place of d_k."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from rgr_dist.planning.explain import explain_cell
from rgr_dist.planning.listing import plan_study
from rgr_dist.planning.search_of import Feed, open_portfolio
from rgr_dist.planning.tables import asked_probes, threshold_rows
from rgr_dist.search.portfolio import Probe
from rgr_dist.store.row import lost_rows
from rgr_dist.store.schema import THRESHOLDS
from rgr_dist.store.store import Store
from rgr_dist.store.verify import verify
from rgr_dist.study.study import Study
from tests.planning.made_up_runs import WIDTHS, facts_of, opened, runs_of, trained

SETTINGS = {"d_qk": {"d_qk": [1, 2, 8], "h": 3}, "h": {"h": [1, 2, 8], "d_qk": 3}}


def study_of(arm: str) -> Study:
    return facts_of(keys=[8, 16], per=SETTINGS[arm], confirm_seeds=0)


@pytest.mark.parametrize("arm", SETTINGS)
def test_every_setting_has_its_smallest_d_vo_with_both_sides_trained(arm: str) -> None:
    study = study_of(arm)
    runs = runs_of(trained(study))
    portfolio = open_portfolio(study, runs)
    assert portfolio.is_done, "told from the stored rows as from the trained ones"
    rows = threshold_rows(study, portfolio)
    column = "d_k" if arm == "d_qk" else "h"
    assert [row[column] for row in rows] == 2 * list(WIDTHS)
    for row in rows:
        heads = 3 if arm == "d_qk" else row["h"]
        assert row["h"] == heads
        assert row["d_vo"] == WIDTHS[row[column]]
        assert row["D_V"] == heads * row["d_vo"]
        certificate = json.loads(row["certificate"])
        assert certificate["pass"]["d_vo"] == row["d_vo"]
        failed = certificate["fail"]
        assert (failed["d_vo"], failed["mean_score"]) == (row["d_vo"] - 1, 0.5)
        assert failed["D_V"] == heads * failed["d_vo"]
    pa.Table.from_pylist(rows, schema=THRESHOLDS)
    asked = {
        (row["cell_id"], row["h"], row["d_k"], row["d_vo"])
        for row in asked_probes(study, portfolio)
    }
    assert asked == {tuple(row) for row in runs[["cell_id", "h", "d_k", "d_vo"]].to_numpy()}


def test_a_store_of_facts_resumes_and_tells_its_brackets(tmp_path: Any) -> None:
    study, store = study_of("d_qk"), Store(tmp_path)
    rows = trained(study)
    store.append(rows[: len(rows) // 2])
    left, facts = plan_study(study, store)
    assert facts["runs_done"] == len(rows) // 2
    assert facts["runs_left"] > 0
    assert set(left[0]) >= {"cell", "facts", "runs_done", "runs_left"}
    store.append(rows)
    assert plan_study(study, store)[1]["runs_left"] == 0
    assert verify(store)[0] == []
    sections, told = explain_cell(study, study.cells[0], store, [2])
    assert {row["d_qk"] for row in sections["decisions"]} == {2}
    assert sections["settings"][0]["d_vo"] == WIDTHS[2]
    assert told["finished"]


def test_a_failed_run_keeps_its_setting_open(tmp_path: Any) -> None:
    study, store = study_of("d_qk"), Store(tmp_path)
    portfolio = opened(study)
    probe = portfolio.ask()
    assert isinstance(probe, Probe)
    failed = lost_rows(Feed(study, portfolio).runs_of(probe), "auto", "cpu")
    store.append(failed)
    _, facts = plan_study(study, store)
    assert facts["runs_failed"] == len(failed)
