"""The store: what goes in comes out once, whatever breaks in between."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.store.schema import RUNS
from rgr_dist.store.storage import StoreError
from rgr_dist.store.store import Store
from rgr_dist.store.verify import verify
from rgr_dist.study import assets
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.study_file import load_study, parse_study
from tests.store.made_up_runs import CELL, failed_row, run_row, tree

OTHER = Cell(m=128, d_model=16)


def parts(root: Path) -> list[Path]:
    return sorted((root / "runs").glob("*.parquet"))


def store_of(root: Path, *seeds: int) -> Store:
    """A store with a part for each run."""
    store = Store(root)
    for seed in seeds:
        store.append([run_row(seed=seed)])
    return store


@st.composite
def tries(draw: st.DrawFn) -> dict[str, Any]:
    """One try at one of few runs: trained, diverged or failed."""
    run = {
        "h": draw(st.sampled_from([1, 2, 8])),
        "d_k": draw(st.integers(1, 2)),
        "minute": draw(st.integers(0, 1000)),
    }
    end = draw(st.sampled_from(["converged", "diverged", "failed"]))
    if end == "failed":
        return failed_row(**run)
    return run_row(
        **run, stop_reason=end, score=None if end == "diverged" else draw(st.floats(0, 1))
    )


def key(row: dict[str, Any]) -> Any:
    return (row["stop_reason"] == "failed", row["finished_at"])


@settings(max_examples=10, deadline=None)
@given(
    st.lists(tries(), min_size=1, max_size=12, unique_by=lambda row: row["finished_at"]),
    st.randoms(use_true_random=False),
)
def test_a_run_counts_once_whatever_the_order_of_parts_and_however_often_it_is_stored(
    rows: list[dict[str, Any]], draw: random.Random
) -> None:
    first = {
        row["run_id"]: min((r for r in rows if r["run_id"] == row["run_id"]), key=key)
        for row in rows
    }
    frames = []
    for _ in range(2):
        draw.shuffle(rows)
        with tempfile.TemporaryDirectory() as folder:
            store = Store(folder)
            for row in [*rows, *rows[: draw.randrange(len(rows) + 1)]]:
                store.append([row])
            frames += [store.runs(), Store(folder).runs()]
            store.compact(above=0)
            assert len(parts(Path(folder))) == 1
            frames += [store.runs(), Store(folder).runs()]
    for frame in frames:
        pd.testing.assert_frame_equal(frame, frames[0])
    stored = frames[0].set_index("run_id")["finished_at"].to_dict()
    assert stored == {run: pd.Timestamp(row["finished_at"]) for run, row in first.items()}


def test_every_column_comes_back_as_it_was_stored(tmp_path: Path) -> None:
    row = run_row(parameters=17, error=None)
    Store(tmp_path).append([row])
    (back,) = Store(tmp_path).runs().astype(object).to_dict("records")
    assert list(back) == RUNS.names
    for name, value in row.items():
        same = pd.isna(back[name]) if value is None else back[name] == value
        assert same, name
    (part,) = parts(tmp_path)
    assert pq.read_schema(part).equals(RUNS, check_metadata=True), "null_rate is a number too"
    assert pq.read_metadata(part).row_group(0).column(0).compression == "ZSTD"


def test_a_column_that_an_older_part_lacks_is_null_and_of_its_type(tmp_path: Path) -> None:
    store = store_of(tmp_path, 0)
    older = pa.Table.from_pylist([run_row(seed=1)], schema=RUNS)
    store.write_part(older.drop_columns(["val_score", "device", "parameters"]))
    old = store.parts()[f"runs/{parts(tmp_path)[1].name}"]
    assert old.schema.equals(RUNS)
    assert old["val_score"].to_pylist() == [None]
    assert list(store.runs()["seed"]) == [0, 1]


def test_what_is_no_part_is_not_read(tmp_path: Path) -> None:
    store = store_of(tmp_path, 0)
    (part,) = parts(tmp_path)
    for name in ("_copy.parquet", ".copy.parquet", "copy.txt", "parquet"):
        part.with_name(name).write_bytes(part.read_bytes())
    assert list(store.parts()) == [f"runs/{part.name}"]


def test_a_store_exists_once_anything_is_in_it(tmp_path: Path) -> None:
    assert not Store(tmp_path).exists
    assert store_of(tmp_path / "runs-only", 0).exists
    Store(tmp_path / "studies-only").write_text("studies/s/study.json", "{}")
    assert Store(tmp_path / "studies-only").exists
    Store(tmp_path / "else").write_text("other/file", "")
    assert not Store(tmp_path / "else").exists


def test_runs_of_some_cells_and_columns_are_read(tmp_path: Path) -> None:
    store = store_of(tmp_path, 0, 1)
    store.append([run_row(cell=OTHER)])
    assert list(store.runs([OTHER.cell_id])["m"]) == [OTHER.m]
    assert list(store.runs([OTHER.cell_id]).index) == [0]
    assert list(store.runs([OTHER.cell_id]).columns) == RUNS.names
    assert store.runs([], ["score"]).empty
    assert list(store.runs(columns=["seed"])["seed"]) == [0, 1, 0]
    assert list(pd.read_parquet(tmp_path / "runs")["seed"]) == [0, 1, 0], "the export"


def test_each_part_is_read_once(tmp_path: Path) -> None:
    store = store_of(tmp_path, 0, 1, 2)
    for _ in range(3):
        store.runs()
        store.parts()
    assert store.reads == 3
    Store(tmp_path).append([run_row(seed=3)])
    assert len(store.runs()) == 4
    assert store.reads == 4


def test_a_torn_part_is_left_out_told_and_kept(tmp_path: Path) -> None:
    store = store_of(tmp_path, 0)
    store.append([run_row(seed=seed) for seed in range(100, 150)])
    store.append([run_row(seed=2)])
    torn, flipped, _ = parts(tmp_path)
    torn.write_bytes(torn.read_bytes()[:-50])
    column = pq.read_metadata(flipped).row_group(0).column(0)
    content = bytearray(flipped.read_bytes())
    content[column.dictionary_page_offset + column.total_compressed_size // 2] ^= 1
    flipped.write_bytes(content)
    fresh = Store(tmp_path)
    assert list(fresh.runs()["seed"]) == [2]
    assert len(fresh.left_out) == 2
    assert torn.name in fresh.left_out[0]
    fresh.compact(above=0)
    assert torn.exists(), "nothing is thrown away"
    reads = fresh.reads
    problems, counts = verify(fresh)
    assert fresh.reads == reads + 1, "the merged part; those that cannot be read are known"
    assert [one["file"] for one in problems] == [f"runs/{torn.name}", f"runs/{flipped.name}"]
    for one, line in zip(problems, fresh.left_out, strict=True):
        assert list(one) == ["file", "run_id", "problem"]
        assert one["run_id"] is None
        assert line.endswith(one["problem"].partition(": ")[2])
        assert "None" not in line
    assert counts["rows"] == 1
    assert len(store.runs()) == 1
    torn.unlink()
    assert [flipped.name in line for line in fresh.left_out] == [False, True]
    fresh.runs()
    assert [flipped.name in line for line in fresh.left_out] == [True]


def test_results_of_one_run_that_disagree_are_listed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append([run_row(seed=0), run_row(seed=1), run_row(seed=2), failed_row(seed=3)])
    store.append([run_row(seed=0, minute=1), run_row(seed=1, score=0.9, minute=1)])
    rounded = run_row(seed=2, score=0.99 * (1 + 1e-6), engine="another", minute=1)
    store.append([rounded, run_row(seed=3, minute=1)])
    problems, counts = verify(store)
    (problem,) = problems
    assert list(problem) == ["file", "run_id", "problem"]
    assert (problem["file"], problem["run_id"]) == (None, run_row(seed=1)["run_id"])
    assert all(said in problem["problem"] for said in ("score", "0.99", "0.9"))
    assert counts == {"parts": 3, "rows": 8, "repeated": 4}
    store.append([run_row(seed=2, score=0.99 * (1 + 1e-6), minute=2)])
    assert len(verify(store)[0]) == 2, "the same engine gives the same result to the bit"
    assert (store.runs()["score"] == 0.99).all(), "the first that finished counts"


@pytest.mark.parametrize(
    ("first", "second", "is_problem"),
    [
        ({"score": 0.01}, {"score": 0.01 * (1 + 9e-5)}, False),
        ({"score": 0.01}, {"score": 0.01 * (1 + 2e-4)}, True),
        ({"score": 100.0}, {"score": 100.0 * (1 + 9e-5)}, False),
        ({"score": 100.0}, {"score": 100.0 * (1 + 2e-4)}, True),
        ({"steps": 20_000}, {"steps": 20_001}, True),
        ({"threshold_tau": None}, {"threshold_tau": None}, False),
        ({"threshold_tau": None}, {"threshold_tau": 0.25}, True),
        ({"threshold_tau": 0.25}, {"threshold_tau": None}, True),
        ({"null_rate": 0.25}, {"null_rate": 0.25}, False),
        ({"seconds": 1.0}, {"seconds": 2.0}, False),
    ],
)
def test_results_of_two_engines_agree_up_to_rounding(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], is_problem: bool
) -> None:
    store = Store(tmp_path)
    store.append([run_row(**first), run_row(seed=1)])
    store.append([run_row(**second, minute=1, engine="another"), run_row(seed=1, minute=1)])
    assert len(verify(store)[0]) == is_problem


def test_several_parts_are_merged_into_one(tmp_path: Path) -> None:
    store = store_of(tmp_path, *range(5))
    before = store.runs()
    store.compact(above=5)
    assert len(parts(tmp_path)) == 5
    store.compact(above=4)
    assert len(parts(tmp_path)) == 1
    pd.testing.assert_frame_equal(store.runs(), before)


def test_rows_that_disagree_are_all_kept_by_a_merge_and_equal_ones_once(tmp_path: Path) -> None:
    store = store_of(tmp_path, 0, 0)
    store.append([run_row(score=0.5)])
    store.compact(above=2)
    assert verify(Store(tmp_path))[1] == {"parts": 1, "rows": 2, "repeated": 1}
    assert len(verify(store)[0]) == 1


WRITER = """
import sys
from rgr_dist.store.store import Store
from tests.store.made_up_runs import run_row
store, first = Store(sys.argv[1]), int(sys.argv[2])
with store.held(sys.argv[3]):
    for seed in range(first, first + 1000):
        store.append([run_row(seed=seed)])
        print(seed, flush=True)
        if seed % 7 == 0:
            store.compact(above=3)
"""


def writer(root: Path, first: int, study: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(root), str(first), study]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_drivers_of_two_studies_that_are_killed_again_and_again_lose_nothing(
    tmp_path: Path,
) -> None:
    draw, told = random.Random(0), set[int]()
    for attempt in range(3):
        both = [writer(tmp_path, 10_000 * (2 * attempt + i), f"study-{i}") for i in range(2)]
        for one in both:
            assert one.stdout is not None
            for _ in range(draw.randrange(1, 25)):
                told.add(int(one.stdout.readline()))
            one.kill()
            told |= {int(line) for line in one.communicate()[0].splitlines()}
        assert told <= set(Store(tmp_path).runs()["seed"])
        assert Store(tmp_path).left_out == []
    assert len(told) > 25


def test_a_second_driver_of_a_study_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    first = writer(tmp_path, 0, "mine")
    assert first.stdout is not None
    first.stdout.readline()
    store = Store(tmp_path)
    with pytest.raises(StoreError, match="mine"), store.held("mine"):
        pass
    with store.held("other"), store.held("other"):
        assert (tmp_path / "studies/other/.lock").exists()
        store.append([run_row(seed=99_999)])
    assert not (tmp_path / "studies/other").exists(), "nothing was stored of it"
    first.kill()
    first.communicate()
    with store.held("mine"):
        pass


def test_a_study_is_held_by_one_store_and_leaves_no_trace_if_nothing_was_stored(
    tmp_path: Path,
) -> None:
    root = tmp_path / "results"
    first, second = Store(root), Store(root)
    with first.held("mine"):
        assert tree(root) == ["studies", "studies/mine", "studies/mine/.lock"]
        with first.held("mine"):
            pass
        with pytest.raises(StoreError, match=re.escape(str(root))), second.held("mine"):
            pass
        with second.held("other"):
            pass
        assert tree(root) == ["studies", "studies/mine", "studies/mine/.lock"]
    assert not root.exists()
    with second.held("mine"):
        second.write_text("studies/mine/study.json", "{}")
    assert tree(root) == [
        "studies",
        "studies/mine",
        "studies/mine/.lock",
        "studies/mine/study.json",
    ]
    with pytest.raises(KeyError), first.held("mine"):
        raise KeyError
    with second.held("mine"):
        pass


FULL = """
import resource, signal, sys
from rgr_dist.store.store import Store
from tests.store.made_up_runs import run_row
store = Store(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
store.append([run_row(seed=1)])
"""


def test_a_full_disk_is_told_and_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    store_of(tmp_path, 0)
    before = sorted((tmp_path / "runs").iterdir())
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True
    )
    assert "StoreError" in done.stderr
    assert sorted((tmp_path / "runs").iterdir()) == before


def test_what_cannot_be_opened_or_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "file", "", "nosuch://bucket"):
        with pytest.raises(StoreError, match="--store"):
            Store(root)
    (tmp_path / "store").mkdir()
    (tmp_path / "store/runs").write_text("in the way")
    with pytest.raises(StoreError, match="cannot store runs/"):
        Store(tmp_path / "store").append([run_row()])
    with pytest.raises(StoreError) as error:
        Store("nosuch://key:secret@bucket/x")
    assert "secret" not in str(error.value)


def test_a_study_that_was_run_is_found_in_the_store_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("e.csv").write_text("source,target\na,b\nb,c\nc,a\n")
    np.save("v.npy", np.eye(3, 4, dtype=np.float32))
    Path("v.txt").write_text("a\nb\nc\n")
    study = parse_study(
        {
            "name": "mine",
            "graph": {"family": "edges", "file": "e.csv"},
            "embedding": {"family": "vectors", "file": "v.npy", "names": "v.txt"},
            "context": {"length": 2},
            "cells": [{"d_model": 4}],
        }
    )
    store = Store("results")
    store.write_study(study)
    kept = {name: array.tobytes() for name, array in assets.needed(study.cells).items()}
    for name in ("e.csv", "v.npy", "v.txt"):
        Path(name).unlink()
    monkeypatch.setattr(assets, "_ARRAYS", {})
    assert store.study("mine") == study
    assert {x: array.tobytes() for x, array in assets.needed(study.cells).items()} == kept
    Path("mine").write_text("a path comes first")
    with pytest.raises(StudyError):
        store.study("mine")
    Path("mine").unlink()
    with pytest.raises(StudyError, match="--set"):
        store.study("mine", ["search.seeds=3"])
    with pytest.raises(StudyError, match="nowhere"):
        store.study("nowhere")
    np.savez(tmp_path / "results/studies/mine/arrays.npz", x=np.array([{}], object))
    with pytest.raises(ValueError, match="pickle"):
        store.study("mine")
    assert store.study("quickstart", ["search.seeds=3"]) == load_study(
        "quickstart", ["search.seeds=3"]
    )


def test_a_failed_attempt_counts_only_if_there_is_no_other(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append([failed_row(minute=0), failed_row(cell=OTHER)])
    store.append([run_row(minute=9)])
    assert dict(store.runs()[["cell_id", "stop_reason"]].itertuples(index=False, name=None)) == {
        CELL.cell_id: "converged",
        OTHER.cell_id: "failed",
    }


def test_hidden_files_of_a_killed_write_are_not_read(tmp_path: Path) -> None:
    store_of(tmp_path, 0)
    (tmp_path / "runs/.part-1.parquet.abcd").write_bytes(b"half")
    assert len(Store(tmp_path).runs()) == 1
    assert len(pd.read_parquet(tmp_path / "runs")) == 1
