"""The stored tables' schemas: what every column says of itself, in the files too."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rgr_dist.store.schema import RUNS, SCHEMA_VERSION
from rgr_dist.store.store import STUDY_TABLES, Store
from tests.store.made_up_runs import run_row


@pytest.mark.parametrize("schema", [RUNS, *STUDY_TABLES.values()])
def test_every_column_says_what_it_is_about(schema: pa.Schema) -> None:
    assert len(set(schema.names)) == len(schema.names)
    for field in schema:
        assert field.metadata[b"about"].strip(), field.name
    assert schema.metadata[b"version"] == str(SCHEMA_VERSION).encode()


def test_a_stored_part_carries_version_and_meaning(tmp_path: Path) -> None:
    Store(tmp_path).append([run_row()])
    (part,) = (tmp_path / "runs").glob("*.parquet")
    stored = pq.read_schema(part)
    assert stored.metadata[b"version"] == str(SCHEMA_VERSION).encode()
    assert stored.metadata[b"table"] == b"runs"
    assert pq.ParquetFile(part).metadata.row_group(0).column(0).compression == "ZSTD"
    assert stored.equals(RUNS, check_metadata=False)
    for field in stored:
        assert field.metadata[b"about"] == RUNS.field(field.name).metadata[b"about"]


@pytest.mark.parametrize("name", ["thresholds", "decisions", "all_pairs"])
def test_a_table_of_a_study_is_replaced_whole(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path)
    assert store.read_study_table("study", name) is None
    store.write_study_table("study", name, [{"cell_id": "a", "h": 1}, {"cell_id": "b", "h": 2}])
    store.write_study_table("study", name, [{"cell_id": "c", "h": 4}])
    table = store.read_study_table("study", name)
    assert table[["cell_id", "h"]].to_dict("records") == [{"cell_id": "c", "h": 4}]
    files = [path.name for path in (tmp_path / "studies/study").iterdir()]
    assert files == [f"{name}.parquet"]
    schema = STUDY_TABLES[name]
    stored = pq.read_schema(tmp_path / f"studies/study/{name}.parquet")
    assert stored.equals(schema, check_metadata=True)
    older = pq.read_table(tmp_path / f"studies/study/{name}.parquet").select(["cell_id", "h"])
    pq.write_table(older, tmp_path / f"studies/study/{name}.parquet")
    assert list(store.read_study_table("study", name).columns) == schema.names
    (tmp_path / f"studies/study/{name}.parquet").write_bytes(b"torn")
    assert store.read_study_table("study", name) is None
    store.write_study_table("study", name, [])
    assert store.read_study_table("study", name).empty


@pytest.mark.parametrize(
    ("name", "row", "is_read"),
    [
        ("decisions", {"mean_score": math.inf}, True),  # of errors, where a run diverged
        ("decisions", {"mean_score": math.nan}, False),
        ("thresholds", {"D_K_low": 0, "confirmed": False}, True),
        ("thresholds", {"D_K": 0}, False),
        ("thresholds", {"m": 1}, False),
        ("all_pairs", {"failed_pairs": 2_400_000_000, "margin": -0.5}, True),
        ("all_pairs", {"failed_pairs": -1}, False),
    ],
)
def test_numbers_of_a_studys_table_are_such_as_it_may_hold(
    name: str, row: dict[str, float], is_read: bool, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    store.write_study_table("study", name, [{"cell_id": "a", "h": 1}, row])
    assert (store.read_study_table("study", name) is not None) == is_read
