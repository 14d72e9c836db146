"""What it costs to make weights by the paper's constructions: O(m d_model log m), says App. B.

    OPENBLAS_NUM_THREADS=1 python benchmarks/construction_cost.py [--largest-m 16384] [--repeats 5]

A row is one algorithm at one size, at the width that its proof takes, d_k = 40 ln m; graph and
embedding are made before the clock starts. ``seconds`` is processor time, the least of the repeats,
since other programs can only add to it; idle threads of the matrix products would add too.
``power_m`` and ``power_d_model`` are fitted to an algorithm's rows by least squares:
ln(seconds / ln m) = c + power_m ln m + power_d_model ln d_model, with 95 % t-intervals.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import typer
from scipy import stats

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.study.cell import Cell
from rgr_dist.study.construction import Construction
from rgr_dist.theory.construct import Problem, build, head_count, signatures_of
from rgr_dist.theory.draws import problem_of

ALGORITHMS: tuple[Literal["1", "5"], ...] = ("1", "5")
SMALLEST_M = 1024
WIDTHS = (64, 128, 256, 512, 1024)

Row = dict[str, Any]


def measured(algorithm: Literal["1", "5"], problem: Problem, repeats: int) -> Row:
    """One algorithm's row for a problem."""
    m, d_model = problem.X.shape
    options = Construction()
    h = head_count(algorithm, problem.graph, d_model, options.colouring)
    d_k = math.ceil(signatures_of(algorithm, options).union_bound_constant * math.log(m))
    taken = []
    for _ in range(repeats):
        before = time.process_time()
        build(algorithm, options, problem, h, d_k, d_model if algorithm == "5" else None)
        taken.append(time.process_time() - before)
    sizes = {"algorithm": algorithm, "m": m, "d_model": d_model, "h": h, "d_k": d_k}
    return {**sizes, "seconds": min(taken)}


def powers(rows: Sequence[Row]) -> dict[str, list[float]]:
    """The powers of m and d_model with which seconds / ln m grows, each with its 95 % interval."""
    m, d_model, seconds = (
        np.array([row[name] for row in rows], dtype=np.float64)
        for name in ("m", "d_model", "seconds")
    )
    causes = np.column_stack([np.ones(len(rows)), np.log(m), np.log(d_model)])
    logs = np.log(seconds / np.log(m))
    fitted, *_ = np.linalg.lstsq(causes, logs)
    free = len(rows) - causes.shape[1]
    variance = ((logs - causes @ fitted) ** 2).sum() / free
    errors = np.sqrt(np.diag(np.linalg.inv(causes.T @ causes)) * variance)
    reach = stats.t.ppf(0.975, free) * errors
    return {
        name: [
            round(float(end), 3) for end in (fitted[i], fitted[i] - reach[i], fitted[i] + reach[i])
        ]
        for i, name in ((1, "power_m"), (2, "power_d_model"))
    }


def main(
    largest_m: Annotated[int, typer.Option(min=SMALLEST_M, help="Up to so many items.")] = 16384,
    repeats: Annotated[int, typer.Option(min=1, help="How often to make each.")] = 5,
    how: How = Format.TABLE,
) -> None:
    """Print the seconds of each algorithm and size, and the fitted powers."""
    sizes = [SMALLEST_M * 2**i for i in range(int(math.log2(largest_m / SMALLEST_M)) + 1)]
    rows = []
    for m in sizes:
        for d_model in WIDTHS:
            cell = Cell.model_validate({"m": m, "d_model": d_model})
            problem = problem_of(cell, 0)
            rows += [measured(algorithm, problem, repeats) for algorithm in ALGORITHMS]
    facts = {
        f"{name}_of_{algorithm}": values
        for algorithm in ALGORITHMS
        for name, values in powers([r for r in rows if r["algorithm"] == algorithm]).items()
    }
    print_listing({"rows": rows}, how, facts=facts)


if __name__ == "__main__":
    typer.run(main)
