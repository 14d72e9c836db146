"""How much of a threshold is luck: of its seeds, and of d_k being a whole number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.runs import scored
from rgr_dist.analysis.tables import best

DRAWS, SEED = 1000, 20260101


@per_study
def noise(results: StudyResults) -> pd.Series[Any]:
    """Standard deviation of log D_K* that seeds and whole numbers explain, by cell_id.

    A draw takes the study's seeds with replacement, the same ones for every probe of a cell since
    seeds are paired, and finds the threshold of h* anew among the probes that ran. A probe that
    stopped early counts those of its seeds that ran, and keeps its verdict if a draw has none of
    them. A whole number is as good as any value of the interval (fails, passes]: its standard
    deviation is the interval's width over √12.

    Returns:
        A row for each cell with a threshold; null with a single seed, or where nothing fails.
    """
    study, generator = results.study, np.random.default_rng(SEED)
    cells = best(results)
    by_head = dict(list(scored(results.searched, study).groupby(["cell_id", "h"])))
    told = {}
    for cell in cells[cells["D_K"].notna()].to_dict("records"):
        runs, told[cell["cell_id"]] = by_head.get((cell["cell_id"], cell["h_star"])), math.nan
        if runs is None or cell["D_K_fails"] < 1 or study.search.seeds < 2:
            continue
        sign = -1 if study.record.minimised else 1
        scores = sign * runs.pivot(index="D_K", columns="seed", values="score")
        scores = scores.reindex(columns=range(study.search.seeds)).clip(lower=-1e300)
        fails, passes, step = int(cell["D_K_fails"]), int(cell["D_K"]), int(cell["h_star"])
        drawn = _drawn(scores, sign * study.search.target, fails, step, generator)
        resolution = math.log(passes / fails) / math.sqrt(12)
        told[cell["cell_id"]] = math.hypot(float(drawn.std(ddof=1)), resolution)
    return pd.Series(told, dtype="Float64", name="noise")


def _drawn(
    scores: pd.DataFrame, target: float, fails: int, step: int, generator: np.random.Generator
) -> npt.NDArray[np.float64]:
    """log D_K* in every draw: halfway between the smallest pass and the fail below, shape (draws,).

    Where no probe passes it is that of the largest; below the smallest, one step less fails.

    Args:
        scores: a row for each D_K of one head count, a column for each seed; larger is better.
        fails: a D_K that failed; it fails in every draw if these seeds pass, but fresh ones do not.
    """
    widths, score = scores.index.to_numpy(float), scores.to_numpy(float)
    known, seeds = np.isfinite(score), score.shape[1]
    counts = generator.multinomial(seeds, [1 / seeds] * seeds, size=DRAWS)

    def passing(drawn: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        mean = drawn @ np.where(known, score, 0.0).T / np.maximum(drawn @ known.T, 1)
        return np.asarray(mean >= target - 1e-12)

    seen = passing(np.ones((1, seeds), dtype=np.int64))[0]
    good = np.where(counts @ known.T > 0, passing(counts), seen) & ~(seen & (widths <= fails))
    padded = np.log([max(widths[0] - step, 1.0), *widths, widths[-1]])
    first = np.where(good.any(axis=1), good.argmax(axis=1), len(widths))
    return np.asarray((padded[first] + padded[first + 1]) / 2)
