"""``rgr tune`` on a small study: real trials, their journal, and what it refuses."""

from __future__ import annotations

import io
import json
import shlex
import shutil
import subprocess
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rgr_dist.cli import call
from rgr_dist.running.execution import Execution
from rgr_dist.store.store import Store
from rgr_dist.study.study_file import load_study, parse_study
from rgr_dist.tuning.driver import tune_protocol
from rgr_dist.tuning.training_protocol import SPACE, TunedProbe, Tuning
from tests.small_study import RGR, SMALL, Refused, write_study

SHORT = {"max_steps": 400, "check_every": 100, "patience": 2, "learning_rate": 0.01}
SHORT |= {"validation_contexts": 50, "test_contexts": 100}
TRIALS = 3
TRIALS = 3


def tune(folder: Path, trials: int, *more: object) -> dict[str, Any]:
    options = ("--trials", trials, "--cpus", 1, "--D_K", 2, "--format", "json", *more)
    with chdir(folder), redirect_stdout(io.StringIO()) as told:
        assert call(list(map(str, ["tune", "small.yaml", *options]))) == 0
    answer: dict[str, Any] = json.loads(told.getvalue())
    return answer


@pytest.fixture(scope="module")
def tuned(_ray: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder where some protocols of a short study have been tried, and what was printed."""
    folder = tmp_path_factory.mktemp("tuned")
    write_study(folder, training=SHORT)
    return folder, tune(folder, TRIALS)


def test_tune_prints_the_best_protocol_as_a_section_of_a_study(
    tuned: tuple[Path, dict[str, Any]],
) -> None:
    folder, answer = tuned
    assert [trial["trial"] for trial in answer["trials"]] == list(range(TRIALS))
    done = [trial for trial in answer["trials"] if trial["state"] == "complete"]
    best = max(done, key=lambda trial: trial["score"])
    assert answer["training"] == {key: best[key] for key in SPACE}
    assert answer["score"] == best["score"] >= answer["present_score"] == done[0]["score"]
    assert {key: done[0][key] for key in SPACE} == {
        "learning_rate": 0.01,
        "sharpness": 10.0,
        "initial_scale": 1.0,
    }
    assert [(row["d_model"], row["D_K"]) for row in answer["tuned"]] == [(8, 2), (16, 2)]
    write_study(folder, "better.yaml", training=SHORT | answer["training"])
    study = load_study(str(folder / "better.yaml"))
    runs = pd.read_parquet(folder / "results/runs").set_index("run_id")
    ids = [
        TunedProbe(cell, row["h"], row["d_k"]).run({}, seed).run_id
        for cell, row in zip(study.cells, answer["tuned"], strict=True)
        for seed in range(3)
    ]
    assert runs.loc[ids, "score"].mean() == pytest.approx(answer["score"])
    for row, place in zip(answer["tuned"], range(0, len(ids), 3), strict=True):
        assert runs.loc[ids[place : place + 3], "score"].mean() == pytest.approx(row["score"])
    present = [row["present_score"] for row in answer["tuned"]]
    assert sum(present) / 2 == pytest.approx(answer["present_score"])


def test_scores_that_the_stored_runs_contradict_and_other_keys_are_told(
    tuned: tuple[Path, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refused: Refused,
) -> None:
    folder, answer = tuned
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    journal = tmp_path / "results/studies/small/tuning.journal"
    text = journal.read_text()
    assert text.count(f'"values":[{answer["score"]}]') == 1
    score = f'"values":[{answer["score"]}]'
    for old, new, told in (
        (score, '"values":[0.875]', "has the score 0.875, and its stored runs have "),
        (
            '"sharpness"',
            '"sharpnes"',
            "has other keys than those tuned, learning_rate, sharpness, ",
        ),
    ):
        journal.write_text(text.replace(old, new))
        refused(told, "tune", "small.yaml", "--trials", str(TRIALS), "--cpus", "1", "--D_K", "2")


def test_what_is_printed_ends_with_the_command_that_uses_the_protocol(
    tuned: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    folder, answer = tuned
    monkeypatch.chdir(folder)
    options = ["--trials", "1", "--D_K", "2", "--set", "context.positive_rate=0.5"]
    assert call(["tune", "small.yaml", *options]) == 0  # trains nothing: there are more
    name, _, command = capsys.readouterr().out.splitlines()[-1].partition(": ")
    verb, source, *settings = shlex.split(command)[1:]
    assert (name, verb, source) == ("to use it", "run", "small.yaml")
    assert settings[::2] == ["--set"] * 5
    study = load_study(source, settings[1::2])
    assert study.name == "small-tuned"
    for cell in study.cells:
        assert {key: getattr(cell.training, key) for key in SPACE} == answer["training"]
        assert cell.context.positive_rate == 0.5


def test_several_cells_are_tuned_together_in_the_studys_order(
    tuned: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    folder, before = tuned
    monkeypatch.chdir(folder)
    cells = ["--cell", "d_model=16", "--cell", "d_model=8", "--cell", "m=16"]
    options = ["--trials", "1", "--D_K", "2", "--format", "json", *cells]
    assert call(["tune", "small.yaml", *options]) == 0  # trains nothing: there are more
    answer = json.loads(capsys.readouterr().out)
    assert answer["trials_loaded"] == TRIALS
    assert answer["tuned"] == before["tuned"]


@pytest.mark.slow
def test_trials_and_runs_are_kept_and_running_again_goes_on(
    tuned: tuple[Path, dict[str, Any]],
) -> None:
    folder, before = tuned
    journal = folder / "results/studies/small/tuning.journal"
    assert Path(before["journal"]) == journal
    runs_before = pd.read_parquet(folder / "results/runs")
    journal.write_bytes(journal.read_bytes() + b'{"op_code": 5, "torn')  # a writer was killed
    after = tune(folder, TRIALS + 2)
    assert after["trials_loaded"] == TRIALS
    assert after["trials"][:TRIALS] == before["trials"]
    assert len(after["trials"]) == TRIALS + 2
    assert (
        len({json.dumps([trial[key] for key in SPACE]) for trial in after["trials"]}) == TRIALS + 2
    )
    runs = pd.read_parquet(folder / "results/runs")
    assert runs["run_id"].is_unique
    seeds = sum(trial["seeds"] for trial in after["trials"])
    assert len(runs) == seeds * len(after["tuned"])
    assert set(runs_before["run_id"]) < set(runs["run_id"])
    assert (runs["D_K"] == 2).all()


@pytest.mark.slow
def test_a_tuning_that_is_killed_repeats_no_run_and_ends_as_if_it_had_not_been(
    tuned: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    write_study(tmp_path, training=SHORT)
    command = [*RGR, "tune", "small.yaml", "--trials", f"{TRIALS}", "--cpus", "1", "--D_K", "2"]
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as driver:
        assert driver.stderr is not None
        next(line for line in driver.stderr if f"1 of {TRIALS}" in line)
        driver.kill()
    stored = pd.read_parquet(tmp_path / "results/runs")
    answer = tune(tmp_path, TRIALS)
    runs = pd.read_parquet(tmp_path / "results/runs")
    assert runs["run_id"].is_unique
    assert set(stored["run_id"]) <= set(runs["run_id"])
    finished = [trial for trial in answer["trials"] if trial["state"] != "failed"]
    assert len(finished) == TRIALS
    assert finished[0] | {"trial": 0} == tuned[1]["trials"][0]
    assert answer["present_score"] == tuned[1]["present_score"]


@pytest.mark.slow
@pytest.mark.usefixtures("_ray")
def test_trials_whose_workers_are_lost_are_told_and_run_again(tmp_path: Path) -> None:
    study, said = parse_study({**SMALL, "training": SHORT}), list[str]()
    store = Store(tmp_path)
    tuning = Tuning(study, store, [TunedProbe(study.cells[0], h=1, d_k=2)], trials=1)
    found = tune_protocol(tuning, said.append, Execution(1, "local", engine="warp"))
    told = "a trial was lost, and is tried again: EngineError: --engine warp: unknown; valid: auto"
    assert [line.startswith(told) for line in said[-3:]] == [True] * 3
    assert (found.failed, found.kills, found.training) == (0, 3, None)
    assert [trial["state"] for trial in found.trials] == ["failed"] * 3
    assert store.runs().empty
    again = tune_protocol(tuning, said.append, Execution(1, "local"))
    assert [trial["state"] for trial in again.trials] == ["failed"] * 3 + ["complete"]
    assert again.present_score == again.score is not None


@pytest.mark.parametrize(
    ("said", "options"),
    [
        ("give a URI that both can open", "--address ray://127.0.0.1:9"),
        ("no Ray cluster answers there", "--address 127.0.0.1:9"),
        ("cell m=5: not in small", "--cell m=16 --cell m=5"),
        ("it has m=16,d_model=8; m=16,d_model=16", "--cell m=5"),
        ("h = 3: not in small; it has 1, 2, 4", "--heads 3"),
        ("not a multiple of h = 2", "--heads 2 --D_K 3"),
        ("--D_K 2147483647: a run needs about", "--D_K 2147483647"),
        ("--trials", "--trials 0"),
        ("--seed", f"--seed {2**32}"),
        ("valid: auto", "--engine warp"),
    ],
)
def test_what_cannot_be_tuned_is_refused(
    said: str, options: str, tmp_path: Path, refused: Refused
) -> None:
    write_study(tmp_path)
    refused(said, "tune", "small.yaml", *options.split())
