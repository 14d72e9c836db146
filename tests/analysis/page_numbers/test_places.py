"""Where the points of the figures stand, against the rows.

An axis is read off its own ticks: their places against their numbers, on the scale of the axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pytest

from rgr_dist.paper import IMPLIED
from tests.analysis.page_numbers.by_hand import HEADS, Cell, Size, anchor
from tests.analysis.page_numbers.reading import Mark, Plot, flat, plots, table
from tests.analysis.page_numbers.test_laws import PAPERS, Data, candidates

Cells = Mapping[Size, Cell]
Scale = Callable[[float], float]

ACROSS, DOWN = 0.003, 0.4
"""Places are written to a thousandth of the width and a tenth of a pixel, ticks too."""


def linear(value: float) -> float:
    return value


def towards_one(value: float) -> float:
    """The axis of scores, which widens towards 1."""
    return -math.log10(1 - value + 1e-3)


def axis(ticks: Mapping[float, float], scale: Scale) -> Callable[[float], float]:
    """From a value to its place, by a line through the ticks."""
    stretched = [scale(value) for value in ticks]
    assert len(stretched) >= 2
    slope, start = np.polyfit(stretched, list(ticks.values()), 1)
    return lambda value: float(start + slope * scale(value))


def stands(
    plot: Plot,
    name: str,
    x: float,
    y: float,
    ends: tuple[float, float] | None = None,
    scales: tuple[Scale, Scale] = (math.log, math.log),
) -> None:
    """A point stands at x and y, and its bar, if there is one, goes from the first to the last."""
    across, down = axis(plot.across, scales[0]), axis(plot.down, scales[1])
    mark: Mark = plot.marks[name]
    assert mark.x == pytest.approx(across(x), abs=ACROSS), name
    assert mark.y == pytest.approx(down(y), abs=DOWN), name
    if ends is None or ends[0] == ends[1]:
        assert mark.ends is None, name
    else:
        floor = max(*plot.down.values(), down(y)) + 40  # a bar is cut where it leaves the panel
        for place, value in zip(mark.ends or (), reversed(ends), strict=True):
            wanted = down(value)
            assert place == pytest.approx(wanted, abs=DOWN) or not -4 < wanted < floor, name


def test_the_law_and_its_ratios(page: str, cells: Cells) -> None:
    width, ratio = plots(page, "law")
    for size, cell in cells.items():
        low, high = cell.low, cell.D_K if cell.high is None else cell.high
        name, theirs = anchor(size), IMPLIED[size][0]
        stands(width, f"width-{name}", cell.scale, cell.D_K, (low, high))
        by = cell.scale
        stands(ratio, f"ratio-{name}", by, cell.D_K / by, (low / by, high / by))
        stands(width, f"width-paper-{name}", by, theirs)
        stands(ratio, f"ratio-paper-{name}", by, theirs / by)
    assert len(width.marks) == len(ratio.marks) == 2 * len(cells)


def test_the_best_heads(page: str, cells: Cells) -> None:
    (plot,) = plots(page, "heads")
    for size, cell in cells.items():
        span = (min(cell.kept), max(cell.kept))
        stands(plot, anchor(size), cell.load, cell.h, span)
        stands(plot, f"paper-{anchor(size)}", cell.load, IMPLIED[size][1])


def test_the_threshold_of_every_head(page: str, cells: Cells) -> None:
    told = {(row["cell"], int(row["h"])): row["status"] for row in table(page, "table-heads")}
    for plot, (size, cell) in zip(plots(page, "splits"), cells.items(), strict=True):
        assert len(plot.marks) == len(HEADS)
        for h in HEADS:
            name = f"{anchor(size)}-h{h}"
            if told[f"({size[0]}, {size[1]})", h] != "found":
                stands(plot, name, h, cell.bound(h))
                continue
            own = cell.heads[h]
            ends = None
            if own.conservative is not None:
                ends = (h * own.optimistic, h * own.conservative)
            stands(plot, name, h, own.passed.D_K, ends)


def test_the_scores(page: str, cells: Cells) -> None:
    scales = (math.log, towards_one)
    for plot, (size, cell) in zip(plots(page, "curves"), cells.items(), strict=True):
        assert len(plot.marks) == len(cell.probes)
        for probe in cell.probes:
            ends = probe.interval if probe.is_whole else None
            if ends is not None:
                ends = (ends[0], min(ends[1], 1.0))
            name = f"{anchor(size)}-h{probe.h}-k{probe.d_k}"
            stands(plot, name, probe.D_K, probe.mean, ends, scales)


def test_the_shares_of_passing_seeds(page: str, cells: Cells) -> None:
    drawn = {name: plot for plot in plots(page, "shares") for name in plot.marks}
    probes = {
        f"{anchor(size)}-h{probe.h}-k{probe.d_k}": probe
        for size, cell in cells.items()
        for probe in cell.probes
    }
    for name, plot in drawn.items():
        probe = probes[name]
        share = probe.passing / len(probe.scores)
        stands(plot, name, probe.D_K, share, scales=(math.log, linear))


def predicted(data: Data, formula: str) -> npt.NDArray[np.float64]:
    """The width of each cell by a law, fitted to all."""
    law = candidates(data)[formula]
    values, _ = law.fit()
    p = law.X.shape[1]
    log = law.offset + law.X @ values[:p]
    return np.exp(log if law.load is None else log + np.log1p(values[p] * law.load))


def test_the_collapse(page: str, cells: Cells) -> None:
    """Panels divide by each cell's own D_K*, by the law that collapses best, by the paper's."""
    data = Data(tuple(cells.values()))
    rows = table(page, "table-collapse")
    by_law = [row for row in rows if not row["DK divided by"].startswith("each cell")]
    best = min(by_law, key=lambda row: float(row["reduced χ²"]))["DK divided by"]
    formula = next(name for name in candidates(data) if flat(name) == best)
    divisors = (data.D_K, predicted(data, formula), predicted(data, PAPERS))
    for i, (plot, by) in enumerate(zip(plots(page, "collapse"), divisors, strict=True)):
        for (size, cell), divisor in zip(cells.items(), by, strict=True):
            for probe in cell.probes:
                if probe.h == cell.h:
                    name = f"{i}-{anchor(size)}-k{probe.d_k}"
                    share = probe.passing / len(probe.scores)
                    stands(plot, name, probe.D_K / divisor, share, scales=(math.log, linear))
