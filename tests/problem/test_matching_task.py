"""The matching task against Sec. 7.3: what an example is, its law, and that it stands alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rgr_dist.problem.edge_task import initial_projections
from rgr_dist.problem.embeddings import sample_embedding
from rgr_dist.problem.graphs import sample_graph
from rgr_dist.problem.matching_task import MatchingTask, draw_examples, initial_block
from rgr_dist.problem.streams import Stream
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from tests.oracles.sampler import philox4x32_10

STREAM = Stream.of("problem", "matching train", 0)
FIRSTS = st.sampled_from([0, 1, 12_345, 2**32 - 2, 2**40])


def cell_of(m: int = 16, d_model: int = 8, length: int = 3, **training: int) -> Cell:
    training = {"batch_size": 5, "weight_decay": 0.01} | training
    return Cell(
        model="transformer", m=m, d_model=d_model, context={"length": length}, training=training
    )


def draw(pi: Sequence[int], first: int, count: int, length: int) -> np.ndarray:
    targets = np.array(pi, np.int32)
    sources = np.flatnonzero(targets != np.arange(len(pi))).astype(np.int32)
    return draw_examples(STREAM, first, count, targets, sources, length)


def literal_example(index: int, pi: Sequence[int], length: int) -> list[int]:
    """Example ``index`` in plain Python: query, items, answer."""
    blocks = range((2 * length + 4) // 4)
    counters = [(p, index & 0xFFFFFFFF, index >> 32, 0) for p in blocks]
    key = (STREAM.key0, STREAM.key1)
    words = itertools.chain.from_iterable(philox4x32_10(counter, key) for counter in counters)

    def below(n: int) -> int:
        return next(words) * n // 2**32

    moved = [i for i, target in enumerate(pi) if i != target]
    query = moved[below(len(moved))]
    successor = pi[query]
    position = below(2 * length)
    # What is left is kept as an array whose last two entries were filled from the front.
    deck = list(range(len(pi)))
    for gone, end in ((query, len(pi) - 1), (successor, len(pi) - 2)):
        at = deck.index(gone)
        deck[at], deck[end] = deck[end], deck[at]
    deck = deck[:-2]
    for p in range(2 * length - 1):
        j = p + below(len(deck) - p)
        deck[p], deck[j] = deck[j], deck[p]
    items = deck[: 2 * length - 1]
    items.insert(position, successor)
    pairs = [set(items[i : i + 2]) for i in range(0, 2 * length, 2)]
    (answer,) = next(pair for pair in pairs if successor in pair) - {successor}
    return [query, *items, answer]


@given(data=st.data(), first=FIRSTS)
def test_an_example_is_what_the_paper_says(data: st.DataObject, first: int) -> None:
    length = data.draw(st.integers(2, 8), "l")
    m = data.draw(st.integers(2 * length + 1, 2 * length + 20), "m")
    pi = data.draw(st.permutations(range(m)).filter(lambda pi: pi != sorted(pi)), "pi")
    for query, *items, answer in draw(pi, first, 4, length).tolist():
        successor = pi[query]
        assert successor != query, "a query that is its own successor is rejected"
        assert len(set(items)) == 2 * length, "a perfect matching over 2l items"
        assert query not in items
        at = items.index(successor)
        assert answer == items[at + 1 if at % 2 == 0 else at - 1], "the answer is M(s)"


@given(data=st.data(), first=FIRSTS)
def test_examples_are_those_of_the_plain_sampler(data: st.DataObject, first: int) -> None:
    length = data.draw(st.integers(2, 5), "l")
    m = data.draw(st.integers(2 * length + 1, 2 * length + 9), "m")
    pi = data.draw(st.permutations(range(m)).filter(lambda pi: pi != sorted(pi)), "pi")
    expected = [literal_example(first + i, pi, length) for i in range(4)]
    assert draw(pi, first, 4, length).tolist() == expected


def test_queries_slots_and_answers_are_uniform() -> None:
    pi = [1, 2, 0, 3, 5, 4, 6]  # 3 and 6 are their own successors
    drawn = draw(pi, 0, 60_000, 2)
    queries = np.bincount(drawn[:, 0], minlength=7)
    assert queries[[3, 6]].tolist() == [0, 0]
    assert stats.chisquare(queries[[0, 1, 2, 4, 5]]).pvalue > 1e-3
    asked_0 = drawn[drawn[:, 0] == 0]  # the successor is 1; 2 to 6 are left
    assert stats.chisquare(np.bincount(asked_0[:, -1], minlength=7)[2:]).pvalue > 1e-3
    positions = np.argmax(asked_0[:, 1:-1] == 1, axis=1)
    assert stats.chisquare(np.bincount(positions, minlength=4)).pvalue > 1e-3
    contents = np.unique(np.sort(asked_0[:, 1:-1], axis=1), axis=0, return_counts=True)[1]
    assert len(contents) == 10, "1, and three of the other five"
    assert stats.chisquare(contents).pvalue > 1e-3


def test_a_batch_is_the_same_alone_and_among_others() -> None:
    task = MatchingTask.of(cell_of(), 3)
    batches = task.training_batches(0, 6)
    assert batches.shape == (6, 5, 2 * 3 + 2)
    assert task.training_batches(4, 1).tolist() == batches[4:5].tolist()
    assert len(np.unique(batches.reshape(-1, 8), axis=0)) == 30


def test_a_permutation_that_moves_nothing_cannot_be_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unmoved = np.arange(16, dtype=np.int32)
    monkeypatch.setattr(Stream, "permutation", lambda self, n: unmoved)
    with pytest.raises(ValueError, match="seed 0: its permutation of 16 items moves none"):
        MatchingTask.of(cell_of(), 0)


def test_only_queries_and_keys_depend_on_the_split_and_wider_ones_share_columns() -> None:
    cell = cell_of(m=64, d_model=32)
    narrow, wide, split = (
        initial_block(Run(cell=cell, h=h, d_k=d_k, seed=2)) for h, d_k in ((1, 8), (1, 12), (4, 2))
    )
    for name in narrow:
        assert narrow[name].tolist() == split[name].tolist()
        if name in ("W_Q", "W_K"):
            assert wide[name][:, :8].tolist() == narrow[name].tolist()
        else:
            assert wide[name].tolist() == narrow[name].tolist()


def test_the_protocols_numbers_are_pinned() -> None:
    """Raise ``PROTOCOL`` before changing one of these: stored runs were trained on them."""
    cell = cell_of(validation_contexts=20, test_contexts=30)
    task = MatchingTask.of(cell, 1)
    assert task.cell == cell
    assert task.targets.tolist() == sample_graph(cell, 1).targets.tolist()
    assert task.sources.tolist() == [i for i in range(16) if task.targets[i] != i]
    assert task.sources.dtype == np.int32
    for role, count in (("train", 15), ("validation", 20), ("test", 30)):
        stream = Stream.of(cell.problem_json, f"matching {role}", 1)
        drawn = draw_examples(stream, 0, count, task.targets, task.sources, 3)
        train = task.training_batches(0, 3).reshape(15, -1)
        expected = {"train": train, "validation": task.validation, "test": task.test}[role]
        assert drawn.tolist() == expected.tolist()
        assert drawn.dtype == np.int32
    null = Stream.of(cell.problem_json, "null", 1).normals(8)
    np.testing.assert_allclose(task.table[-1], null / np.linalg.norm(null), rtol=1e-12)
    np.testing.assert_array_equal(task.table[:-1], sample_embedding(cell, 1))
    theta = initial_block(Run(cell=cell, h=2, d_k=3, seed=1))
    shapes = {"W_V": (8, 8), "W_O": (8, 8), "W_1": (8, 16), "W_2": (16, 8)}
    for name, shape in shapes.items():
        drawn = Stream.of(cell.problem_json, name, 1).normals(shape[0] * shape[1])
        np.testing.assert_allclose(theta[name] * np.sqrt(shape[0]), drawn.reshape(shape))
    W_Q, W_K = initial_projections(Run(cell=cell, h=2, d_k=3, seed=1))
    assert theta["W_Q"].tolist() == W_Q.tolist()
    assert theta["W_K"].tolist() == W_K.tolist()
    assert (theta["b_1"].tolist(), theta["b_2"].tolist()) == ([0.0] * 16, [0.0] * 8)
    order = ["W_Q", "W_K", "W_V", "W_O", "W_1", "b_1", "W_2", "b_2"]
    assert list(theta) == order
