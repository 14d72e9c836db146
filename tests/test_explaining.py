"""Why a threshold is what it is, from made-up runs: no Ray, no training."""

from __future__ import annotations

import csv
import io
import json
import random
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from rgr_dist.cli import call
from rgr_dist.explaining import command_to_repeat, explain_cell
from rgr_dist.replay import decision_rows, open_portfolio
from rgr_dist.results.store import Store
from rgr_dist.study import Study
from rgr_dist.study_file import load_study
from tests.results.made_up_runs import run_row
from tests.test_replay import WIDTHS, runs_of, study_of
from tests.test_replay import trained as plain_rows

Rows = list[dict[str, Any]]


def rows_in_order(study: Study, first: Rows | None = None) -> Rows:
    """Full rows of every run that a study asks for beyond the first ones, a minute apart."""
    rows = list(first or [])
    by_id = {cell.cell_id: cell for cell in study.cells}
    for minute, row in enumerate(plain_rows(study, rows)[len(rows) :], len(rows)):
        h, d_k, seed = row["h"], row["d_k"], row["seed"]
        cell = by_id[row["cell_id"]]
        rows.append(run_row(h, d_k, seed, cell, minute, score=row["score"], steps=1000))
    return rows


def explained(study: Study, rows: Rows) -> tuple[dict[str, Rows], dict[str, Any]]:
    return explain_cell(study, study.cells[0], study.search.heads, runs_of(rows))


def test_it_lists_every_decision_in_order_and_counts_every_run_once() -> None:
    study = study_of(seeds=10)
    rows = rows_in_order(study)
    sections, facts = explained(study, rows)
    decided = decision_rows(study, open_portfolio(study, runs_of(rows)))
    keys = ("step", "h", "d_k", "D_K", "verdict", "mean_score", "evidence")
    assert [{k: row[k] for k in keys} for row in sections["decisions"]] == [
        {k: row[k] for k in keys} for row in decided
    ]
    assert facts["finished"] is True
    for row in sections["decisions"]:
        assert (row["ran"], row["ran"] + row["spared"]) == (len(row["seeds"]), 10)
    needed = {(row["h"], row["d_k"], s) for row in sections["decisions"] for s in row["seeds"]}
    assert facts["runs"] == len(needed)
    assert facts["steps"] == 1000 * len(needed)


def test_seeds_that_were_spared_come_with_the_inequality_that_spared_them() -> None:
    sections, _ = explained(study := study_of(seeds=10, intervals=False), rows_in_order(study))
    spared = [row for row in sections["decisions"] if row["spared"]]
    assert spared
    for row in spared:
        assert (row["verdict"], row["seeds"]) == ("fail", [0, 1])
        assert "2 seeds lack 1.0000 > 0.1 = n(1 - target)" in row["evidence"]


def test_it_tells_the_runs_that_were_there_before_they_were_needed() -> None:
    study = study_of()
    alone, _ = explained(study, rows_in_order(study))
    assert {row["stored_before"] for row in alone["decisions"]} == {None, 0}
    earlier = rows_in_order(study_of(heads=[8], keep_within=0.1))
    shared, facts = explained(study, rows_in_order(study, earlier))
    before = sum(row["stored_before"] or 0 for row in shared["decisions"])
    first = shared["decisions"][0]
    unknown = first["new_seeds"] if first["h"] == 8 else 0
    assert before + unknown == sum(row["new_seeds"] for row in shared["decisions"] if row["h"] == 8)
    assert facts["runs"] > before > 0


def test_the_order_and_repetition_of_rows_change_nothing() -> None:
    study = study_of()
    rows = rows_in_order(study)
    others = random.Random(1).sample(rows, len(rows))
    assert explained(study, others) == explained(study, rows)


BOUNDS = {  # what the search is given, then the head, its status and its bound
    "found": ({}, 2, "found", "d_k = 4 (mean 1.0000 of 2 seeds) passes, d_k = 3 (mean 0.5000"),
    "pruned by a fail": ({"keep_within": 0.1}, 8, "pruned", "fails up to D_K = 8; the next is 16"),
    "pruned at once": (
        {"keep_within": 0.1, "heads": [1, 16], "max_D_K": 64},
        16,
        "pruned",
        "needs D_K = 16 at the least; D_K up to 9 is kept",
    ),
    "censored": ({"max_D_K": 8}, 1, "censored", "d_k = 8 (mean 0.5000 of 2 seeds) fails, and no"),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_a_heads_bound_says_what_ended_its_search(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WIDTHS, 16, 3)
    search, h, status, said = BOUNDS[case]
    study = study_of(**search)
    sections, _ = explained(study, rows_in_order(study))
    row = next(row for row in sections["heads"] if row["h"] == h)
    assert row["status"] == status
    assert row["bound"].startswith(said)


def test_an_open_head_and_a_contradiction_are_told() -> None:
    study = study_of(heads=[2])
    (cell,) = study.cells
    assert explained(study, [])[0]["heads"][0]["bound"] == "above d_k = 0"

    def score(d_k: int, seed: int) -> float:
        """Passes from 3 on without ever clearing the target, but for the largest width."""
        return (1.0, 0.98)[seed] if 3 <= d_k < 12 else 0.5

    rows = [run_row(2, d, s, cell, score=score(d, s)) for d in range(1, 13) for s in (0, 1)]
    (row,) = explained(study, rows)[0]["heads"]
    assert row["status"] == "inconsistent"
    assert row["bound"] == (
        "d_k = 3 (mean 0.9900 of 2 seeds) passes, yet d_k = 12 (mean 0.5000 of 2 seeds) fails"
    )


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"training": {"max_steps": 7}},
        {"training": {"max_steps": 7}, "context": {"length": 3}},
        {"cells": [{"m": 9, "d_model": 4}, {"m": 8, "d_model": 4, "training": {"patience": 2}}]},
    ],
)
@pytest.mark.parametrize("overrides", [[], ["training.patience=9", "search.seeds=2"]])
def test_the_command_that_repeats_it_runs_the_same_cell_and_search(
    parts: dict[str, Any], overrides: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "a study.yaml"
    document = {"name": "x", "cells": [{"m": 16, "d_model": [4, 8]}], "context": {"length": 4}}
    path.write_text(yaml.safe_dump(document | parts))
    study = load_study(str(path), overrides)
    cell = study.cells[-1]
    rows = runs_of([run_row(1, 1, 0, cell)])
    command = shlex.split(command_to_repeat(str(path), overrides, cell, rows))
    assert command[:3] == ["rgr", "run", str(path)]
    assert command[-4:] == ["--engine", "made up", "--out", "repeat"]
    settings = [command[i + 1] for i, word in enumerate(command) if word == "--set"]
    again = load_study(command[2], settings)
    assert (again.cells, again.search) == ((cell,), study.search)


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study in ``made-up.yaml`` whose runs are in ``results``."""
    monkeypatch.chdir(tmp_path)
    study = study_of([{"m": [16, 32], "d_model": 8}])
    Path("made-up.yaml").write_text(study.to_yaml())
    Store("results").append(rows_in_order(study))
    return study


def test_explain_in_every_format_and_for_one_head(
    stored: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = {}
    for how in ("table", "json", "csv"):
        asked = ["explain", "made-up.yaml", "--cell", "d_model=8,m=16", "--format", how]
        assert call(asked) == 0
        shown[how] = capsys.readouterr().out
    answer = json.loads(shown["json"])
    assert [row["h"] for row in answer["heads"]] == [1, 2, 8]
    assert answer["repeat"].startswith("rgr run made-up.yaml --set 'cells=[")
    assert len(list(csv.DictReader(io.StringIO(shown["csv"])))) == len(answer["decisions"])
    assert answer["repeat"] in " ".join(shown["table"].split())
    assert call([*asked[:-2], "--heads", "2", "--format", "json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert [row["h"] for row in alone["heads"]] == [2]
    assert alone["decisions"] == [row for row in answer["decisions"] if row["h"] == 2]
    assert alone["runs"] == answer["runs"]


def test_a_cell_or_head_that_is_not_there_is_told_in_one_line(
    stored: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    for said, *options in (
        ("--cell m=64: not in made-up; valid: m=16,d_model=8; m=32,d_model=8", "m=64"),
        ("--cell d_model=8: names 2 cells; valid: m=16,d_model=8; m=32,d_model=8", "d_model=8"),
        ("--heads 4: not in made-up; valid: 1, 2, 8", "m=16", "--heads", "4"),
    ):
        assert call(["explain", "made-up.yaml", "--cell", *options]) == 2
        shown = capsys.readouterr()
        assert (shown.out, len(shown.err.splitlines())) == ("", 1)
        assert said in shown.err
