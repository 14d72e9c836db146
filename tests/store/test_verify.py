"""A store checked whole: what is wrong is told by name, and put right on demand."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rgr_dist.cli import call
from rgr_dist.store.store import Store
from rgr_dist.store.verify_and_repair import Problem, Row, repair, verify
from tests.store.made_up_runs import failed_row, run_row, study_row

OLDER = next((Path(__file__).parent / "parts").glob("*.parquet"))


def tree(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def trained_nowhere(row: Row) -> Row | None:
    """What trains nothing again."""
    return None


def test_a_sound_store_has_no_problem_and_is_left_as_it_is(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append([run_row(seed=seed) for seed in range(3)])
    store.append([failed_row(seed=4)])
    store.write_study_table("s", "thresholds", [study_row("thresholds")])
    store.write_text("studies/s/study.yaml", "name: s\n")
    before = tree(tmp_path)
    found = verify(store)
    assert (found.parts, found.rows, found.repeated, found.problems) == (2, 4, 0, [])
    repair(store, found, trained_nowhere)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"run_id": "0" * 32}, "its config does not hash to its run_id"),
        ({"config": run_row(seed=8)["config"]}, "its config does not hash to its run_id"),
        ({"D_V": 8}, "its D_V is not that of its config"),
        ({"seed": 8}, "its seed is not that of its config"),
        ({"cell_id": "0" * 16}, "its cell_id is not that of its config"),
        ({"m": 65}, "its m is not that of its config"),
        ({"error": "lost"}, "it has an error, and its run did not fail"),
        ({"stop_reason": "failed"}, "it has a score, and its run failed"),
        ({"max_steps": 1}, "its max_steps is not that of its config"),
    ],
)
def test_a_row_that_is_not_at_its_address_is_set_aside_and_its_neighbours_stay(
    tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    store = Store(tmp_path)
    store.append([run_row(seed=0)])
    (untouched,) = tree(tmp_path)
    store.append([run_row(seed=1), {**run_row(seed=2), **change}, run_row(seed=3)])
    (part,) = set(tree(tmp_path)) - {untouched}
    found = verify(store)
    assert found.problems == [Problem(part, told, 1)]
    before = tree(tmp_path)
    repair(store, found, trained_nowhere)
    assert list(store.runs()["seed"]) == [0, 1, 3]
    after = tree(tmp_path)
    assert after[untouched] == before[untouched]
    assert after[f"damaged/{Path(part).name}"] == before[part]
    assert verify(store).problems == []


@pytest.mark.parametrize("change", ["a key of a later version", "without a key of today"])
def test_a_config_that_today_is_written_otherwise_is_told(tmp_path: Path, change: str) -> None:
    row = run_row()
    config = json.loads(row["config"])
    if change == "a key of a later version":
        config["cell"]["graph"]["later"] = 1
    else:
        del config["cell"]["context"]

    def told(root: Path) -> list[str]:
        text = json.dumps(config, sort_keys=True, separators=(",", ":"))
        run_id = hashlib.sha256(text.encode()).hexdigest()[:32]
        Store(root).append([{**row, "config": text, "run_id": run_id}])
        return [problem.problem for problem in verify(Store(root)).problems]

    assert told(tmp_path / "own") == [
        "its config no longer hashes to its run_id: this rgr-dist writes it otherwise"
    ]
    config["protocol"] = 0  # another run, which no study of today asks for
    assert told(tmp_path / "other") == []


@pytest.mark.parametrize(
    "text", ["7", "[]", "{}", '{"protocol":1}', '{"cell":[],"d_k":1,"h":1,"protocol":1}', "{"]
)
def test_a_config_that_is_none_is_told(tmp_path: Path, text: str) -> None:
    run_id = hashlib.sha256(text.encode()).hexdigest()[:32]
    Store(tmp_path).append([run_row() | {"config": text, "run_id": run_id}])
    (problem,) = verify(Store(tmp_path)).problems
    assert re.match("its config (is not that of a run|no longer hashes to)", problem.problem)


def test_what_is_no_file_is_told_and_moved(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append([run_row()])
    (tmp_path / "runs/folder.parquet").mkdir()
    os.mkfifo(tmp_path / "runs/pipe.parquet")
    (tmp_path / "runs/device.parquet").symlink_to("/dev/zero")
    (tmp_path / "runs/gone.parquet").symlink_to(tmp_path / "not mounted")
    (tmp_path / "studies/s").mkdir(parents=True)
    for name in ("thresholds.parquet", "study.yaml", "prior.json"):
        os.mkfifo(tmp_path / "studies/s" / name)
    (tmp_path / "studies/s/laws.json").mkdir()
    (tmp_path / "studies/text").write_text("")
    (tmp_path / "studies/.hidden").write_text("")
    (tmp_path / "studies/gone").symlink_to(tmp_path / "not mounted")
    assert len(store.runs()) == 1
    found = verify(store)
    assert found.problems[4:6] == [
        Problem(f"studies/{name}", "it is no folder") for name in ("gone", "text")
    ]
    names = ["device", "folder", "gone", "pipe"]
    told = [Problem(f"runs/{name}.parquet", "it is no file") for name in names]
    assert found.problems[:4] == told
    assert len(found.problems) == 10
    repair(store, found, trained_nowhere)
    assert verify(store).problems == []
    assert len(pd.read_parquet(tmp_path / "runs")) == 1


@pytest.mark.parametrize("text", ["", "[" * 100_000, "null", "3", '{"a": 1}'])
def test_what_is_kept_of_a_study_and_says_something_else_is_told(text: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append([run_row()])
    store.write_text("studies/s/prior.json", text)
    store.write_text("studies/s/tuning.journal", "{}\n[1, 2\n")
    store.write_text("studies/t/tuning.journal", '{"a": 1}\n{"torn')
    for name, journal in (("u", '{"torn'), ("v", '{"a": 1}\n"x"\n')):
        store.write_text(f"studies/{name}/tuning.journal", journal)
        path = f"studies/{name}/tuning.journal"
        assert [one.file for one in verify(store).problems if one.file == path] == [path]
        store.remove(path)
    names = ("prior.json", "tuning.journal")
    told = [Problem(f"studies/s/{name}", "cannot be read") for name in names]
    assert verify(store).problems == told


def results_of(tmp_path: Path, *changes: dict[str, Any]) -> tuple[int, int]:
    """How many rows count of a run that was trained with these changes, and how many conflict."""
    store = Store(tmp_path)
    for minute, change in enumerate(changes):
        store.append([run_row(minute=minute, **change)])
    return len(store.runs()), len(verify(store).conflicting)


ELSEWHERE = [{"engine": "another"}, {"device": "cuda: made up"}, {"versions": "numba=2"}]
BEYOND_ROUNDING: list[dict[str, Any]] = [
    {"score": 0.9},
    {"val_score": 0.9},
    {"val_score": None},
    {"threshold_tau": 0.2501},
    {"null_rate": 0.0},
    {"steps": 12_600},
    {"stop_reason": "max_steps"},
    {"argmax_accuracy": 0.5},
    {"rank_logits": 3},
    {"by_tau": "[]"},
]


@pytest.mark.parametrize("change", BEYOND_ROUNDING)
@pytest.mark.parametrize("made", [{}, *ELSEWHERE])
def test_another_result_is_a_conflict_whoever_made_it(
    tmp_path: Path, change: dict[str, Any], made: dict[str, Any]
) -> None:
    assert results_of(tmp_path, {}, change | made) == (0, 2)


@pytest.mark.parametrize("change", [{"score": 0.99 + 1e-9}, {"threshold_tau": 0.25 - 1e-9}])
def test_rounding_is_a_conflict_only_between_those_who_should_round_alike(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    for number, made in enumerate(ELSEWHERE):
        assert results_of(tmp_path / str(number), {}, change | made) == (1, 0)
        assert list(Store(tmp_path / str(number)).runs()["score"]) == [0.99]
    assert results_of(tmp_path / "same", {}, change) == (0, 2)


@pytest.mark.parametrize(
    "change", [{"seconds": 9.0}, {"git_revision": "abc"}, {"trained_to": 40_000}]
)
def test_how_and_when_it_was_made_is_no_result(tmp_path: Path, change: dict[str, Any]) -> None:
    assert results_of(tmp_path, {}, change, failed_row(minute=5)) == (1, 0)


@pytest.mark.parametrize(
    ("again", "kept"), [(lambda row: run_row(score=0.3), [0.3, 0.99]), (trained_nowhere, [0.99])]
)
def test_where_training_again_confirms_no_row_its_own_is_kept_if_there_is_one(
    again: Callable[[Row], Row | None], kept: list[float], tmp_path: Path
) -> None:
    store = Store(tmp_path)
    store.append([run_row(score=0.1), run_row(score=0.2), run_row(seed=1)])
    assert repair(store, verify(store), again) == len(kept) - 1
    assert sorted(store.runs()["score"]) == kept
    assert verify(store).problems == []


@pytest.mark.parametrize("parts", [((0, 1), (1, 2, 2), (3,)), ((0, 1, 1, 2, 2, 3),)])
def test_runs_that_stand_twice_are_counted_and_merged(
    tmp_path: Path, parts: tuple[tuple[int, ...], ...]
) -> None:
    store = Store(tmp_path)
    for seeds in parts:
        store.append([run_row(seed=seed) for seed in seeds])
    found = verify(store)
    assert (found.rows, found.repeated, found.problems) == (6, 2, [])
    repair(store, found, trained_nowhere)
    assert sorted(pd.read_parquet(tmp_path / "runs")["seed"]) == [0, 1, 2, 3]
    assert verify(store).repeated == 0


def test_the_verb_tells_repairs_and_says_so_in_its_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "its results"
    store = Store(root)
    for seed in range(3):
        store.append([run_row(seed=seed)])
    store.write_study_table("s", "thresholds", [study_row("thresholds")])
    (root / "studies/s/thresholds.parquet").write_bytes(b"torn")
    (root / "studies/s/prior.json").write_text('{"a": {"h": 1}}')
    (root / "studies/s/laws.json").write_text("[]")
    (root / "studies/s/study.yaml").write_text("name: [")
    torn = sorted((root / "runs").iterdir())[1]
    torn.write_bytes(torn.read_bytes()[:-1])
    before = tree(root)

    def rgr(*arguments: str) -> tuple[int, dict[str, Any], str]:
        status = call(["verify", "--store", str(root), "--format", "json", *arguments])
        out, err = capsys.readouterr()
        return status, json.loads(out), err

    status, told, err = rgr()
    assert (status, told["rows"], told["repaired"]) == (3, 2, False)
    named = ("thresholds.parquet", "study.yaml", "prior.json", "laws.json")
    files = {f"studies/s/{name}": "cannot be read" for name in named}
    files[f"runs/{torn.name}"] = "its bytes are not those of its checksum"
    files["studies/s/thresholds.parquet"] = "it does not end as a Parquet file"
    assert {problem["file"]: problem["problem"] for problem in told["problems"]} == files
    assert err.startswith("rgr: 5 files would be set aside: ")
    assert shlex.split(err)[-4:] == ["verify", "--store", str(root), "--repair"]
    assert tree(root) == before
    status, told, err = rgr("--repair")
    assert (status, told["repaired"]) == (0, True)
    assert err.startswith("rgr: 5 files moved to damaged/")
    names = {torn.name} | {file.replace("/", "-") for file in files if file.startswith("studies/")}
    assert {path.name for path in (root / "damaged").iterdir()} == names
    assert rgr()[:2] == (0, {**told, "problems": [], "repaired": False})


def test_a_store_that_is_not_there_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["verify", "--store", str(tmp_path / "nowhere")]) == 2
    assert "there is no store" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_store_whose_every_file_was_set_aside_is_one_still(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "results")
    store.append([run_row()])
    (part,) = (tmp_path / "results/runs").iterdir()
    part.write_bytes(b"torn")
    assert call(["verify", "--store", store.root, "--repair"]) == 0
    assert call(["verify", "--store", store.root]) == 0
    assert call(["status", "quickstart", "--store", store.root]) == 0
    assert "there is no store" not in capsys.readouterr().err


def test_a_name_that_is_not_utf_8_is_none_of_ours(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append([run_row()])
    store.write_study_table("s", "thresholds", [])
    for folder in ("runs", "studies", "studies/s", "."):
        (tmp_path / folder / os.fsdecode(b"odd\xff.parquet")).write_bytes(b"")
    assert store.studies() == ["s"]
    assert len(store.parts()) == 1
    assert verify(store).problems == []
