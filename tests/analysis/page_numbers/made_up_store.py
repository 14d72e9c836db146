"""A store of ``base-grid``, finished by the real search on made-up scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from rgr_dist.paper import IMPLIED
from rgr_dist.planning.portfolio import plan_cell, seed_test
from rgr_dist.search.cell_search import replay
from rgr_dist.search.protocol import ProbeKey
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study
from tests.store.made_up_runs import failed_row, run_row

Rows = list[dict[str, Any]]

SEEDS = 30
"""Ten of a verdict and twenty fresh ones."""


@cache
def luck(m: int, d_model: int, h: int) -> np.ndarray:
    """Of each seed, the same at every width."""
    return np.random.default_rng([m, d_model, h]).normal(0, 0.35, 64)


def score(cell: Cell, h: int, d_k: int, seed: int) -> float | None:
    """F1 of a run, None where it diverges: single heads of narrow cells stay below the target."""
    if (cell.m, cell.d_model, h, seed) == (128, 16, 1, 2):
        return None
    if (cell.m, cell.d_model, h, seed) == (64, 16, 16, 3):
        return 0.1
    D_K, best_h = IMPLIED[cell.m, cell.d_model]
    off = math.log2(h / best_h)
    width = D_K * (1 + 0.04 * off**2)
    lacks = 10 ** (-2.2 - 2.5 * math.log2(h * d_k / width) + luck(cell.m, cell.d_model, h)[seed])
    return 1 - min(0.6, lacks + (0.06 if off < -2 else 0.0))


def made_row(cell: Cell, h: int, d_k: int, seed: int) -> dict[str, Any]:
    """The row of a run: it converged if it came close to the target."""
    own = score(cell, h, d_k, seed)
    limit = cell.training.max_steps
    steps = limit if own is None or own < 0.995 else limit // 4
    reason = "diverged" if own is None else "max_steps" if steps == limit else "converged"
    told = {"score": own, "val_score": own, "stop_reason": reason, "steps": steps}
    return run_row(h, d_k, seed, cell, **told, seconds=steps * 4e-5, engine=f"made by {h % 2}")


class Scores(Mapping[ProbeKey, dict[int, float]]):
    """What every probe of a cell would score, as the search looks them up."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell

    def __getitem__(self, key: ProbeKey) -> dict[int, float]:
        own = (score(self.cell, key.arm, key.value, seed) for seed in range(SEEDS))
        return {seed: 0.0 if one is None else one for seed, one in enumerate(own)}

    def __iter__(self) -> Iterator[ProbeKey]:
        raise TypeError("there is no end of probes")

    def __len__(self) -> int:
        raise TypeError("there is no end of probes")


def searched(study: Study) -> Rows:
    """Every run that the study's search asks for, and one that failed before it was run again."""
    rows: Rows = []
    for cell in study.cells:
        state = replay(plan_cell(cell, study.search), seed_test(study), Scores(cell))
        assert state.is_done
        runs = {
            (one.arm, one.value, seed)
            for one in state.decisions
            for seed in state.scores(ProbeKey(one.arm, one.value), one.want)
        }
        rows += [made_row(cell, *run) for run in sorted(runs)]
    first = rows[0]
    return [failed_row(h=first["h"], d_k=first["d_k"], cell=study.cells[0]), *rows]


def of_other_studies(study: Study, rows: Iterable[dict[str, Any]]) -> Rows:
    """Runs of the same cells that other studies have stored: other widths, and spared seeds."""
    known = {(row["cell_id"], row["h"], row["d_k"], row["seed"]) for row in rows}
    more = []
    for cell in study.cells:
        D_K, best_h = IMPLIED[cell.m, cell.d_model]
        for h in {1, best_h}:
            widths = {max(1, round(D_K / h * 2 ** (step / 6))) for step in range(-5, 6)}
            more += [
                made_row(cell, h, d_k, seed)
                for d_k in widths
                for seed in range(10)
                if (cell.cell_id, h, d_k, seed) not in known
            ]
    return more
