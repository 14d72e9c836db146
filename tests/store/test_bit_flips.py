"""One bit of a part is flipped: it is noticed, or what is read is the same to the last bit."""

from __future__ import annotations

import math
import random
import shutil
import struct
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rgr_dist.store.store import Store
from tests.store.made_up_runs import failed_row, run_row, study_row


def outcomes(store: Store, part: Path, flips: int) -> Counter[str]:
    """What became of single-bit flips of a part, each at a place drawn from a seed."""
    whole, before = part.read_bytes(), store.runs()
    n_rows = pq.read_metadata(part).num_rows
    found: Counter[str] = Counter()
    for place in random.Random(0).sample(range(8 * len(whole)), flips):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        part.write_bytes(flipped)
        after = store.runs()
        if store.damaged:
            assert list(store.damaged) == [f"runs/{part.name}"]
            assert len(after) == len(before) - n_rows
            found["detected"] += 1
        else:
            found["harmless" if after.equals(before) else "silent"] += 1
    return found


HOW_MANY = pytest.mark.parametrize(
    "flips", [pytest.param(50, id="some"), pytest.param(3000, id="3000", marks=pytest.mark.slow)]
)


@HOW_MANY
def test_every_flipped_bit_is_noticed(tmp_path: Path, flips: int) -> None:
    store = Store(tmp_path)
    store.append([run_row(seed=seed, d_k=9) for seed in range(10)])
    (untouched,) = (tmp_path / "runs").iterdir()
    scores = [math.sin(seed) ** 2 for seed in range(38)]
    rows = [run_row(seed=seed, score=score) for seed, score in enumerate(scores)]
    store.append([*rows, failed_row(seed=38), run_row(seed=39, null_rate=0.5)])
    (part,) = set((tmp_path / "runs").iterdir()) - {untouched}
    assert outcomes(store, part, flips) == {"detected": flips}


@HOW_MANY
def test_in_a_part_of_an_earlier_version_none_changes_a_value(tmp_path: Path, flips: int) -> None:
    store = Store(tmp_path)
    store.append([run_row(seed=seed) for seed in range(10)])
    (older,) = (Path(__file__).parent / "parts").glob("*.parquet")
    found = outcomes(store, Path(shutil.copy(older, tmp_path / "runs")), flips)
    assert found["detected"] > 0
    assert found["silent"] == 0


def test_a_table_of_a_study_with_a_flipped_bit_is_not_read(tmp_path: Path) -> None:
    store, path = Store(tmp_path), tmp_path / "studies/s/thresholds.parquet"
    scores = [math.sin(h) ** 2 for h in range(99)]
    rows = [study_row("thresholds", h=h, mean_score=one) for h, one in enumerate(scores, 1)]
    store.write_study_table("s", "thresholds", rows)
    read = store.read_study_table("s", "thresholds")
    assert read is not None
    assert list(read["mean_score"]) == scores
    whole = path.read_bytes()
    start = 8 * whole.index(struct.pack("<d", scores[1])[:6])  # they do not compress
    for place in range(start, start + 40):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        assert store.read_study_table("s", "thresholds") is None
