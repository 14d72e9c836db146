"""Parts that earlier versions of rgr-dist wrote are kept here and read for ever.

Version 1 lacked ``null_rate``; no part of it is left, so one of version 2 stands in without that.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rgr_dist.store.parts import has_digest, version_of, written
from rgr_dist.store.schema import RUNS, SCHEMA_VERSION
from rgr_dist.store.store import Store
from rgr_dist.store.verify_and_repair import verify
from tests.store.made_up_runs import run_row

PARTS = Path(__file__).parent / "parts"
KEPT = {
    "version-2/part-01795330040923418505-744b5de4.parquet": 2,
    "part-01795350125564768087-bb3a793b.parquet": 3,
    **{str(path.relative_to(PARTS)): 3 for path in PARTS.glob("version-3/*")},
    **{str(path.relative_to(PARTS)): 4 for path in PARTS.glob("version-4/*")},
}


@pytest.fixture(params=KEPT)
def part(request: pytest.FixtureRequest) -> Path:
    return PARTS / str(request.param)


def stored(part: Path, root: Path) -> Store:
    (root / "runs").mkdir(parents=True)
    shutil.copy(part, root / "runs")
    return Store(root)


def test_every_version_since_the_second_is_kept() -> None:
    assert {name: version_of(pq.read_schema(PARTS / name)) for name in KEPT} == KEPT
    assert {has_digest(name) for name in KEPT} == {True, False}


def test_it_is_read_whole_and_found_sound(part: Path, tmp_path: Path) -> None:
    store = stored(part, tmp_path)
    expected = pq.read_table(part).to_pylist()
    rows = {row["run_id"]: row for row in store.runs().to_dict("records")}
    assert len(rows) == len(expected)
    for row in expected:
        for key in ("score", "steps", "h", "d_k", "seed", "config"):
            assert rows[row["run_id"]][key] == row[key]
    found = verify(store)
    assert (found.problems, store.damaged) == ([], {})
    assert found.without_checksum == (not has_digest(part.name))


def test_the_next_run_writes_it_anew_with_every_column_and_a_checksum(
    part: Path, tmp_path: Path
) -> None:
    store = stored(part, tmp_path)
    before = store.runs()
    store.compact()
    (now,) = (tmp_path / "runs").iterdir()
    assert has_digest(now.name)
    assert version_of(pq.read_schema(now)) == SCHEMA_VERSION
    assert list(pd.read_parquet(tmp_path / "runs").columns) == RUNS.names
    columns = ["run_id", "score", "finished_at"]
    assert store.runs()[columns].equals(before[columns])
    store.compact()
    assert [now] == list((tmp_path / "runs").iterdir())


def test_the_first_version_is_read_where_its_column_is_missing(tmp_path: Path) -> None:
    second = pq.read_table(PARTS / "version-2/part-01795330040923418505-744b5de4.parquet")
    first: pa.Table = second.drop_columns(["null_rate"]).replace_schema_metadata(None)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/part-1.parquet").write_bytes(written(first))
    store = Store(tmp_path)
    runs = store.runs()
    assert len(runs) == first.num_rows
    assert runs["null_rate"].isna().all()
    assert store.damaged == {}


def test_columns_newer_than_the_version_that_a_part_states_are_read(tmp_path: Path) -> None:
    rows = [run_row(trained_to=7) | {"d_vo": width} for width in (2, 3)]
    table = pa.Table.from_pylist(rows, RUNS).replace_schema_metadata({"version": "1"})
    (tmp_path / "runs").mkdir()
    pq.write_table(table, tmp_path / "runs/part-1.parquet")
    for _ in range(2):
        runs = Store(tmp_path).runs()
        assert (sorted(runs["d_vo"]), set(runs["trained_to"])) == ([2, 3], {7})
        Store(tmp_path).compact(above=0)
