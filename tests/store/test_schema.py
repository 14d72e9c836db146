"""The stored tables' schemas: what every column says of itself, in the files too."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rgr_dist.store.schema import KEYS, RUNS, SCHEMA_VERSION
from rgr_dist.store.store import STUDY_TABLES, Store
from rgr_dist.store.verify_and_repair import verify
from tests.store.made_up_runs import run_row, study_row

FOUND = {"status": "found", "d_k": 2, "D_K": 2}
"""In a row with h = 1."""
PROBE = '{"d_k": 2, "mean_score": 1, "n_seeds": 10, "D_K": 2}'
CERTIFICATE = f'{{"pass": {PROBE}, "fail": null}}'


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


@pytest.mark.parametrize("name", ["thresholds", "decisions"])
def test_a_table_of_a_study_is_replaced_whole(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path)
    assert store.read_study_table("study", name) is None
    rows = [study_row(name, cell_id=cell) for cell in "abc"]
    store.write_study_table("study", name, rows[:2])
    store.write_study_table("study", name, rows[2:])
    table = store.read_study_table("study", name)
    assert table["cell_id"].to_list() == ["c"]
    files = [path.name for path in (tmp_path / "studies/study").iterdir()]
    assert files == [f"{name}.parquet"]
    schema = STUDY_TABLES[name]
    stored = pq.read_schema(tmp_path / f"studies/study/{name}.parquet")
    assert stored.equals(schema, check_metadata=True)
    older = pq.read_table(tmp_path / f"studies/study/{name}.parquet").select(KEYS[name])
    pq.write_table(older, tmp_path / f"studies/study/{name}.parquet")
    assert list(store.read_study_table("study", name).columns) == schema.names
    (tmp_path / f"studies/study/{name}.parquet").write_bytes(b"torn")
    assert store.read_study_table("study", name) is None
    store.write_study_table("study", name, [])
    assert store.read_study_table("study", name).empty


@pytest.mark.parametrize(
    ("table", "key"), [(table, key) for table in STUDY_TABLES for key in KEYS[table]]
)
def test_a_studys_table_without_a_key_is_damaged(table: str, key: str, tmp_path: Path) -> None:
    store, path = Store(tmp_path), tmp_path / f"studies/study/{table}.parquet"
    rows = [study_row(table), study_row(table, **{key: None})]
    store.write_study_table("study", table, rows)
    told = {f"studies/study/{table}.parquet": f"a row without {key}"}
    assert store.read_study_table("study", table) is None
    assert store.damaged == told
    whole = path.read_bytes()
    store.write_study_table("study", table, rows[:1])
    assert store.damaged == {}
    path.write_bytes(whole)
    pq.write_table(pq.read_table(path).drop_columns([key]).slice(1), path)
    assert [(one.file, one.problem) for one in verify(Store(tmp_path)).problems] == [*told.items()]


@pytest.mark.parametrize(
    ("name", "row", "told"),
    [
        ("decisions", {"mean_score": math.inf}, None),  # of errors, where a run diverged
        ("decisions", {"mean_score": math.nan}, "mean_score is outside its bounds"),
        ("decisions", {"step": 2}, "two rows of one cell_id, step"),  # as the other row's
        ("decisions", {"d_k": 3, "D_K": 6}, None),
        ("decisions", {"d_k": 3, "D_K": 7}, "D_K is not h * d_k"),
        ("decisions", {"d_vo": 3, "D_V": 7}, "D_V is not h * d_vo"),
        ("thresholds", {"D_K_low": 0, "confirmed": False}, None),
        ("thresholds", {"h": 2}, "two rows of one cell_id, h, d_k"),  # as the other row
        ("thresholds", {"D_K_low": 6, "D_K_high": 5}, "D_K_low, D_K and D_K_high are out of order"),
        ("thresholds", {**FOUND, "D_K_low": 1, "D_K_high": 3}, None),
        ("thresholds", {**FOUND, "D_K_low": 3}, "D_K_low, D_K and D_K_high are out of order"),
        ("thresholds", {**FOUND, "D_K_high": 1}, "D_K_low, D_K and D_K_high are out of order"),
        ("thresholds", {**FOUND, "status": "open"}, "a total width without a threshold"),
        ("thresholds", {**FOUND, "D_K": 4}, "D_K is not h * d_k"),
        ("thresholds", {**FOUND, "n_seeds": 10, "certificate": CERTIFICATE}, None),
        (  # of a threshold that fresh seeds confirm, where a run of the failing probe diverged
            "thresholds",
            {
                **FOUND,
                "certificate": f'{{"pass": {PROBE}, "fail": {PROBE.replace("1,", "null,")}, '
                f'"fresh": {PROBE}}}',
            },
            None,
        ),
        *(
            ("thresholds", {**FOUND, "certificate": text}, "a certificate holds no probes")
            for text in (
                CERTIFICATE.replace("10", '"10"'),
                CERTIFICATE.replace(' "n_seeds": 10,', ""),
                CERTIFICATE.replace(', "fail": null', ""),
            )
        ),
        (
            "thresholds",
            {**FOUND, "n_seeds": 9, "certificate": CERTIFICATE},
            "n_seeds are not those of the certificate",
        ),
        ("thresholds", {**FOUND, "n_seeds": 0}, "a mean of no seeds"),
        ("thresholds", {**FOUND, "certificate": "{"}, "a certificate holds no probes"),
        ("thresholds", {**FOUND, "certificate": "[]"}, "a certificate holds no probes"),
        ("thresholds", {**FOUND, "certificate": "{}"}, "a certificate holds no probes"),
        ("thresholds", {"D_K": 0}, "D_K is outside its bounds"),
        ("thresholds", {"m": 1}, "m is outside its bounds"),
        ("thresholds", FOUND, None),
        ("thresholds", {"status": "found", "d_k": 1}, "a threshold without a total width"),
        ("thresholds", {"status": "found", "D_K": 2}, "a threshold without d_k"),
        ("thresholds", {"status": "found", "d_k": 1, "d_vo": 2, "D_V": 2}, None),
        (
            "thresholds",
            {"status": "found", "d_k": 1, "D_V": 2},
            "a threshold without a total width",
        ),
        ("thresholds", {"status": "lost"}, "a status that there is not"),
        ("decisions", {"verdict": "lost"}, "a verdict that there is not"),
    ],
)
def test_values_of_a_studys_table_are_such_as_it_may_hold(
    name: str, row: dict[str, Any], told: str | None, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    other = {"thresholds": {"h": 1}, "decisions": {"step": 3}}[name]
    store.write_study_table("study", name, [study_row(name), study_row(name, **{**other, **row})])
    assert (store.read_study_table("study", name) is not None) == (told is None)
    assert store.damaged == ({} if told is None else {f"studies/study/{name}.parquet": told})
