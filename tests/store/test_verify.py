"""A store checked whole: what is wrong is told by name, and put right on demand."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rgr_dist.cli import call
from rgr_dist.store.store import Store
from rgr_dist.store.verify import Problem, repair, verify
from tests.store.made_up_runs import failed_row, run_row

OLDER = next((Path(__file__).parent / "parts").glob("*.parquet"))


def tree(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_a_sound_store_has_no_problem_and_is_left_as_it_is(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append([run_row(seed=seed) for seed in range(3)])
    store.append([failed_row(seed=4)])
    store.write_study_table("s", "thresholds", [{"cell_id": "a", "h": 1}])
    store.write_text("studies/s/study.yaml", "name: s\n")
    before = tree(tmp_path)
    found = verify(store)
    assert (found.parts, found.rows, found.repeated, found.problems) == (2, 4, 0, [])
    repair(store, found)
    assert tree(tmp_path) == before


def test_a_part_of_an_earlier_version_is_sound_and_has_no_checksum(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    shutil.copy(OLDER, tmp_path / "runs")
    found = verify(Store(tmp_path))
    assert (found.rows, found.without_checksum, found.problems) == (4, 1, [])
    shutil.copy(OLDER, tmp_path / "runs/part-00000000000000000002-0123abcd.parquet")
    found = verify(Store(tmp_path))
    assert (found.rows, found.without_checksum, found.repeated) == (8, 2, 4)
    Store(tmp_path).compact()
    found = verify(Store(tmp_path))
    assert (found.rows, found.without_checksum, found.problems) == (4, 0, [])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"run_id": "0" * 32}, "its config does not hash to its run_id"),
        ({"config": run_row(seed=8)["config"]}, "its config does not hash to its run_id"),
        ({"seed": 8}, "its seed is not that of its config"),
        ({"cell_id": "0" * 16}, "its cell_id is not that of its config"),
        ({"m": 65}, "its m is not that of its config"),
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
    repair(store, found)
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


def test_runs_that_stand_twice_are_counted_and_merged(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for seeds in ((0, 1), (1, 2, 2), (3,)):
        store.append([run_row(seed=seed) for seed in seeds])
    found = verify(store)
    assert (found.rows, found.repeated, found.problems) == (6, 2, [])
    repair(store, found)
    assert sorted(pd.read_parquet(tmp_path / "runs")["seed"]) == [0, 1, 2, 3]
    assert verify(store).repeated == 0


def test_the_verb_tells_repairs_and_says_so_in_its_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "results"
    store = Store(root)
    for seed in range(3):
        store.append([run_row(seed=seed)])
    store.write_study_table("s", "thresholds", [{"cell_id": "a", "h": 1}])
    (root / "studies/s/thresholds.parquet").write_bytes(b"torn")
    (root / "studies/s/prior.json").write_text("{")
    (root / "studies/s/study.yaml").write_text("name: [")
    torn = sorted((root / "runs").iterdir())[1]
    torn.write_bytes(torn.read_bytes()[:-1])
    before = tree(root)

    def rgr(*arguments: str) -> tuple[int, dict[str, Any], str]:
        status = call(["verify", "--out", str(root), "--format", "json", *arguments])
        out, err = capsys.readouterr()
        return status, json.loads(out), err

    status, told, err = rgr()
    assert (status, told["rows"], told["repaired"]) == (3, 2, False)
    files = {f"runs/{torn.name}": "its bytes are not those of its checksum"} | {
        f"studies/s/{name}": "cannot be read"
        for name in ("thresholds.parquet", "study.yaml", "prior.json")
    }
    assert {problem["file"]: problem["problem"] for problem in told["problems"]} == files
    assert err.startswith("rgr: 4 files would be set aside")
    assert tree(root) == before
    status, told, err = rgr("--repair")
    assert (status, told["repaired"]) == (0, True)
    assert err.startswith("rgr: 4 files moved to damaged/")
    names = {torn.name} | {file.replace("/", "-") for file in files if file.startswith("studies/")}
    assert {path.name for path in (root / "damaged").iterdir()} == names
    assert rgr()[:2] == (0, {**told, "problems": [], "repaired": False})


def test_a_store_that_is_not_there_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["verify", "--out", str(tmp_path / "nowhere")]) == 2
    assert "there is no store" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
