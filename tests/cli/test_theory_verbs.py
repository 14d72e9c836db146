"""``rgr construct``, ``bounds`` and ``geometry`` as they are called."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from rgr_dist.cli import call
from rgr_dist.store.store import Store
from rgr_dist.study.run import Run
from rgr_dist.study.study_file import parse_study
from rgr_dist.theory import draws
from tests.small_study import Refused


def listed(capsys: pytest.CaptureFixture[str], *arguments: Any) -> dict[str, Any]:
    assert call([str(one) for one in (*arguments, "--format", "json")]) == 0
    listing: dict[str, Any] = json.loads(capsys.readouterr().out)
    return listing


def test_construct_prints_a_row_with_the_keys_that_scripts_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call_3 = ("construct", "--algorithm", 3, "--m", 16, "--draws", 5)
    (row,) = listed(capsys, *call_3, "--d-k", 90)["rows"]
    keys = "algorithm m d_model h d_k D_K success_rate draws mean_f1"
    assert set(keys.split()) <= set(row)
    assert (row["algorithm"], row["m"], row["d_model"], row["h"]) == ("3", 16, 16, 1)
    assert (row["d_k"], row["D_K"], row["draws"]) == (90, 90, 5)
    (found,) = listed(capsys, *call_3, "--signatures", "rademacher", "--find", 0.99)["rows"]
    assert found["success_rate"] == 1
    assert found["d_k"] < 90


def test_without_a_width_the_union_bound_gives_one(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("construct", "--algorithm", 3, "--m", 16, "--draws", 3)
    (row,) = listed(capsys, *arguments, "--signatures", "rademacher")["rows"]
    assert row["d_k"] == math.ceil(40 * math.log(16))
    assert row["success_rate"] == 1
    (row,) = listed(capsys, *arguments, "--constant", 10)["rows"]
    assert row["d_k"] == math.ceil(10 * math.log(16))


def test_construct_saves_weights_that_recover_the_graph(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    edges, weights = tmp_path / "edges.csv", tmp_path / "w.safetensors"
    edges.write_text("source,target\n0,1\n0,2\n3,3\n")
    made = ("construct", "--algorithm", "ours", "--m", 8, "--d-model", 6, "--graph", edges)
    listing = listed(capsys, *made, "--find", 1, "--draws", 2, "--save", weights)
    (row,) = listing["rows"]
    assert row["success_rate"] == 1
    saved = load_file(weights)
    X, true = saved["embedding"], np.zeros((8, 8), dtype=bool)
    true[tuple(saved["edges"].T)] = True
    assert saved["edges"].tolist() == [[0, 1], [0, 2], [3, 3]]
    scores = (X @ saved["W_Q"]) @ (X @ saved["W_K"]).T
    np.testing.assert_array_equal(scores > saved["tau"], true)


def test_construct_keeps_nothing_in_a_store_that_another_driver_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = ("construct", "--algorithm", "1", "--m", "8", "--d-k", "2", "--draws", "1", "--store")
    with Store(tmp_path).held("rgr run first"):
        assert call([*made, str(tmp_path)]) == 2
        assert "rgr run first writes it" in capsys.readouterr().err
    assert Store(tmp_path).runs().empty


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("none/x.safetensors", " directory (os error "),
        ("folder.safetensors", "it is there, and no file"),
        ("pipe.safetensors", "it is there, and no file"),
    ],
)
def test_construct_draws_and_stores_nothing_if_its_weights_cannot_be_saved(
    where: str, said: str, tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder.safetensors").mkdir()
    os.mkfifo(tmp_path / "pipe.safetensors")
    monkeypatch.setattr(draws.Constructor, "measure", lambda *_: pytest.fail("draws are made"))
    made = f"construct --algorithm 1 --m 8 --d-k 2 --draws 1 --save {where}"
    for asked in (made, f"{made} --store kept"):
        refused(said, *asked.split())


def test_construct_keeps_its_draws_as_the_runs_of_a_study(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = ("construct", "--algorithm", 1, "--m", 16, "--d-model", 8, "--tau", "best")
    made = (*made, "--signatures", "orthogonal", "--store", tmp_path)
    (row,) = listed(capsys, *made, "--draws", 2)["rows"]
    assert (row["h"], row["d_k"]) == (2, 8)
    (row,) = listed(capsys, *made, "--draws", 4)["rows"]
    runs = Store(tmp_path).runs()
    assert runs["seed"].tolist() == [0, 1, 2, 3]
    assert runs["score"].mean() == pytest.approx(row["mean_f1"])
    assert len(list((tmp_path / "runs").iterdir())) == 2  # two draws were there
    options = {"construction": 1, "signatures": "orthogonal", "tau": "best"}
    cells = [{"m": 16, "d_model": 8}]
    (cell,) = parse_study({"name": "s", "model": options, "cells": cells}).cells
    assert runs["run_id"].tolist() == [
        Run(cell=cell, h=2, d_k=8, seed=seed).run_id for seed in range(4)
    ]


def test_algorithm_5_says_how_many_heads_were_promised(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    edges = tmp_path / "edges.txt"
    edges.write_text("".join(f"{hub} {4 * hub + leaf}\n" for hub in range(3) for leaf in range(3)))
    made = ("construct", "--algorithm", 5, "--m", 12, "--d-model", 200, "--graph", edges)
    made = (*made, "--block-size", 2, "--d-k", 100, "--draws", 2)
    listing = listed(capsys, *made)
    assert listing["promised_heads"] == 8
    assert listing["equitable_heads"] == 5
    assert listing["rows"][0]["h"] == 6
    limit = (*made[:2], "limit", *made[3:-4], "--draws", 2)
    assert listed(capsys, *limit)["rows"][0]["h"] == 6
    even = listed(capsys, *made, "--colouring", "equitable")
    assert even["rows"][0]["h"] == 5
    assert even["rows"][0]["success_rate"] == listing["rows"][0]["success_rate"] == 1


def test_algorithm_2_names_the_floor_of_its_template(capsys: pytest.CaptureFixture[str]) -> None:
    made = ("construct", "--algorithm", 2, "--m", 32, "--d-model", 16, "--d-k", 8, "--draws", 1)
    listing = listed(capsys, *made)
    assert listing["softmax_floor"] == pytest.approx(4 * math.log(15) ** 2)
    assert "template" in listing["floor_of"]
    assert 0 <= listing["rows"][0]["present_right"] <= 1


def test_algorithm_2_takes_contexts_longer_than_twice_its_heads(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of one-hot items the other heads are uniform: (h - 1) / l, and tau = 1/2 must exceed it."""
    made = ("construct", "--algorithm", 2, "--m", 64, "--embedding", "onehot", "--block-size", 16)
    right = {}
    for length in (8, 48):
        (row,) = listed(capsys, *made, "--d-k", 400, "--draws", 1, "--length", length)["rows"]
        right[length] = row["absent_right"]
    assert row["h"] == 4
    assert right[8] < 0.2
    assert right[48] == row["present_right"] == 1


def test_a_width_that_does_not_exist_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    made = ("construct", "--algorithm", 1, "--m", 32, "--d-model", 8, "--find", 0.99, "--draws", 3)
    listing = listed(capsys, *made)
    (row,) = listing["rows"]
    assert row["d_k"] is None
    assert row["D_K"] is None
    assert row["success_rate"] == 0
    assert "limit" in listing["not_found"]


def test_bounds_are_rows_of_bits(capsys: pytest.CaptureFixture[str]) -> None:
    rows = listed(capsys, "bounds", "--m", 64, "--d-model", 16)["rows"]
    assert {tuple(row) for row in rows} == {("bits_per_parameter", "margin", "graphs", "D_K")}
    margins = {row["bits_per_parameter"]: row["margin"] for row in rows}
    assert (margins[2.0], margins[4.0]) == (None, pytest.approx(0.2))
    by_kind = {(row["graphs"], row["bits_per_parameter"]): row["D_K"] for row in rows}
    bits = math.log2(math.comb(64 * 63, 64))
    assert by_kind["all", 1.0] == pytest.approx((bits - 1) / 32)
    bits = math.log2(math.factorial(64))
    assert by_kind["permutations", 2.0] == pytest.approx((bits / 2 - 1) / 32)
    rows = listed(capsys, "bounds", "--m", 64, "--d-model", 16, "--edges", 100)["rows"]
    assert {row["graphs"] for row in rows} == {"all"}


def test_bounds_of_a_database_are_its_sizes_and_ranks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    sizes = ("--keys", 12, "--queries", 4, "--values", 10, "--d-model", 8)
    asked = ("bounds", "--database", "low-rank", *sizes, "--rank", 5, "--cp", 0.01, "--one-value")
    listing = listed(capsys, *asked)
    (row,) = listing["rows"]
    assert (row["triples"], row["rank_lower"], row["cp_rank"]) == (48, 5, 5)
    assert row["rank_upper"] == min(row["values_of_keys"], row["values_of_queries"])
    assert row["D_V_lower"] == 1  # 1 * 4 by the head, 4 by the residual connection
    assert "2.1" in listing["rank_upper"]
    made = {name.removeprefix("one_value_"): at for name, at in row.items() if "one_value" in name}
    assert made.pop("rank_logits") <= 5  # |Q| + 1
    assert made == {"d_model": 6, "d_qk": 4, "right": 48, "rank_answers": 5}
    (tmp_path / "facts.csv").write_text("key,query,value\na,b,c\na,d,e\nf,b,e\n")
    (row,) = listed(capsys, "bounds", "--database", tmp_path / "facts.csv", "--d-model", 8)["rows"]
    assert (row["keys"], row["queries"], row["values"], row["triples"]) == (2, 2, 2, 3)
    assert (row["rank_lower"], row["rank_upper"]) == (2, 3)


def test_bounds_of_one_head_are_proved_draw_by_draw(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ("bounds", "--one-head", "--d-model", 4, "--draws", 3)
    proof = tmp_path / "proof.safetensors"
    listing = listed(capsys, *asked, "--m", 20, "--save", proof)
    keys = ["m", "d_model", "draw", "separable", "margin", "certificate_residual"]
    assert [list(row) for row in listing["rows"]] == [keys] * 3
    assert [row["separable"] for row in listing["rows"]] == [False] * 3
    assert listing["share_separable"] == listing["share_low"] == 0
    assert listing["share_high"] == pytest.approx(1 - 0.025 ** (1 / 3))
    saved = load_file(proof)
    y = np.full((20, 20), -1.0)
    y[tuple(saved["edges"].T)] = 1
    signed = y * saved["certificate"]
    assert np.linalg.norm(saved["embedding"].T @ signed @ saved["embedding"]) < 1e-6
    assert abs(signed.sum()) < 1e-6
    listing = listed(capsys, *asked, "--m", 5, "--save", proof)
    assert all(row["margin"] > 0 for row in listing["rows"])
    saved = load_file(proof)
    scores = (saved["embedding"] @ saved["W_Q"]) @ (saved["embedding"] @ saved["W_K"]).T
    true = np.zeros((5, 5), dtype=bool)
    true[tuple(saved["edges"].T)] = True
    np.testing.assert_array_equal(scores > saved["tau"], true)


def test_bounds_of_one_head_take_any_graph(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ("bounds", "--one-head", "--d-model", 4, "--draws", 2, "--m", 12)
    ring = listed(capsys, *asked, "--degree", 1)["share_separable"]
    assert listed(capsys, *asked, "--degree", 4)["share_separable"] == 0 <= ring
    (tmp_path / "edges.txt").write_text("0 1\n0 2\n3 3\n")
    wide = ("bounds", "--one-head", "--d-model", 11, "--draws", 2, "--m", 12)
    found = listed(capsys, *wide, "--graph", tmp_path / "edges.txt")
    assert found["share_separable"] == 1


@pytest.mark.parametrize("kind", ["npy", "csv", "txt"])
def test_geometry_reads_vectors_of_any_kind(
    kind: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    X, file = np.random.default_rng(0).standard_normal((9, 4)), tmp_path / f"vectors.{kind}"
    if kind == "npy":
        np.save(file, X)
    else:
        np.savetxt(file, X, delimiter="," if kind == "csv" else " ")
    listing = listed(capsys, "geometry", file)
    assert [row["block_size"] for row in listing["rows"]] == [1, 2, 4, 8, 9]
    assert listing["rows"][0]["rho"] < listing["rows"][-1]["rho"]
    assert listing["largest_block_size"] is None
    if kind == "npy":  # the same numbers, column by column
        np.save(file, np.asfortranarray(X))
        assert listed(capsys, "geometry", file) == listing


def test_all_pairs_scores_the_stored_thresholds(
    finished: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(shutil.copytree(finished, tmp_path / "copy"))
    rows = listed(
        capsys, "all-pairs", "small.yaml", "--precision", "float32", "--precision", "int4"
    )
    by_cell: dict[tuple[int, int], dict[str, Any]] = {}
    for row in rows["rows"]:
        by_cell.setdefault((row["m"], row["d_model"]), {})[row["precision"]] = row
    for cell in by_cell.values():
        assert cell["float32"]["passes"]
        assert cell["float32"]["mean_f1"] >= cell["int4"]["mean_f1"]
        assert 0 <= cell["float32"]["exact"] <= cell["float32"]["seeds"] == 3
        assert cell["float32"]["bits_per_parameter"] > 0
    table = Store("results").read_study_table("small", "all_pairs")
    assert table is not None
    assert len(table) == 2 * 3 * len(by_cell)
    again = ("all-pairs", "small.yaml", "--precision", "int4", "--precision", "float32")
    with monkeypatch.context() as context:  # what is known is not trained again
        context.setattr("rgr_dist.engines.recovered.recovered", None)
        assert listed(capsys, *again) == rows
    listed(capsys, "all-pairs", "small.yaml", "--precision", "int4", "--precision", "int6")
    table = Store("results").read_study_table("small", "all_pairs")
    assert table is not None
    assert not table.duplicated(["run_id", "precision"]).any()
    assert set(table["precision"]) == {"float32", "int4", "int6"}
    chosen = ("--cell", "m=16,d_model=8", "--precision", "int8")
    (one,) = listed(capsys, "all-pairs", "small.yaml", *chosen)["rows"]
    assert (one["m"], one["d_model"], one["precision"]) == (16, 8, "int8")
    table = Store("results").read_study_table("small", "all_pairs")
    assert table is not None
    assert set(table["precision"]) == {"float32", "int4", "int6", "int8"}
    kept = Path("results/studies/small/all_pairs.parquet")
    foreign = table.assign(m=table["m"].replace(16, 17)).to_dict("records")
    Store("results").write_study_table("small", "all_pairs", foreign)
    assert listed(capsys, "all-pairs", "small.yaml", *chosen)["rows"] == [one]
    os.truncate(kept, 1000)
    assert call(["report", "small.yaml", "--store", "results"]) == 0
    torn = "studies/small/all_pairs.parquet in results is damaged"
    left_out = f"rgr: {torn} and was left out: it does not end as a Parquet file"
    assert left_out in capsys.readouterr().err.splitlines()
    assert call(["all-pairs", "small.yaml", *chosen]) == 0
    moved = f"rgr: {torn}; moved to damaged/, and measured again"
    assert moved in capsys.readouterr().err.splitlines()
    assert Path("results/damaged/studies-small-all_pairs.parquet").stat().st_size == 1000
    before = kept.read_bytes()
    assert call(["all-pairs", "small.yaml", "--set", "search.target=0.9"]) == 2
    assert "would be overwritten; give this question a name" in capsys.readouterr().err
    assert kept.read_bytes() == before
    assert call(["all-pairs", "softmax"]) == 2
    assert "all-pairs is for model max" in capsys.readouterr().err
