"""The comparison of searches, on thresholds that are known."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from own_trainable import TRUST, WAYS, WIDTHS, accuracies, compare
from threshold_search.simulate import SimulatedRun

THRESHOLD = 19
HERE = [way for way in WAYS if way != "ax" or importlib.util.find_spec("ax")]


def sharp(key: Any, seed: int) -> SimulatedRun:
    return SimulatedRun(1.0 if key.value >= THRESHOLD else 0.5, 0, 1)


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    return {row["way"]: row for row in compare(sharp, 3, [way for way in HERE if way != "ax"])}


def test_grid_and_search_find_a_sharp_threshold_and_show_it(rows: dict) -> None:
    grid, search = rows["grid"], rows["search"]
    assert grid["trainings"] == 3 * len(WIDTHS)
    assert search["trainings"] < grid["trainings"] / 8
    assert search["trainings"] == rows["bisection"]["trainings"]
    for row in (grid, search, rows["bisection"]):
        assert (row["same"], row["off"], row["off_most"], row["shown"]) == (1, 0, 0, 1)


def test_the_others_stop_at_the_trainings_of_the_search(rows: dict) -> None:
    for share, suffix in ((1, ""), (2, ", twice the trainings")):
        most = share * rows["search"]["trainings"]
        assert most <= rows[f"optuna{suffix}"]["trainings"] < most + 3
        assert rows[f"noisy{suffix}"]["trainings"] <= most
    assert rows["noisy, twice the trainings"]["off_most"] <= 1
    assert 0.5 < TRUST < 1


@pytest.mark.skipif("ax" not in HERE, reason="Ax is no dependency")
def test_ax_comes_near(rows: dict) -> None:
    ax = {row["way"]: row for row in compare(sharp, 1, ["grid", "search", "ax"])}
    assert ax["ax, twice the trainings"]["off"] < 20


def test_a_wide_layer_learns_what_a_narrow_one_cannot_and_seeds_know_nothing_of_each_other() -> (
    None
):
    narrow, wide = (accuracies(width, [0, 1, 2], labels=64, steps=60) for width in (2, 64))
    assert max(narrow) < 0.9 < min(wide)
    assert len(set(narrow)) > 1
    assert [accuracies(2, [seed], labels=64, steps=60)[0] for seed in range(3)] == narrow
