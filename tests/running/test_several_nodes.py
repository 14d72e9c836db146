"""A study on several nodes, which die and join as it runs: the bits of one node, nothing twice."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from rgr_dist.analysis.report import write_page
from rgr_dist.store.store import Store
from rgr_dist.study.study_file import load_study
from tests.run_here import search_here
from tests.running.nodes import ENVIRONMENT, Nodes, running
from tests.running.test_broken_ray import check_end
from tests.small_study import driver, parts, runs_on, tables, write_study

pytestmark = pytest.mark.slow

MEASURED = ["run_id", "h", "d_k", "seed", "score", "val_score", "threshold_tau", "steps"]
"""Columns that tell what was found, not when or where."""


def stored(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "results/runs")


def run_on(nodes: Nodes, folder: Path, orders: list[str]) -> str:
    """Run the small study on a cluster, giving it an order after each part stored; its output."""
    with driver(folder, "--address", nodes.address, environment=ENVIRONMENT) as run:
        for count, order in enumerate(orders, start=1):
            while len(parts(folder)) < count:
                assert runs_on(run), "the study ended before it could be disturbed"
            assert nodes.order(order) in ("added", "killed")
        output, errors = run.communicate(timeout=120)
    assert (run.returncode, errors) == (0, "")
    return output


def check_same(disturbed: Path, undisturbed: Path) -> None:
    """The same thresholds and decisions; each run once, with the same numbers to the bit."""
    for name, table in tables(undisturbed).items():
        pd.testing.assert_frame_equal(table, tables(disturbed)[name], check_exact=True)
    runs, alone = stored(disturbed), stored(undisturbed)
    assert runs["run_id"].is_unique
    assert (runs["stop_reason"] != "failed").all()
    both = runs[MEASURED].merge(alone[MEASURED], on="run_id", suffixes=("", "_alone"))
    assert len(both) > len(alone) / 2  # which runs are tried ahead of need depends on timing
    for column in MEASURED[1:]:
        pd.testing.assert_series_equal(
            both[column], both[f"{column}_alone"], check_exact=True, check_names=False
        )


def alone(folder: Path) -> Path:
    """The study of a folder, trained in this process without Ray."""
    here = folder / "alone"
    study, store = load_study(str(folder / "small.yaml")), Store(here / "results")
    search_here(study, store)
    write_page(study, store)  # and the tables above it
    return here


def test_three_nodes_one_killed_and_one_added_on_the_way(tmp_path: Path) -> None:
    cells = [{"m": 16, "d_model": [8, 16]}, {"m": [24, 32], "d_model": 8}]
    write_study(tmp_path, cells=cells, search={"heads": [1, 2, 4], "seeds": 20})
    with running(1, 1, 1) as nodes:
        output = run_on(nodes, tmp_path, ["kill 1", "add 2"])
    assert "(raylet" not in output
    assert " pid=" not in output  # nothing of Ray's own
    check_same(tmp_path, alone(tmp_path))


def test_death_of_a_cluster_is_one_line(tmp_path: Path) -> None:
    write_study(tmp_path, search={"heads": [1, 2, 4], "seeds": 40})
    with (
        running(1, 1) as nodes,
        driver(tmp_path, "--address", nodes.address, environment=ENVIRONMENT) as run,
    ):
        while not parts(tmp_path):
            assert runs_on(run), "the study ended before it could be disturbed"
        assert nodes.order("kill 0") == "killed"  # with the control store
        _, errors = run.communicate(timeout=120)
    check_end(run.returncode, errors, f"--address {nodes.address}")
