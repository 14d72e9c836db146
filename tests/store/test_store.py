"""The store: what goes in comes out once, whatever breaks in between."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rgr_dist.store.parts import written
from rgr_dist.store.schema import RUNS, SCHEMA_VERSION
from rgr_dist.store.storage import StoreError
from rgr_dist.store.store import Store
from rgr_dist.store.verify_and_repair import set_damage_aside
from rgr_dist.study.cell import Cell
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


def content(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows in plain Python, None for what is missing."""
    assert list(frame.columns) == RUNS.names
    frame = frame.astype(object).where(frame.notna(), None)
    rows = frame.to_dict("records")
    return [row | {"finished_at": row["finished_at"].to_pydatetime()} for row in rows]


def by_run(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    keyed = {row["run_id"]: row for row in rows}
    assert len(keyed) == len(rows), "a run is listed twice"
    return keyed


@st.composite
def tries(draw: st.DrawFn) -> dict[str, Any]:
    """One try at one of few runs: trained, diverged or failed."""
    run = {
        "h": draw(st.sampled_from([1, 2, 8])),
        "d_k": draw(st.integers(1, 2)),
        "seed": draw(st.integers(0, 1)),
        "minute": draw(st.integers(0, 5)),
    }
    end = draw(st.sampled_from(["converged", "max_steps", "diverged", "failed"]))
    if end == "failed":
        return failed_row(**run)
    score = None if end == "diverged" else draw(st.sampled_from([0.0, 0.1, 0.1 + 1e-9, 1.0]))
    return run_row(**run, stop_reason=end, score=score, seconds=draw(st.floats(0, 1e6)))


CONTRADICTED = [run_row(score=0.0), run_row(score=0.1), failed_row()]


@settings(max_examples=20)
@given(st.lists(st.lists(tries(), max_size=4), max_size=5), st.integers(0, 4))
@example(appended=[[failed_row(minute=1)], [run_row()]], above=0)
@example(appended=[[run_row(minute=1)], [failed_row()]], above=0)
@example(appended=[CONTRADICTED], above=0)  # a failed try beside two results
def test_every_run_with_one_result_comes_back_once_from_any_parts(
    appended: list[list[dict[str, Any]]], above: int
) -> None:
    rows = [row for part in appended for row in part]
    results: dict[str, set[Any]] = {row["run_id"]: set() for row in rows}
    for row in rows:
        if row["stop_reason"] != "failed":
            results[row["run_id"]].add((row["score"], row["stop_reason"]))
    conflicting = {run for run, found in results.items() if len(found) > 1}
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        for part in appended:
            store.append(part)
        before = content(store.runs())
        assert store.conflicting.keys() == conflicting
        store.compact(above)
        n_parts = len(parts(Path(folder)))
        after = content(store.runs())
        assert store.conflicting.keys() == conflicting
        set_damage_aside(store)
        assert content(store.runs()) == before
        assert store.conflicting == {}
    for row in by_run(before).values():
        assert row in rows
        assert (row["stop_reason"] == "failed") == (not results[row["run_id"]])
    assert set(by_run(before)) == {*results} - conflicting
    assert after == before
    assert n_parts <= max(above, 1)


def test_what_is_left_out_is_so_and_is_told_whatever_is_read_next(tmp_path: Path) -> None:
    store = store_of(tmp_path, 0)
    store.append([run_row(score=0.1), run_row(cell=OTHER)])
    wrong = pa.Table.from_pylist([run_row(seed=1), run_row(cell=OTHER, seed=1, score=1.5)], RUNS)
    (tmp_path / "runs/part-1.parquet").write_bytes(written(wrong))
    for cells in ([CELL.cell_id], [OTHER.cell_id], []):
        assert 1 not in set(store.runs(cells)["seed"])
        assert [*store.damaged] == ["runs/part-1.parquet"]
        assert store.conflicting == {run_row()["run_id"]: CELL.cell_id}
        assert len(store.left_out) == 2
    set_damage_aside(store)
    assert (len(store.runs([OTHER.cell_id])), store.left_out) == (1, [])
    store.append([run_row(minute=1)])
    assert len(store.runs()) == 2


def test_a_row_with_an_address_made_up_contradicts_that_of_its_run(tmp_path: Path) -> None:
    store = store_of(tmp_path, 0, 1)
    store.append([run_row(seed=0, minute=-9) | {"run_id": "0" * 32, "score": 0.1}])
    assert list(store.runs()["seed"]) == [1]
    assert store.conflicting.keys() == {run_row(seed=0)["run_id"], "0" * 32}


def test_runs_come_in_the_order_of_their_cells_and_widths(tmp_path: Path) -> None:
    keys = [(OTHER, 1, 2, 0), (CELL, 2, 1, 0), (CELL, 1, 10, 1), (CELL, 1, 10, 0), (CELL, 1, 9, 0)]
    rows = [run_row(h, d_k, seed, cell) for cell, h, d_k, seed in keys]
    rows += [{**run_row(4, 1, seed, CELL), "d_vo": d_vo} for seed, d_vo in enumerate([3, 1, 2])]
    Store(tmp_path).append(rows)
    frame = Store(tmp_path).runs()
    found = list(zip(frame["m"], frame["h"], frame["d_k"], frame["seed"], strict=True))
    assert list(frame.index) == list(range(8))
    of_facts = [(64, 4, 1, 1), (64, 4, 1, 2), (64, 4, 1, 0)]
    in_order = [(64, 1, 9, 0), (64, 1, 10, 0), (64, 1, 10, 1), (64, 2, 1, 0), *of_facts]
    assert found == [*in_order, (128, 1, 2, 0)]
    assert list(Store(tmp_path).runs([OTHER.cell_id])["m"]) == [128]
    assert len(Store(tmp_path).runs(iter([CELL.cell_id, OTHER.cell_id]))) == 8
    assert Store(tmp_path).runs([]).empty


def test_an_empty_store_has_no_runs_and_the_columns(tmp_path: Path) -> None:
    store = Store(tmp_path / "nowhere")
    store.append([])
    store.compact(above=0)
    assert content(store.runs()) == []
    assert tree(tmp_path) == []
    with pytest.raises(StoreError, match="runs have no nope, other"):
        store.runs(columns=["seed", "other", "nope"])


def test_pandas_reads_the_folder_as_it_is(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append([run_row(seed=0)])
    store.append([run_row(seed=1), failed_row(seed=2)])
    for name in (".part-1.parquet.1a2b", ".part-2.parquet", "_part.parquet"):
        (tmp_path / "runs" / name).write_bytes(b"PAR1 and no more")
    frame = pd.read_parquet(tmp_path / "runs")
    assert by_run(content(frame)) == by_run(content(store.runs()))
    assert store.damaged == {}


def test_a_torn_part_is_left_out_and_named_and_the_others_are_read(tmp_path: Path) -> None:
    store = store_of(tmp_path, 0, 1, 2)
    torn = parts(tmp_path)[1]
    whole = torn.read_bytes()
    torn.write_bytes(whole[:-1])
    assert list(store.runs()["seed"]) == [0, 2]
    assert list(store.damaged) == [f"runs/{torn.name}"]
    torn.write_bytes(whole)
    assert (list(store.runs()["seed"]), store.damaged) == ([0, 1, 2], {})
    torn.write_bytes(whole[:-1])
    assert list(store.runs([CELL.cell_id])["seed"]) == [0, 2]
    assert list(store.damaged) == [f"runs/{torn.name}"]
    store.compact(above=1)
    assert torn.exists(), "what cannot be read is not thrown away"
    assert list(store.runs()["seed"]) == [0, 2]
    store.append([run_row(seed=1)])
    assert list(store.runs()["seed"]) == [0, 1, 2]


@pytest.mark.parametrize("change", [{"config": None}, {"score": 1.5}])
def test_what_could_not_be_read_again_is_not_stored(tmp_path: Path, change: dict[str, Any]) -> None:
    store = store_of(tmp_path, 0)
    with pytest.raises(StoreError, match="cannot store runs: "):
        store.append([run_row(seed=1), run_row(seed=2) | change])
    assert list(store.runs()["seed"]) == [0]
    assert len(parts(tmp_path)) == 1


def test_damaged_parts_are_set_aside_by_name_and_the_rest_is_an_export_again(
    tmp_path: Path,
) -> None:
    store = store_of(tmp_path, 0, 1, 2)
    assert set_damage_aside(store) == []
    torn = parts(tmp_path)[1]
    torn.write_bytes(b"torn")
    (told,) = set_damage_aside(store)
    why = "its bytes are not those of its checksum"
    assert told == f"{torn.name}: {why}; moved to damaged/ in {tmp_path}, and trained again"
    assert (tmp_path / "damaged" / torn.name).read_bytes() == b"torn"
    assert sorted(pd.read_parquet(tmp_path / "runs")["seed"]) == [0, 2]
    assert set_damage_aside(store) == []
    with pytest.raises(StoreError) as caught:
        store.set_aside("runs/gone.parquet")
    assert str(caught.value).startswith(f"--store {tmp_path}: cannot move runs/gone.parquet: ")
    assert not str(caught.value).endswith("None")


def test_the_version_of_a_store_changes_whenever_runs_are_stored(tmp_path: Path) -> None:
    store = Store(tmp_path)
    seen = [store.version()]
    for seed in range(3):
        store.append([run_row(seed=seed)])
        seen.append(store.version())
        assert Store(tmp_path).version() == seen[-1]
    store.compact(above=1)
    assert len({*seen, store.version()}) == 5
    assert all(re.fullmatch("[0-9a-f]{16}", version) for version in seen)


def test_compaction_cut_short_before_the_old_parts_go_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path / "store")
    for seed in range(5):
        store.append([run_row(seed=seed, minute=seed), failed_row(seed=seed + 1)])
    before = content(store.runs())
    shutil.copytree(tmp_path / "store/runs", tmp_path / "old")
    store.compact(above=4)
    assert len(parts(tmp_path / "store")) == 1
    for count, part in enumerate(sorted((tmp_path / "old").iterdir()), start=2):
        shutil.copy(part, tmp_path / "store/runs")
        assert len(parts(tmp_path / "store")) == count
        assert content(store.runs()) == before
    store.compact(above=4)
    assert content(store.runs()) == before


def test_compaction_that_cannot_write_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk: the merged part is stored before the first old one goes."""
    store = store_of(tmp_path, 0, 1, 2)
    before = tree(tmp_path)

    def refuse(relative: str, content: bytes) -> None:
        assert tree(tmp_path) == before, "something went before the merged part was stored"
        raise StoreError("no space left")

    monkeypatch.setattr(store, "write_bytes", refuse)
    with pytest.raises(StoreError, match="no space left"):
        store.compact(above=1)
    assert tree(tmp_path) == before
    assert list(store.runs()["seed"]) == [0, 1, 2]


def test_up_to_64_parts_are_left_as_they_are(tmp_path: Path) -> None:
    store = store_of(tmp_path, *range(64))
    before = tree(tmp_path)
    store.compact()
    assert tree(tmp_path) == before
    store.append([run_row(seed=64)])
    store.compact()
    assert len(parts(tmp_path)) == 1
    assert list(store.runs()["seed"]) == list(range(65))


def test_a_store_of_a_newer_version_is_refused_in_one_line(tmp_path: Path) -> None:
    store = store_of(tmp_path, 0)
    (part,) = (tmp_path / "runs").iterdir()
    table = pq.read_table(part)
    newer = {**table.schema.metadata, b"version": str(SCHEMA_VERSION + 1).encode()}
    part.unlink()
    store.write_part(table.replace_schema_metadata(newer))
    with pytest.raises(StoreError) as caught:
        store.runs()
    assert str(caught.value) == (
        f"the store was written by a newer rgr-dist (schema {SCHEMA_VERSION + 1}, "
        f"here {SCHEMA_VERSION}); upgrade this one"
    )


class Overtaken(Store):
    """A store whose parts another driver compacts just after they are listed, so many times."""

    times = 1

    def _list_parts(self) -> list[str]:
        listed = super()._list_parts()
        if self.times:
            self.times -= 1
            Store(self.root).append([run_row(seed=8 + self.times)])
            Store(self.root).compact(above=1)
        return listed


def test_a_reader_starts_over_if_the_parts_are_compacted_meanwhile(tmp_path: Path) -> None:
    store_of(tmp_path, 0, 1, 2)
    store = Overtaken(tmp_path)
    assert list(store.runs()["seed"]) == [0, 1, 2, 8]
    store.times = 5
    with pytest.raises(StoreError) as caught:
        store.runs()
    changing = "its parts keep changing; is another study compacting it?"
    assert str(caught.value) == f"--store {tmp_path}: {changing}"


def test_two_that_compact_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    class Late(Store):
        def write_part(self, table: pa.Table) -> None:
            Store(self.root).compact(above=1)
            super().write_part(table)

    store_of(tmp_path, 0, 1, 1, 2)
    Late(tmp_path).compact(above=1)
    assert list(Store(tmp_path).runs()["seed"]) == [0, 1, 2]
    Store(tmp_path).compact(above=1)
    assert sorted(pd.read_parquet(tmp_path / "runs")["seed"]) == [0, 1, 2]
