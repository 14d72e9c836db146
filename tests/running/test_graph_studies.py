"""Studies of regular graphs and of an edge list, from the file to the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from rgr_dist.live import bracket_table
from rgr_dist.planning.search_of import open_portfolio
from rgr_dist.store.schema import RUNS
from rgr_dist.study.study_file import load_study
from tests.marks import slow_in_ci
from tests.small_study import Rgr, write_study

SEARCH = {"heads": [1, 2], "seeds": 2, "max_D_K": 16}


def listed(rgr: Rgr, folder: Path, *verb: str) -> dict[str, Any]:
    done = rgr(*verb, "--format", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_live_table_has_the_degree_of_a_study_that_is_denser(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, shown in (("dense", True), ("quickstart", False)):
        study = load_study(name)
        portfolio = open_portfolio(study, pd.DataFrame(columns=RUNS.names))
        Console(width=200).print(bracket_table(study, portfolio))
        head, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
        assert head[:3] == ["m", "d_model", "degree" if shown else "h=1"]
        if shown:
            assert [row[2] for row in rows[:6]] == ["1", "2", "4", "8", "16", "32"]


@pytest.mark.slow
def test_a_study_of_regular_graphs_tells_its_cells_apart_by_degree(
    tmp_path: Path, rgr_here: Rgr
) -> None:
    graph = {"family": "regular", "degree": [1, 2, 3]}
    cells = [{"m": 16, "d_model": 16}]
    write_study(tmp_path, graph=graph, cells=cells, search=SEARCH)
    done = rgr_here("run", "small.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "m=16,d_model=16: found" in done.stdout
    assert "m=16,d_model=16,degree=3: found" in done.stdout

    tables = listed(rgr_here, tmp_path, "thresholds", "small.yaml")
    assert {(row["graph"], row["degree"], row["h"]) for row in tables["thresholds"]} == {
        ("regular", degree, h) for degree in (1, 2, 3) for h in (1, 2)
    }
    best = {row["degree"]: row["D_K"] for row in tables["best"]}
    assert best[1] < best[2] <= best[3]
    law = listed(rgr_here, tmp_path, "fit", "small.yaml")["laws"][0]
    assert law["parameters"].keys() == law["low"].keys() == law["high"].keys()
    for verb in ("plan",):
        (rows, *_) = listed(rgr_here, tmp_path, verb, "small.yaml").values()
        assert {row["degree"] for row in rows} == {1, 2, 3}
    page = (tmp_path / "results/studies/small/report/index.html").read_text()
    assert "r = 1" not in page
    assert "r = 3" in page
    runs = pd.read_parquet(tmp_path / "results/runs")
    assert set(runs["degree"]) == {1, 2, 3}
    assert set(runs["cell_id"].groupby(runs["degree"]).nunique()) == {1}


@slow_in_ci
def test_a_study_of_an_edge_list_reaches_the_workers_and_resumes_under_another_path(
    tmp_path: Path, rgr_here: Rgr
) -> None:
    edges = [(p, q) for p in range(16) for q in (p // 2, p // 3 + 5) if p % 5]
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("".join(f"{p},{q}\n" for p, q in sorted(set(edges))))
    search = {**SEARCH, "heads": [2], "confirm_seeds": 0}
    for name in ("a", "b"):
        graph = {"family": "edges", "file": f"{name}.csv"}
        changes = {"graph": graph, "cells": [{"m": 16, "d_model": 16}], "search": search}
        write_study(tmp_path, f"{name}.yaml", **changes, name=name)
    done = rgr_here("run", "a.yaml", "--cpus", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    m_edges = len(set(edges))
    assert f"m=16,d_model=16,edges={m_edges}: found" in done.stdout
    stored = pd.read_parquet(tmp_path / "results/studies/a/thresholds.parquet")
    assert set(stored["n_edges"]) == {m_edges}
    config = json.loads(pd.read_parquet(tmp_path / "results/runs")["config"].iloc[0])
    assert set(config["cell"]["graph"]) == {"family", "digest", "edges", "degree", "items"}
    for file in ("b.yaml", "a"):
        assert listed(rgr_here, tmp_path, "plan", file)["runs_left"] == 0
