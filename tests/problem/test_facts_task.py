"""What a run of facts starts from: the order of its batches, and its first weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rgr_dist.problem.databases import sample_triples
from rgr_dist.problem.facts_task import FactsTask, initial_facts, trained_names
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run

DATABASE = {"family": "function", "keys": 5, "queries": 3, "values": 7}


def run_of(h: int = 2, d_k: int = 3, d_vo: int = 2, seed: int = 1, **own: Any) -> Run:
    database = own.pop("database", DATABASE)
    m = own.pop("m", 15)
    cell = Cell(model="facts", database=database, m=m, d_model=own.pop("d_model", 6), **own)
    return Run(cell=cell, h=h, d_k=d_k, d_vo=d_vo, seed=seed)


def test_a_wider_layer_begins_with_the_narrower_ones_columns() -> None:
    narrow, wide = initial_facts(run_of(1, 2, 2)), initial_facts(run_of(1, 4, 5))
    for name in ("X_K", "X_Q", "U"):
        assert (narrow[name] == wide[name]).all()
    for name, width in (("W_Q", 2), ("W_K", 2), ("W_V", 2)):
        assert (narrow[name] == wide[name][:, :width]).all()
    np.testing.assert_allclose(narrow["W_O"] * math.sqrt(2), wide["W_O"][:2] * math.sqrt(5))


def test_first_weights_have_the_stated_deviations() -> None:
    database = {"family": "function", "keys": 400, "queries": 300, "values": 500}
    sizes = {"database": database, "m": 120_000, "d_model": 50, "h": 2, "d_k": 20, "d_vo": 10}
    facts, training = {"embedding_scale": 3.0}, {"initial_scale": 0.5}
    weights = initial_facts(run_of(**sizes, facts=facts, training=training))
    inner = 0.5 / math.sqrt(50)
    expected = {
        "X_K": 3.0, "X_Q": 3.0, "U": 1 / math.sqrt(50),
        "W_Q": inner, "W_K": inner, "W_V": inner, "W_O": 0.5 / math.sqrt(20),
    }  # fmt: skip
    for name, value in weights.items():
        assert value.std() == pytest.approx(expected[name], rel=0.06)
    drawn = [
        np.round(value.reshape(-1)[:50] / expected[name], 6) for name, value in weights.items()
    ]
    assert len({tuple(row) for row in np.stack(drawn).tolist()}) == 7  # no two share a stream


def test_every_epoch_meets_every_triple_once() -> None:
    task = FactsTask.of(run_of(training={"batch_size": 4}).cell, 0)
    assert task.batches_per_epoch == 4
    epochs = [[task.batch(4 * epoch + part) for part in range(4)] for epoch in range(3)]
    for epoch in epochs:
        assert [len(batch) for batch in epoch] == [4, 4, 4, 3]
        assert sorted(np.concatenate(epoch).tolist()) == task.triples.tolist()
    assert not np.array_equal(epochs[0][0], epochs[1][0])
    full = FactsTask.of(run_of().cell, 0)
    assert (full.batch(7) == full.triples).all()
    assert (full.triples == sample_triples(full.cell.database, full.cell.problem_json, 0)).all()


def test_stored_runs_keep_their_first_weights_and_the_order_of_their_batches() -> None:
    run = run_of(seed=1, training={"batch_size": 4})
    ends = {
        "X_K": (-0.1617498533310019, -0.042783036699737834),
        "X_Q": (-0.08705273578299194, 0.018517619159948633),
        "W_Q": (-0.46680932705958555, -0.7151418332875085),
        "W_K": (0.6392780468014038, 0.6661663691076941),
        "W_V": (0.23538057610459226, -0.2793954614168019),
        "W_O": (-0.2685865687883684, 0.27059225918504787),
        "U": (0.2908095299658769, -0.38922270323095826),
    }
    weights = initial_facts(run)
    assert list(weights) == list(ends)
    for name, value in weights.items():
        assert (value[0, 1], value[-1, -1]) == pytest.approx(ends[name], rel=1e-12)
        assert value.flags.c_contiguous
    task = FactsTask.of(run.cell, 1)
    assert task.shape == (5, 3, 7)
    assert task.batch(0).tolist() == [[1, 1, 5], [0, 1, 2], [2, 0, 2], [1, 2, 1]]
    assert task.batch(5).tolist() == [[1, 1, 5], [3, 2, 3], [0, 1, 2], [3, 1, 4]]


def test_frozen_parts_are_not_trained() -> None:
    whole = ("X_K", "X_Q", "W_Q", "W_K", "W_V", "W_O", "U")
    assert trained_names(run_of().cell) == whole
    assert trained_names(run_of(facts={"train_embedding": False}).cell) == whole[2:]
    frozen = run_of(facts={"train_embedding": False, "train_unembedding": False})
    assert trained_names(frozen.cell) == ("W_Q", "W_K", "W_V", "W_O")
