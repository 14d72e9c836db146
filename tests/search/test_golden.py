"""What a search asks, in which order and why, and what it says at its end, as somebody read it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from rgr_dist.search.seed_test import SeedTest
from rgr_dist.search.threshold import Plan, ProbeResult, Result
from tests.golden import golden
from tests.oracles.search_table import SimulatedCell, work

SHARP = {1: 40, 2: 18, 4: 11}


def f1(arm: int, value: int, seed: int) -> float:
    """Reaches 0.99 in the mean at the arm's width, and 0.995 some way above it."""
    lost = 10 ** (-2 - (value + 0.5 - SHARP[arm]) / 9 + (seed % 5 - 2) / 16)
    return round(1 - min(1.0, lost), 6)


def cell_of(score: Any = f1, test: SeedTest | None = None, **plan: Any) -> SimulatedCell:
    plan = {"axes": {arm: range(1, 65) for arm in SHARP}, "guess": (2.0, 32.0)} | plan
    return SimulatedCell(Plan(test=test or SeedTest(0.99, 5), **plan), score)


def refuted(arm: int, value: int, seed: int) -> float:
    return f1(arm, value, seed) if seed < 5 else f1(arm, value - 2, seed)


def torn(arm: int, value: int, seed: int) -> float | None:
    return None if (arm, value) == (2, 18) else f1(arm, value, seed)


def jagged(arm: int, value: int, seed: int) -> float:
    return 0.9 if value == 19 else f1(arm, value, seed)


def loss(arm: int, value: int, seed: int) -> float:
    return math.inf if value < 3 else round(3 / value + seed / 100, 4)


ENDLESS = SeedTest(0.8, 2, minimise=True, low=None, high=None)
CELLS: dict[str, tuple[SimulatedCell, int | None]] = {  # and after how many probes to stop
    "found": (cell_of(confirm_seeds=3), None),
    "interrupted": (cell_of(), 3),
    "refuted": (cell_of(refuted, confirm_seeds=5, intervals=False), None),
    "torn": (cell_of(torn, keep_within=None), None),
    "jagged": (cell_of(jagged, axes={2: range(1, 49)}, guess=(2.0, 96.0)), None),
    "censored": (cell_of(axes={1: range(1, 21), 4: range(1, 11)}), None),
    "loss": (cell_of(loss, ENDLESS, axes={1: range(1, 6)}, names="abcde", both_ends=True), None),
    "grid": (cell_of(axes={1: (36, 40), 4: (11,)}, every_value=True), None),
}


def story(name: str) -> list[str]:
    """Every decision of a search, and what it says of each arm."""
    cell, probes = CELLS[name]
    search = work(cell).run(probes).portfolio.search("cell")
    told = [
        f"{name}: h = {need.key.arm}, {need.key.value}, {need.want}, {need.why}: {outcome}; "
        f"{search.test_of(need.want).explain(scores)}"
        for need, outcome, scores in search.decisions
    ]
    return [*told, *(" ".join(said(search.result(arm))) for arm in cell.plan.axes)]


def said(one: Result) -> Iterator[str]:
    yield f"h = {one.arm}: {one.status} {one.value} [{one.low}, {one.high}]"
    for key in ("passed", "failed", "fresh"):
        if isinstance(probe := getattr(one, key), ProbeResult):
            yield f"{key} {probe.value}: {probe.mean_score:.5g} of {probe.n_seeds}"
    yield f"first {one.first_value}, above {[*one.fails_above]}; {one.why}"


def stories() -> list[str]:
    return [line for name in CELLS for line in story(name)]


@pytest.mark.parametrize("name", CELLS)
def test_a_search_goes_as_somebody_has_read(name: str) -> None:
    lines, told = golden("searches"), story(name)
    start = next(at for at, one in enumerate(lines) if one.startswith(f"{name}:"))
    assert told == lines[start : start + len(told)]
