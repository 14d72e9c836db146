"""The skewed graphs that are trained and packed: only the largest in-degree grows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from skewed_graphs import algorithm_5, hub


@pytest.mark.parametrize("delta", [1, 4, 20])
def test_as_many_items_as_asked_have_one_target_and_no_other_two_do(delta: int) -> None:
    sources, targets = zip(*hub(20, delta), strict=True)
    assert sources == tuple(range(20))
    degrees = Counter(targets)
    assert degrees.pop(targets[0]) == delta
    assert set(degrees.values()) <= {1}


def test_algorithm_5_takes_a_head_for_each_edge_of_the_hub(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("".join(f"{i},{j}\n" for i, j in hub(32, 6)))
    found = algorithm_5(32, 16, path)
    assert (found["heads_of_5"], found["heads_of_B10"]) == (2 + 6, 6)
    assert 0 < found["f1_of_5"] < 1
