"""Why a threshold is what it is, from made-up runs: no Ray, no training."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import shlex
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from rgr_dist.cli import call
from rgr_dist.engines.choose import check_engine
from rgr_dist.planning.budgets import records
from rgr_dist.planning.explain import command_to_repeat, explain_cell
from rgr_dist.planning.first_guesses import papers_expectation
from rgr_dist.planning.portfolio import stored_search
from rgr_dist.planning.tables import decision_rows, threshold_rows, write_tables
from rgr_dist.store.store import Store
from rgr_dist.study.errors import StudyError
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import load_study, parse_study
from tests.planning.made_up_runs import opened, study_of, trained
from tests.store.made_up_runs import run_row

Rows = list[dict[str, Any]]


def explained(study: Study, rows: Rows, *heads: int) -> tuple[dict[str, Rows], dict[str, Any]]:
    with TemporaryDirectory() as folder:
        store = Store(folder)
        store.append(rows)
        return explain_cell(study, study.cells[0], store, heads)


def test_it_lists_every_decision_in_order_and_counts_every_run_once() -> None:
    study = study_of(seeds=10)
    rows = trained(study)
    sections, facts = explained(study, rows)
    decided = decision_rows(study, opened(study, rows))
    keys = ("step", "h", "d_k", "D_K", "verdict", "mean_score", "evidence")
    assert [{k: row[k] for k in keys} for row in sections["decisions"]] == [
        {k: row[k] for k in keys} for row in decided
    ]
    assert facts["finished"] is True
    assert facts["test"] == "mean of 10 seeds at least 0.99"
    assert facts["within"].startswith(f"{study.cells[0].training.max_steps:,} training steps; ")
    assert explained(study_of(seeds=1), [])[1]["test"] == "mean of 1 seed at least 0.99"
    for row, decision in zip(sections["decisions"], decided, strict=True):
        assert row["ran"] + row["spared"] == 10
        own = [one for one in rows if (one["h"], one["d_k"]) == (row["h"], row["d_k"])]
        new = own[row["ran"] - row["new_seeds"] : row["ran"]]
        assert (row["why"], row["ran"]) == (decision["reason"], decision["n_seeds"])
        assert row["seconds"] == 1.5 * row["new_seeds"]
        ended = [one["finished_at"].isoformat(timespec="seconds") for one in new]
        assert row["ended"] == max(ended, default=None)
    needed = {
        (row["h"], row["d_k"], seed) for row in sections["decisions"] for seed in range(row["ran"])
    }
    assert facts["runs"] == len(needed)
    assert facts["steps"] == 1000 * len(needed)
    assert facts["seconds"] == 1.5 * len(needed)
    assert facts["probes"] == len({(h, d_k) for h, d_k, _ in needed})
    last = max(r["finished_at"] for r in rows if (r["h"], r["d_k"], r["seed"]) in needed)
    ended = [row["ended"] for row in sections["decisions"] if row["ended"]]
    assert max(ended) == last.isoformat(timespec="seconds")
    own = papers_expectation(study.cells[0])
    near = f"expected D_K near {own.D_K:.0f}, h near {own.h:.1f}"
    assert facts["start"] == f"{near}, from the paper's constants"


def test_it_tells_the_runs_that_were_there_before_they_were_needed() -> None:
    study = study_of()
    alone, _ = explained(study, trained(study))
    assert {row["stored_before"] for row in alone["decisions"]} == {None, 0}
    earlier = trained(study_of(heads=[8], keep_within=0.1))
    shared, facts = explained(study, trained(study, earlier))
    before = sum(row["stored_before"] or 0 for row in shared["decisions"])
    first = shared["decisions"][0]
    unknown = first["new_seeds"] if first["h"] == 8 else 0
    assert before + unknown == sum(row["new_seeds"] for row in shared["decisions"] if row["h"] == 8)
    assert facts["runs"] > before > 0


def test_it_counts_the_stored_runs_that_no_decision_needed() -> None:
    study = study_of()
    rows = trained(study)
    assert "unused_runs" not in explained(study, rows)[1]
    (cell,) = study.cells
    ahead = [run_row(h, 22 // h, seed, cell) for h, seed in ((2, 0), (2, 1), (1, 0))]
    assert not {(row["h"], row["d_k"]) for row in rows} & {(2, 11), (1, 22)}
    assert explained(study, [*rows, *ahead])[1]["unused_runs"] == 3
    assert explained(study, [*rows, *ahead], 1)[1]["unused_runs"] == 1


def test_the_order_and_repetition_of_rows_change_nothing() -> None:
    study = study_of()
    rows = trained(study)
    others = random.Random(1).sample(rows, len(rows))
    assert explained(study, others) == explained(study, rows)


def test_a_heads_end_comes_with_its_certificate() -> None:
    study = study_of(max_D_K=8)
    rows = trained(study)
    sections, _ = explained(study, rows)
    ends = {row["h"]: row for row in sections["heads"]}
    for row in threshold_rows(study, opened(study, rows)):
        same = ("h", "status", "d_k", "D_K", "D_K_low", "D_K_high", "because", "confirmed")
        assert {key: row[key] for key in same}.items() <= ends[row["h"]].items()
    assert (ends[2]["status"], ends[2]["d_k"], ends[2]["D_K"]) == ("found", 4, 8)
    assert (ends[2]["pass_mean"], ends[2]["fail_mean"]) == (1.0, 0.5)
    assert ends[2]["because"] == "passes at d_k = 4, fails at 3"
    assert (ends[1]["status"], ends[1]["pass_mean"], ends[1]["fail_mean"]) == (
        "censored",
        None,
        0.5,
    )
    assert [row["status"] for row in explained(study, [])[0]["heads"]] == ["open"] * 3


def test_a_contradiction_and_its_retest_are_told() -> None:
    study = study_of(heads=[2], extra_seeds=3)
    (cell,) = study.cells

    def score(d_k: int, seed: int) -> float:
        """Passes from 3 on without ever clearing the target, but for the largest width."""
        return (1.0, 0.98)[seed % 2] if 3 <= d_k < 12 else 0.5

    rows = [run_row(2, d, s, cell, score=score(d, s)) for d in range(1, 13) for s in range(5)]
    sections, _ = explained(study, rows)
    (end,) = sections["heads"]
    assert (end["status"], end["pass_mean"], end["fail_mean"]) == ("inconsistent", 0.992, 0.5)
    assert end["because"] == (
        "passes at d_k = 3, fails above it at 12; next: more seeds of both (search.extra_seeds), "
        "or every width there with all seeds (search.mode: grid, its widths as D_K)"
    )
    retests = [row for row in sections["decisions"] if row["why"].startswith("retest")]
    assert [(row["d_k"], row["ran"], row["spared"]) for row in retests] == [(3, 5, 0), (12, 5, 0)]
    before = [row for row in sections["decisions"] if row not in retests]
    assert {row["d_k"] for row in before} >= {3, 12}
    assert {row["ran"] + row["spared"] for row in before} == {2}, "of the seeds at that time"


def test_a_run_read_off_a_longer_one_took_no_steps() -> None:
    rows = trained(study_of(heads=[2]))
    for row in rows[:2]:
        row["trained_to"] = 2 * row["max_steps"]
    sections, facts = explained(study_of(heads=[2]), rows)
    taken = sum(row["steps"] for row in sections["decisions"])
    assert facts["steps"] == taken == sum(row["steps"] for row in rows[2:])


EDGES = {"family": "edges", "file": "edges.csv"}


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"training": {"max_steps": 7}},
        {"training": {"max_steps": 7}, "context": {"length": 3}},
        {
            "training": {"initial_scale": 2},
            "cells": [{"m": 8, "d_model": 4, "training": {"initial_scale": 1}}],
        },
        {"cells": [{"m": 9, "d_model": 4}, {"m": 8, "d_model": 4, "training": {"patience": 2}}]},
        {"graph": {"family": "regular", "degree": [3, 2]}},
        {"graph": {"family": "regular", "degree": [3, 2]}, "training": {"max_steps": 7}},
        {"cells": [{"m": 9, "d_model": 4}, {"m": 8, "d_model": 4, "graph": EDGES}]},
        {"search": {"retest_steps": 4}},
        {"model": ["max", "softmax"]},
    ],
)
@pytest.mark.parametrize("overrides", [[], ["training.patience=9", "search.seeds=2"]])
def test_the_command_that_repeats_it_runs_the_same_cell_and_search(
    parts: dict[str, Any], overrides: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "a study.yaml"
    (tmp_path / "edges.csv").write_text("0,1\n0,2\n")
    document = {"name": "x", "cells": [{"m": 16, "d_model": [4, 8]}], "context": {"length": 4}}
    path.write_text(yaml.safe_dump(document | parts))
    study = load_study(str(path), overrides)
    cell = study.cells[-1]
    store = Store(tmp_path)
    store.append([run_row(1, 1, 0, cell)])
    command = shlex.split(command_to_repeat(str(path), overrides, cell, store))
    assert command[:3] == ["rgr", "run", str(path)]
    assert command[-4:] == ["--engine", "made up", "--store", "repeat"]
    settings = [command[i + 1] for i, word in enumerate(command) if word == "--set"]
    again = load_study(command[2], settings)
    assert again.cells == (cell,)
    assert again.search == study.search


@pytest.mark.parametrize("search", [{"retest_steps": 2}, {"target": 0.1}, {}])
def test_the_command_that_repeats_a_cell_beside_others_judges_it_as_they_do(
    search: dict[str, Any], tmp_path: Path
) -> None:
    path, cells = tmp_path / "study.yaml", [{"m": 16, "d_model": 8}]
    search = {"mode": "widest", "heads": [1, 2], **search}
    models = ["max", "softmax", {"construction": "ours"}]
    document = {"name": "x", "model": models, "cells": cells, "search": search}
    path.write_text(yaml.safe_dump(document))
    study = load_study(str(path))
    for cell in study.cells:
        command = shlex.split(command_to_repeat(str(path), [], cell, Store(tmp_path)))
        settings = [command[i + 1] for i, word in enumerate(command) if word == "--set"]
        again = load_study(str(path), settings)
        assert again.cells == (cell,)
        assert again.target_of(cell) == study.target_of(cell)
        own = again.search.model_dump() | {"target": study.search.target}
        assert own == study.search.model_dump()


def test_runs_of_a_layers_file_as_it_was_before_are_told(tmp_path: Path) -> None:
    layer, store = tmp_path / "mine.py", Store(tmp_path)
    first = (files("rgr_dist.models") / "first_layer.py").read_text("utf-8")
    document = {"name": "x", "model": "mine.py", "cells": [{"m": 16, "d_model": 8}]}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(document))

    def told(text: str, runs: int) -> str | None:
        layer.write_text(text)
        study = load_study(str(tmp_path / "x.yaml"))
        (cell,) = study.cells
        store.append([run_row(1, 1, seed, cell) for seed in range(runs)])
        write_tables(study, store, stored_search(study, store).portfolio)
        return explain_cell(study, cell, store, ())[1].get("changed")

    assert told(first, 3) is None
    layer.write_text(first + "# changed\n")
    study = load_study(str(tmp_path / "x.yaml"))
    said = explain_cell(study, study.cells[0], store, ())[1]["changed"]
    assert said == f"{layer}: changed since 3 stored runs, which now count as another layer's"
    assert told(first + "# changed\n", 1) is None, "its own runs are all that its tables rest on"


@pytest.mark.parametrize("stored", [["lanes, bfloat16"], ["fused"], ["fused", "lanes"]])
def test_the_engine_of_that_command_is_one_that_run_takes(
    stored: list[str], tmp_path: Path
) -> None:
    study = load_study("quickstart")
    cell, store = study.cells[0], Store(tmp_path)
    store.append([run_row(1, 1, n, cell) | {"engine": name} for n, name in enumerate(stored)])
    command = shlex.split(command_to_repeat("quickstart", [], cell, store))
    named = [command[i + 1] for i, word in enumerate(command) if word == "--engine"]
    assert named == ([stored[0].split(",")[0]] if len(stored) == 1 else [])
    check_engine(*named or ["auto"], [cell.model])
    made = load_study("one-head").cells[0]
    store.append([run_row(1, 1, 0, made) | {"engine": "construction"}])
    assert "--engine" not in command_to_repeat("one-head", [], made, store)
    facts = explain_cell(load_study("one-head"), made, store)[1]
    assert facts["made_by"] == "one-head (not in the paper), not trained"


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study in ``made-up.yaml`` whose runs are in ``results``."""
    monkeypatch.chdir(tmp_path)
    study = study_of([{"m": [16, 32], "d_model": 8}])
    Path("made-up.yaml").write_text(study.to_yaml())
    Store("results").append(trained(study))
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
    rows = list(csv.DictReader(io.StringIO(shown["csv"])))
    assert [row["table"] for row in rows] == [
        name for name in ("decisions", "heads") for _ in answer[name]
    ]
    assert answer["repeat"] in " ".join(shown["table"].split())
    first, *lines = shown["table"].splitlines()
    best = "D_K = 8 at h = 2: passes at d_k = 4, fails at 3 (means 1.0000, 0.5000)"
    assert first == f"smallest {best}"
    asked_of_means = [line for line in lines if "interval:" in line]
    assert asked_of_means
    assert not [line for line in asked_of_means if re.search("  (pass|fail)  ", line)]
    assert call([*asked[:-2], "--heads", "2", "--format", "json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert [row["h"] for row in alone["heads"]] == [2]
    assert alone["decisions"] == [row for row in answer["decisions"] if row["h"] == 2]
    assert alone["runs"] == sum(row["new_seeds"] for row in alone["decisions"]) < answer["runs"]


def test_only_an_empty_store_is_said_to_hold_no_run(
    stored: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = Store("results").runs()
    begun = rows[(rows["m"] == 16) & (rows["h"] == 8)]
    Store("begun").append(records(begun))
    Store("other").append([run_row(1, 1, 0)])
    asked = ("explain", "made-up.yaml", "--cell")
    for cell, head, where, is_told in (
        ("m=16", "2", "begun", False),
        ("m=32", "8", "begun", False),
        ("m=16", "8", "other", True),
    ):
        call([*asked, cell, "--heads", head, "--store", where, "--format", "json"])
        shown = capsys.readouterr()
        assert json.loads(shown.out)["decisions"] == []
        assert ("holds no run of made-up" in shown.err) == is_told, where


def test_a_cell_or_head_that_is_not_there_is_told_in_one_line(
    stored: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    for said, *options in (
        ("cell m=64: not in made-up; it has m=16,d_model=8; m=32,d_model=8", "m=64"),
        ("cell d_model=8: names 2 cells; name one of m=16,d_model=8; m=32,d_model=8", "d_model=8"),
        ("h = 4: not in made-up; it has 1, 2, 8", "m=16", "--heads", "4"),
    ):
        assert call(["explain", "made-up.yaml", "--cell", *options]) == 2
        shown = capsys.readouterr()
        assert (shown.out, len(shown.err.splitlines())) == ("", 1)
        assert said in shown.err


def test_a_head_beyond_all_heads_is_refused() -> None:
    study = study_of(heads="all", max_D_K=4)
    with pytest.raises(StudyError) as caught:
        explained(study, [], 500)
    assert str(caught.value) == (
        "h = 500: m=16,d_model=8 is searched up to D_K = 4 (search.max_D_K), which has no room for "
        "that many heads; valid: 1 to 4"
    )


def test_an_error_that_diverged_is_null_in_json() -> None:
    """A run of no bound that diverged has an infinite error, which JSON cannot hold."""
    document = {
        "name": "errors",
        "model": "value",
        "cells": [{"m": 16, "d_model": 8}],
        "search": {"heads": [1], "seeds": 2, "max_D_K": 4, "target": 0.1, "intervals": False},
    }
    study = parse_study(document)
    (cell,) = study.cells
    rows = [
        run_row(1, d_k, seed, cell, 0, score=None, val_score=None, stop_reason="diverged")
        for d_k in range(1, 5)
        for seed in (0, 1)
    ]
    sections, facts = explained(study, rows)
    assert {row["mean_score"] for row in sections["decisions"]} == {None}
    assert facts["finished"] is True
    assert facts["test"] == "mean of 2 seeds at most 0.1"
    json.dumps(sections, allow_nan=False)
