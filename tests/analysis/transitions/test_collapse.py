"""The collapse of transitions onto one curve: what its reduced χ² is where a law is exact."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from rgr_dist.analysis.transitions.collapse import POINTS, Collapse, _collapse
from rgr_dist.analysis.transitions.share_curves import Shares
from rgr_dist.analysis.transitions.shares_figure import draw_collapse

DESIGNS = {
    "doubling": [0.25, 0.5, 1, 2, 4],
    "eight widths": [0.4, 0.55, 0.7, 0.85, 1, 1.2, 1.5, 2],
    "as a search": [0.5, 0.8, 0.95, 1, 1.05, 1.5],
}


def drawn(
    rng: np.random.Generator, widths: list[float], off: float = 0, seeds: int = 10, cells: int = 12
) -> Collapse:
    """Independent seeds of cells whose middles are off the law by so many doublings."""
    x = np.tile(np.log2(widths), cells)
    middles = np.repeat(off * rng.standard_normal(cells), len(widths))
    passing = rng.binomial(seeds, expit((x - middles) / 0.1))
    cell = np.repeat(np.arange(cells), len(widths)).astype(str)
    own = {"cell_id": cell, "scaled": 2.0**x, "passing": passing, "n_seeds": seeds}
    found = _collapse("x", "x", pd.DataFrame(dict.fromkeys(POINTS, 0) | own))
    assert found is not None
    return found


def mean_of(widths: list[float], off: float = 0, seeds: int = 10) -> float:
    rng = np.random.default_rng(3)
    found = [drawn(rng, widths, off, seeds).reduced_chi2 for _ in range(50)]
    return float(np.mean([one for one in found if one is not None]))


@pytest.mark.parametrize("widths", DESIGNS.values(), ids=DESIGNS.keys())
@pytest.mark.parametrize("seeds", [3, 10, 100])
def test_an_exact_law_has_a_reduced_chi2_of_one(widths: list[float], seeds: int) -> None:
    assert mean_of(widths, seeds=seeds) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("widths", DESIGNS.values(), ids=DESIGNS.keys())
def test_a_law_that_is_off_has_a_larger_one(widths: list[float]) -> None:
    assert mean_of(widths, off=0.2) > 1.5


@pytest.mark.parametrize(("off", "least", "most"), [(0, 0.01, 0.09), (0.3, 0.95, 1)])
def test_a_curve_is_rejected_one_time_in_twenty_by_seeds_alone(
    off: float, least: float, most: float
) -> None:
    rng, rejected = np.random.default_rng(4), 0
    x = np.tile(np.log2(DESIGNS["eight widths"]), 3)
    for _ in range(300):
        middles = np.repeat([-off, 0, off], 8)
        good = rng.binomial(10, expit((x - middles) / 0.1)).astype(float)
        shares = Shares(x, good, 10 - good)
        p = shares.p_value(shares.fit())
        rejected += p is not None and p < 0.05
    assert least <= rejected / 300 <= most


def test_where_luck_plays_no_part_there_is_none() -> None:
    sharp = drawn(np.random.default_rng(3), [2.0**-4, 2.0**4])
    assert (sharp.deviance, sharp.reduced_chi2) == (pytest.approx(0, abs=1e-6), None)


def test_the_panels_of_a_collapse_have_one_scale() -> None:
    """As many doublings each, so that their curves are as steep as they look."""
    wide, narrow = (
        drawn(np.random.default_rng(5), DESIGNS[name]) for name in ("doubling", "as a search")
    )
    other = {"anchor": "a", "h": 1, "text": "", "complete": True, "share": 0.5}
    both = [(one, [other | {"scaled": x} for x in one.points["scaled"]]) for one in (wide, narrow)]
    reaches = [panel.x.high / panel.x.low for panel in draw_collapse(both).panels]
    assert reaches[0] == pytest.approx(reaches[1])
    assert reaches[0] == pytest.approx(16, rel=0.5)
