"""The search against the exhaustive grid, on cells of the paper: every width of every head."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rgr_dist.store.store import Store
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.run_here import thresholds_here

SEEDS = 10


def study_of(m: int, d_model: int, **search: Any) -> Study:
    cells = [{"m": m, "d_model": d_model}]
    return parse_study({"name": "exhaustive", "cells": cells, "search": {"seeds": SEEDS, **search}})


def smallest_passing(runs: pd.DataFrame, heads: Iterable[int]) -> dict[int, int | None]:
    """The threshold of each head, from the means of every width."""
    means = runs.groupby(["h", "d_k"])["score"].agg(["mean", "count"])
    assert (means["count"] == SEEDS).all()
    return {h: min(means.loc[h].index[means.loc[h]["mean"] >= 0.99], default=None) for h in heads}


def train_every_width(m: int, d_model: int, heads: list[int], store: Store) -> pd.DataFrame:
    """Every d_k of every head up to twice the law's width, with all seeds."""
    largest = math.floor(2 * m * math.log2(m) / d_model)
    listed = [h for h in heads if h <= largest]
    widths = list(range(1, largest + 1))
    grid = study_of(m, d_model, mode="grid", D_K=widths, heads=listed)
    thresholds_here(grid, store)
    runs = store.runs()
    assert len(runs) == SEEDS * sum(largest // h for h in listed)
    return runs


def is_near(h: int, d_k: int, best: int, keep_within: float | None) -> bool:
    """Whether a width lies within the share of the best D_K, or one step above it."""
    if keep_within is None:
        return True
    share = 1 + Fraction(str(keep_within))
    no_dearer = best // h
    return d_k <= max(math.floor(best * share / h), no_dearer + 1 if no_dearer else 0)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("m", "d_model"), [(64, 16), (64, 32), (128, 32)])
def test_the_search_finds_what_the_exhaustive_grid_finds(
    m: int, d_model: int, tmp_path: Path
) -> None:
    largest = math.floor(2 * m * math.log2(m) / d_model)
    every = list(range(1, largest + 1))
    runs = train_every_width(m, d_model, every, Store(tmp_path / "grid"))
    smallest = smallest_passing(runs, every)
    for heads in (every, [1, 2, 4, 8, 16]):
        searched = heads
        passing = [h * d for h in searched if (d := smallest[h]) is not None]
        for keep_within in (0.10, 0.5) if heads == every else (0.10, 0.5, None):
            store = Store(tmp_path / f"{len(heads)} {keep_within}")
            search = {"heads": heads, "keep_within": keep_within, "max_D_K": largest}
            search["confirm_seeds"] = 0  # the grid has no fresh seeds
            rows = thresholds_here(study_of(m, d_model, **search), store)
            found = {row["h"]: row["d_k"] for row in rows if row["status"] == "found"}
            expected = {
                h: d
                for h in searched
                if (d := smallest[h]) is not None and is_near(h, d, min(passing), keep_within)
            }
            assert found == expected, (heads, keep_within)
            others = {row["status"] for row in rows if row["h"] not in found}
            assert others <= ({"censored"} if keep_within is None else {"pruned"})
            both = store.runs().merge(runs, on="run_id", suffixes=("", "_grid"))
            assert (both["score"] == both["score_grid"]).all()
            assert len(both) == len(store.runs()) < len(runs)
