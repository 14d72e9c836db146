"""Laws of the counter-based streams, against published vectors and plain-Python Philox."""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
from scipy import stats

from rgr_dist.problem.streams import Stream, philox
from tests.oracles.sampler import philox4x32_10

# Known-answer vectors of Random123 (kat_vectors, philox4x32 10): counter, key, result.
KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip


def integers(text: str) -> tuple[int, ...]:
    return tuple(int(word, 16) for word in text.split())


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN_ANSWERS)
def test_philox_gives_the_published_vectors(counter: str, key: str, result: str) -> None:
    words = philox(*(np.uint64(word) for word in integers(key) + integers(counter)))
    assert tuple(int(word) for word in words) == integers(result)
    assert philox4x32_10(integers(counter), integers(key)) == integers(result)  # the oracle too


def test_words_are_the_blocks_of_counters_0_1_2_in_order() -> None:
    stream = Stream.of("problem", "role", 7)
    blocks = [philox4x32_10((i, 0, 0, 0), (stream.key0, stream.key1)) for i in range(5)]
    assert stream.words(18).tolist() == [word for block in blocks for word in block][:18]


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 400])
def test_a_longer_request_starts_with_the_shorter_one(count: int) -> None:
    stream = Stream.of("problem", "role", 7)
    assert stream.words(count).shape == (count,)
    np.testing.assert_array_equal(stream.words(401)[:count], stream.words(count))
    np.testing.assert_array_equal(stream.normals(401)[:count], stream.normals(count))


def test_every_problem_role_and_seed_has_its_own_stream() -> None:
    names = itertools.product(["p", "q", ""], ["graph", "train", "test"], range(20))
    streams = [Stream.of(*name) for name in names]
    assert len({tuple(stream.words(2)) for stream in streams}) == len(streams)


def test_a_normal_is_the_quantile_at_the_middle_of_its_words_interval() -> None:
    stream = Stream.of("problem", "W_Q", 0)
    below = stats.norm.cdf(stream.normals(1_000)) * 2.0**32
    np.testing.assert_allclose(below - stream.words(1_000), 0.5, atol=1e-5)


@pytest.mark.parametrize("n", [1, 5, 64])
def test_a_permutation_orders_items_by_two_words_each(n: int) -> None:
    stream = Stream.of("problem", "graph", 1)
    words = stream.words(2 * n).tolist()
    by_words = sorted(range(n), key=lambda i: (words[i], words[n + i]))
    assert stream.permutation(n).tolist() == by_words
    assert stream.permutation(n).dtype == np.int32


def test_a_key_is_both_halves_of_the_digest() -> None:
    stream = Stream.of("problem", "role", 7)
    digest = hashlib.blake2b(b"problem|role|7", digest_size=8).digest()
    assert stream.key.dtype == np.uint64
    assert stream.key.tobytes() == digest[:4] + bytes(4) + digest[4:] + bytes(4)
    assert stream.words(3).dtype == np.uint32
