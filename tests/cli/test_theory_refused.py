"""What the verbs of theory refuse, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgr_dist.theory import draws
from tests.cli.test_theory_verbs import listed
from tests.small_study import Refused

MANY = "bounds --d-model 2 --keys 9 --queries 99 --values 99999"
LARGE = "bounds --d-model 2 --database function"
FEW = "bounds --d-model 2 --keys 3 --queries 2 --values 4"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("construct --algorithm 3 --m 16 --d-model 8", "onehot needs d_model = m"),
        ("construct --algorithm 4 --m 16 --p 0.3", "at most 1/20"),
        ("construct --algorithm 1 --m 16 --p 0.6", "--p: 0.6 is not valid"),
        ("construct --algorithm 6 --m 16", "'6' is not one of"),
        ("construct --algorithm ours --m 16", "--d-k: missing"),
        ("construct --algorithm 1 --m 16 --constant nan", "--constant nan: makes d_k = nan"),
        ("construct --algorithm 3 --m 16 --constant 0", "--constant 0: makes d_k = 0"),
        ("construct --algorithm 3 --m 16 --constant 1e308", "--constant 1e+308: makes d_k"),
        ("geometry none.npy --constant inf", "--constant inf: not a number to multiply"),
        (
            "bounds --d-model 4 --keys 4 --queries 4 --values 4 --database partial --share 1e-320",
            "bounds: m: 1 is not valid",
        ),
        ("construct --algorithm 1 --m 16 --find 0.9 --d-k 3", "leave --d-k"),
        ("construct --algorithm limit --m 16 --store x", "--store: draws of limit have no d_k"),
        ("construct --algorithm limit --m 16 --find 0.9", "--find: limit has no d_k to choose"),
        (
            "construct --algorithm 1 --m 16 --signatures orthogonal --constant 3",
            "--constant: not for orthogonal signatures",
        ),
        ("construct --algorithm 5 --m 16 --d-k 3 --store x", "take --colouring equitable"),
        ("construct --algorithm 1 --m 16 --find 2", "--find 2: not a share"),
        (f"construct --algorithm 1 --m 16 --d-k 1 --draws {10**20}", "--draws"),
        (f"bounds --one-head --d-model 2 --m 4 --draws {10**20}", "--draws"),
        ("construct --algorithm 1 --m 16 --length 4", "--length: only algorithm 2 has it"),
        ("construct --algorithm 2 --m 16 --length 17", "context.length: 17"),
        ("construct --algorithm 1 --m 16 --graph none.csv", "--graph none.csv: cannot be read"),
        ("construct --algorithm 1 --m 16 --d-k 3 --save w.npz", "ends in .safetensors"),
        ("bounds --m 16 --d-model 8 --one-head --save edges.csv", "ends in .safetensors"),
        (
            "bounds --one-head --d-model 2 --m 4 --save /dev/null",
            "--save /dev/null: it is there, and no",
        ),
        (
            f"construct --algorithm 1 --m 8 --d-model 8 --draws 1 --d-k {'9' * 400}",
            "d_model=8 need about 1,000,000,000,000,000,000,000.0 GB of memory",
        ),
        ("bounds --m 4 --d-model 2 --edges 13", "at most m (m - 1) = 12"),
        ("bounds --d-model 2", "--m: missing"),
        ("bounds --d-model 2 --m 4 --keys 3", "--keys: needs --database"),
        ("bounds --d-model 2 --m 4 --one-value", "--one-value: needs --database"),
        ("bounds --d-model 2 --m 4 --seed 0", "--seed: needs --database"),
        ("bounds --one-head --d-model 2 --m 4 --seed 1", "--seed: needs --database"),
        (
            f"{MANY} --database function --one-value",
            "--one-value: 89,099,109 logits; valid are at most 30,000,000",
        ),
        ("bounds --d-model 2 --m 4 --draws 3", "--draws: needs --one-head"),
        ("bounds --one-head --d-model 2 --m 4 --edges 3", "--edges: is for the counting bound"),
        ("bounds --one-head --d-model 2 --m 4 --degree 4", "graph.degree: 4"),
        (
            "bounds --one-head --d-model 2 --m 4 --degree 1 --graph x.csv",
            "--graph: lists its own edges",
        ),
        ("bounds --one-head --d-model 400 --m 100000", "GB of memory, and this machine has"),
        (
            "construct --algorithm 1 --m 100000 --d-model 8 --draws 1",
            "at m=100000,d_model=8 need about",
        ),
        (
            "construct --algorithm 1 --m 16 --d-model 8 --d-k 2000000000 --draws 1",
            "and d_k = 2,000,000,000 at m=16,d_model=8 need about",
        ),
        (
            f"{LARGE} --keys 100000 --queries 20000 --values 4",
            "--database function: needs about",
        ),
        (
            f"{LARGE} --keys 999 --queries 9 --values 4000000 --cp 0.1",
            "--database function: needs about",
        ),
        ("bounds --d-model 2 --m 4 --database function", "leave --m and --edges out"),
        ("bounds --one-head --d-model 2 --database function", "--one-head: takes a graph"),
        ("bounds --d-model 2 --database function --keys 3 --queries 2", "--values: missing"),
        (
            f"{FEW} --database low-rank --rank 5",
            "--rank: 5 is not valid with 3 keys, 2 queries and 4 values; give at most 4",
        ),
        (f"{FEW} --database predicates --per-query 5", "--per-query: 5 is not valid with 4 values"),
        (
            "bounds --d-model 2 --database none.csv",
            "--database none.csv: is none of function, partial",
        ),
        ("bounds --d-model 2 --database none.csv", "as a file none.csv: cannot be read"),
        ("bounds --d-model 2 --database none.csv --rank 2", "--rank: only a family has it"),
        (f"{FEW} --database function --cp 2", "--cp 2: not a share"),
        ("geometry none.npy", "none.npy: cannot be read"),
        ("geometry none.npy --tensor wte", "--tensor: needs a .safetensors file"),
    ],
)
def test_bad_input_ends_in_one_line(arguments: str, said: str, refused: Refused) -> None:
    refused(said, *arguments.split())


@pytest.mark.parametrize(
    "sizes", ["--algorithm 4 --m 200000000", "--algorithm 1 --m 2000000000 --d-model 4 --d-k 1"]
)
def test_what_cannot_fit_in_memory_is_refused_before_a_graph_is_drawn(
    sizes: str, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "sample_graph", lambda *_: pytest.fail("a graph is drawn"))
    refused("of memory, and this machine has", "construct", *sizes.split())


def test_a_graph_that_is_no_permutation_is_refused_by_algorithm_1(
    refused: Refused, tmp_path: Path
) -> None:
    (tmp_path / "edges.txt").write_text("0 1\n0 2\n")
    asked = "construct --algorithm 1 --m 16 --graph edges.txt"
    refused("algorithms 5 and ours take any graph", *asked.split())


@pytest.mark.parametrize(
    ("arguments", "available", "d_k"),
    [("2 --m 32 --d-model 8", 1e6, 555), ("3 --m 16", 3e4, 64)],
)
def test_a_search_is_refused_at_a_width_that_would_not_fit_in_memory(
    arguments: str, available: float, d_k: int, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Algorithm 2 at the widest before it starts, others once they get there."""
    monkeypatch.setattr("rgr_dist.planning.memory.machine_memory", lambda: available)
    refused(f"d_k = {d_k} at", *f"construct --algorithm {arguments} --find 1".split())


@pytest.mark.parametrize("algorithm", ["1", "2", "3", "4"])
def test_draws_of_a_permutation_that_is_read_are_made_and_not_stored(
    algorithm: str, refused: Refused, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "edges.csv").write_text("0,3\n1,2\n5,5\n7,0\n")
    made = f"construct --algorithm {algorithm} --m 10 --graph edges.csv --d-k 8 --draws 2".split()
    refused("leave --graph or --store out", *made, "--store", "kept")
    assert listed(capsys, *made)["rows"][0]["draws"] == 2


def test_all_values_of_predicates_are_put_in_order_and_need_room(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgr_dist.planning.memory.machine_memory", lambda: 4e9)
    sizes = "--keys 4 --queries 3 --per-query 2 --values 100000000"
    said = "--database predicates: needs about 4.8 GB of memory, and this machine has 4.0 GB"
    refused(said, "bounds", "--d-model", "4", "--database", "predicates", *sizes.split())
