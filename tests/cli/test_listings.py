"""What the command line lists beyond the shared formats: studies, runs, failures, thresholds."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from contextlib import chdir
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from rich.cells import cell_len
from rich.console import Console

import rgr_dist as rgr
from rgr_dist.analysis.load import open_results
from rgr_dist.cli import call, listing, running
from rgr_dist.cli.threshold_tables import (
    certificate_text,
)
from rgr_dist.planning.listing import failures
from rgr_dist.running.progress import Summary
from rgr_dist.store.store import Store
from rgr_dist.study.select import cell_named
from rgr_dist.study.study_file import load_study, parse_study
from rgr_dist.study.yaml_document import shipped_studies
from tests.small_study import write_study

Shown = pytest.CaptureFixture[str]


def test_the_version_is_that_of_the_package(capsys: Shown) -> None:
    assert call(["--version"]) == 0
    assert re.fullmatch(r"rgr 0\.1\.0(\+\S+)?\n", capsys.readouterr().out)


def test_every_shipped_study_is_listed_with_its_question_and_cost(capsys: Shown) -> None:
    assert call(["studies", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["studies"]
    assert [row["study"] for row in rows] == shipped_studies()
    assert all(row["question"] and row["paper"] and row["on two cores"] for row in rows)
    assert {row["study"]: row["cells"] for row in rows}["budget"] == 96


@pytest.mark.parametrize("verb", ["plan", "run", "runs", "thresholds", "explain", "bounds"])
def test_the_help_of_a_verb_has_an_example(verb: str, capsys: Shown) -> None:
    assert call([verb, "--help"]) == 0
    assert f"Example: rgr {verb} " in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["thresholds", "runs", "fit", "explain"])
def test_a_study_that_the_store_does_not_know_is_reported_alike(
    verb: str, tmp_path: Path, capsys: Shown
) -> None:
    study, out = write_study(tmp_path), tmp_path / "results"
    cell = ["--cell", "16,8"] if verb == "explain" else []
    assert call([verb, str(study), "--store", str(out), *cell]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"rgr: --store {out}: there is no store; rgr run {study} ")
    assert not out.exists()
    other = ["--set", "search.seeds=3"]
    assert call([verb, str(study), "--store", str(out), *cell, *other]) == 2
    assert f"; rgr run {study} --set search.seeds=3 --store {out} " in capsys.readouterr().err
    Store(out).write_text("studies/other/study.yaml", "")
    assert call([verb, str(study), "--store", str(out), *cell]) == 0
    listed, said = capsys.readouterr()
    assert verb != "thresholds" or not listed
    assert (
        said == f"rgr: {out} holds no run of {study}; rgr run {study} --store {out} trains them\n"
    )


FEW_FACTS = (
    "cells=[{database: {family: function, keys: [16, 32], queries: 8, values: 64}, d_model: 64}]"
)
"""Their ranks are found in no time."""


@pytest.mark.parametrize(
    ("study", "settings"),
    [("gpt2-small", []), ("facts", [FEW_FACTS]), ("softmax", []), ("phases", []), ("one-head", [])],
)
def test_a_study_without_runs_has_empty_answers_whatever_it_finds(
    study: str, settings: list[str], tmp_path: Path, capsys: Shown
) -> None:
    store = tmp_path / "results"
    Store(store).write_text("studies/other/study.yaml", "")
    ask = [study, "--store", str(store), "--format", "json"]
    ask += [word for setting in settings for word in ("--set", setting)]
    for verb in ("thresholds", "runs", "plan"):
        assert call([verb, *ask]) == 0
        told = json.loads(capsys.readouterr().out)
        if verb == "thresholds":
            assert {row["status"] for row in told["thresholds"]} <= {"open"}
    if study == "facts":  # whose ranks are not worked out
        assert call(["report", *ask[:3], *ask[5:]]) == 0
    known = rgr.load(study, settings, store=store)
    assert set(known.thresholds()["status"]) == {"open"}
    assert len(known.best()) == len(load_study(study, settings).cells)


def with_a_failed_run(finished: Path, folder: Path) -> Path:
    """The finished store, with one run of a head marked as failed."""
    store = folder / "results"
    shutil.copytree(finished / "results", store)
    for part in (store / "runs").iterdir():
        part.unlink()
    runs = pd.read_parquet(finished / "results/runs")
    lost = runs["run_id"] == runs.iloc[0]["run_id"]
    runs.loc[lost, ["stop_reason", "error"]] = ["failed", "Traceback:\nMemoryError: full"]
    runs.loc[lost, ["score", "val_score", "threshold_tau"]] = None
    Store(str(store)).append(runs.astype("object").where(runs.notna(), None).to_dict("records"))
    return store


def test_runs_are_listed_and_why_some_failed(finished: Path, tmp_path: Path, capsys: Shown) -> None:
    study, store = finished / "small.yaml", with_a_failed_run(finished, tmp_path)
    ask = [str(study), "--store", str(store)]
    assert call(["runs", *ask, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["runs"]
    stored = pd.read_parquet(finished / "results/runs")
    assert {row["run_id"] for row in rows} == set(stored["run_id"])
    assert {row["cell"] for row in rows} == {"m=16,d_model=8", "m=16,d_model=16"}
    assert {row["study"] for row in rows} == {"small"}

    assert call(["runs", *ask, "--failed", "--format", "json"]) == 0
    (lost,) = json.loads(capsys.readouterr().out)["runs"]
    assert (lost["stop_reason"], lost["score"]) == ("failed", None)
    assert lost["error"] == "Traceback:\nMemoryError: full"
    narrowed = ["--cell", lost["cell"], "--heads", str(lost["h"]), "--format", "json"]
    assert call(["runs", *ask, *narrowed]) == 0
    rows = json.loads(capsys.readouterr().out)["runs"]
    assert {(row["cell"], row["h"]) for row in rows} == {(lost["cell"], lost["h"])}

    (other,) = {"m=16,d_model=8", "m=16,d_model=16"} - {lost["cell"]}
    assert call(["runs", *ask, "--failed", "--cell", other]) == 0
    assert "no run that was asked for failed" in capsys.readouterr().out
    for verb in (["explain", *ask, "--cell", lost["cell"]],):
        assert call(verb) == 0
        assert "1 run failed: MemoryError: full" in capsys.readouterr().out


@pytest.mark.parametrize("how", ["table", "json", "csv"])
def test_what_a_stored_error_says_to_a_terminal_is_escaped(
    how: str, finished: Path, tmp_path: Path, capsys: Shown
) -> None:
    study, store = finished / "small.yaml", with_a_failed_run(finished, tmp_path)
    runs = Store(str(store)).runs()
    (store / "runs").rename(tmp_path / "before")
    runs.loc[runs["stop_reason"] == "failed", "error"] = "\x1b[2J\x9b2J\u202ered"
    Store(str(store)).append(runs.astype("object").where(runs.notna(), None).to_dict("records"))
    assert call(["runs", str(study), "--store", str(store), "--failed", "--format", how]) == 0
    told = capsys.readouterr().out
    assert all(char.isprintable() for line in told.splitlines() for char in line)
    assert "red" in told


def test_reasons_of_failures_are_counted() -> None:
    runs = pd.DataFrame(
        {
            "stop_reason": ["failed", "failed", "converged", "failed"],
            "error": ["at the\nend", "end", None, None],
        }
    )
    assert failures(runs) == ["2 runs failed: end", "1 run failed: no reason stored"]


def test_a_study_that_was_run_is_known_by_its_name(
    finished: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    answers = []
    for study in ("small", "small.yaml"):
        assert call(["thresholds", study, "--format", "json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]


def test_thresholds_are_shown_as_people_write_them(finished: Path, capsys: Shown) -> None:
    ask = [str(finished / "small.yaml"), "--store", str(finished / "results")]
    assert call(["thresholds", *ask, "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert call(["thresholds", *ask]) == 0
    shown = capsys.readouterr().out
    for row in listed["best"]:
        assert f"{row['D_K']} [{row['D_K_low']}–{row['D_K_high'] or '?'}]" in shown
    for row in listed["thresholds"]:
        if row["status"] == "found":
            assert f"{row['d_k']} ✓ " in shown
        elif row["D_K_low"]:
            assert f"≥ {row['D_K_low']}" in shown


@pytest.mark.parametrize(
    ("passed", "failed", "target", "shown"),
    [
        ((9, 0.9951), (8, 0.98449), 0.99, "9 ✓ .995 | 8 ✗ .984"),
        ((1, 1.0), None, 0.99, "1 ✓ 1.000"),
        (None, None, 0.99, None),
        (None, (5, 0.98797), 0.99, "5 ✗ .988"),
        # a fail is never shown by a mean that would pass
        ((6, 1.0), (5, 0.99998), 1.0, "6 ✓ 1.000 | 5 ✗ .999"),
        (None, (5, 0.98996), 0.99, "5 ✗ .989"),
        ((6, 0.1), (5, 0.10001), 0.1, "6 ✓ .100 | 5 ✗ .101"),
        ((3, 0.999, 10), (2, 0.55, 2), 0.99, "3 ✓ .999 | 2 ✗ .550 of 2"),
        ((6, 0.1, 3), (5, None, 2), 0.1, "6 ✓ .100 | 5 ✗ diverged of 2"),
    ],
)
def test_a_certificate_in_short(
    passed: tuple | None, failed: tuple | None, target: float, shown: str | None
) -> None:
    keys = ("d_k", "mean_score", "n_seeds")
    ends = {"pass": passed, "fail": failed}
    certificate = {
        end: probe and dict(zip(keys, probe, strict=False)) for end, probe in ends.items()
    }
    assert certificate_text(certificate, target) == shown


ROWS = [
    {
        "m": 64,
        "steps_left": 1_234_567,
        "score": 0.98765,
        "why": "one word after another",
        "ok": True,
    },
    {"m": 512, "steps_left": None, "score": 0.5, "why": "none", "ok": False},
]


@pytest.mark.parametrize("width", [40, 60, 200])
def test_a_narrow_terminal_breaks_no_number_and_no_line_is_cut(
    width: int, capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(width=width, force_terminal=True, no_color=True, legacy_windows=False)
    monkeypatch.setattr(listing, "_console", lambda: console)
    listing.print_listing({"rows": ROWS}, listing.Format.TABLE)
    lines = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(cell_len, lines)) <= width
    said = " ".join(" ".join(lines).split())
    for number in ("64", "512", "1,234,567", "0.9877", "0.5", "yes", "no"):
        assert re.search(rf"(?<!\S){number}(?!\S)", said), number
    assert [word for word in ["one", "word", "after", "another"] if word not in said] == []


def test_a_sentence_is_broken_between_words_and_a_command_not_at_all(
    capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(width=20, force_terminal=True, no_color=True, legacy_windows=False)
    monkeypatch.setattr(listing, "_console", lambda: console)
    listing.say("a sentence of several words")
    listing.say("next: rgr explain quickstart --cell m=64,d_model=16")
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "a sentence of",
        "several words",
        "next: rgr explain quickstart --cell m=64,d_model=16",
    ]


def test_no_failed_run_is_said_in_words(finished: Path, capsys: Shown) -> None:
    with chdir(finished):
        assert call(["runs", "small.yaml", "--failed"]) == 0
    assert capsys.readouterr().out == "no run of small.yaml failed\n"


def test_the_next_command_can_be_pasted(tmp_path: Path, capsys: Shown) -> None:
    graphs = [{"family": "edges", "file": f"my {name}.csv"} for name in "ab"]
    for graph, edges in zip(graphs, ("0,1\n1,2\n", "0,1\n0,2\n"), strict=True):
        (tmp_path / graph["file"]).write_text(edges)
    cells = [{"m": 16, "d_model": 8, "graph": graph} for graph in graphs]
    study = parse_study({"name": "x", "cells": cells}, homes=[tmp_path])
    results = open_results(study, Store(tmp_path / "results"))
    running._tell(results, "page", Console(), Summary(), "x.yaml")
    (line,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith("next: ")]
    assert cell_named(study, shlex.split(line)[-1]) == study.cells[0]


def test_an_empty_listing_has_its_columns_as_csv(
    finished: Path, tmp_path: Path, capsys: Shown
) -> None:
    def table(*arguments: str) -> pd.DataFrame:
        assert call([*arguments, "--format", "csv"]) == 0
        return pd.read_csv(StringIO(capsys.readouterr().out))

    study, store = str(finished / "small.yaml"), ["--store", str(finished / "results")]
    every = table("runs", study, *store)
    for none in (["--failed", *store], ["--store", str(tmp_path)]):
        Store(tmp_path).write_text("studies/other/study.yaml", "")
        listed = table("runs", study, *none)
        assert listed.empty
        assert [*listed] == [*every]
    assert [*table("verify", *store)] == ["file", "run_id", "problem"]


def test_a_plan_names_the_edge_list_and_counts_its_items_and_edges(
    tmp_path: Path, capsys: Shown
) -> None:
    (tmp_path / "own.csv").write_text("a,b\nb,c\nc,a\n")
    cell = {"d_model": 8, "graph": {"family": "edges", "file": "own.csv"}}
    own = {"name": "own", "context": {"length": 3}, "cells": [cell]}
    (tmp_path / "own.yaml").write_text(json.dumps(own))
    assert call(["plan", str(tmp_path / "own.yaml"), "--store", str(tmp_path)]) == 0
    assert "\nread: own.csv: 3 items and 3 edges\n" in capsys.readouterr().out


def test_a_table_that_is_wider_than_its_place_keeps_every_digit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = {f"column_{i}": 100_000 + i for i in range(40)}
    rows = [{**row, "model": "multi_query"}]
    listing.print_listing({"x": rows}, listing.Format.TABLE)
    head, line = capsys.readouterr().out.splitlines()[-2:]
    assert line.split()[:40] == [f"{value:,}" for value in row.values()]
    assert head.split()[-1] == "model"
