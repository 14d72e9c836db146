"""Training steps per second of model facts in every engine, alternating in one run on one core.

    python benchmarks/facts_throughput.py [--format table|json|csv]

A step is one full batch of one lane. ``jax`` is the layer over two tokens in JAX, with vmap, scan
and jit; ``jax factored`` computes the logits from their factors, as ``fused`` does. Rates and
ratios are medians as in throughput.py. ``share_of_peak`` counts, for every engine, the operations
that a step needs with the factors; for ``reference`` and ``jax``, which do more, it is thus the
share of useful work.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.study.cell import Cell
from rgr_dist.study.database import Function
from rgr_dist.study.run import Run
from throughput import (
    BLOCK,
    Contestant,
    FusedLanes,
    Program,
    ReferenceLoop,
    median_ratio,
    peak_flops_per_second,
    ratio,
)

SHAPES = [
    # keys, queries, values, d_model, h, d_qk, d_vo
    (64, 8, 64, 32, 1, 8, 8),
    (64, 8, 64, 32, 4, 8, 8),
    (256, 8, 256, 64, 1, 8, 32),
]
LANES = 10
"""Seeds of a probe."""


def make_jax(runs: Sequence[Run], factored: bool) -> Program:
    """The JAX peer."""
    from peers.jax_facts import JaxFacts

    return JaxFacts(runs, BLOCK, factored)


def contestants() -> list[Contestant]:
    """The engines that take part."""
    present = [
        Contestant("reference", 1, 1, ReferenceLoop),
        Contestant("fused", LANES, 1, FusedLanes),
    ]
    if importlib.util.find_spec("jax"):
        present += [
            Contestant(name, LANES, 1, partial(make_jax, factored=factored))
            for name, factored in (("jax", False), ("jax factored", True))
        ]
    return present


def flops_per_step(
    keys: int, queries: int, values: int, d_model: int, h: int, d_qk: int, d_vo: int
) -> int:
    """Floating-point operations that a step needs, a multiply-add as two, an exponential as one.

    Forward, and twice that backward: keys and values of all tokens, queries, W_O U, that applied to
    the values of all tokens, X_Q U, scores. For each triple and value, 11 per head and 6 for the
    softmax. Some 12 of AdamW per weight.
    """
    tokens = keys + queries
    products = tokens * d_model * h * (d_qk + d_vo) + queries * d_model * h * d_qk
    products += h * d_vo * values * (d_model + tokens) + queries * d_model * values
    products += keys * queries * h * d_qk
    weights = d_model * (tokens + values + 2 * h * (d_qk + d_vo))
    return 6 * products + keys * queries * values * (11 * h + 6) + 12 * weights


def measure_shape(shape: tuple[int, ...], rounds: int, seconds: float) -> list[dict[str, Any]]:
    """One row for each engine at a shape."""
    keys, queries, values, d_model, h, d_qk, d_vo = shape
    database = Function(family="function", keys=keys, queries=queries, values=values)
    cell = Cell(model="facts", m=database.n_asked, d_model=d_model, database=database)
    entrants = contestants()
    for entrant in entrants:
        entrant.prepare(lambda seed: Run(cell=cell, h=h, d_k=d_qk, d_vo=d_vo, seed=seed), seconds)
    peaks = []
    for _ in range(rounds):
        for entrant in entrants:
            entrant.rates.append(entrant.rate())
        peaks.append(peak_flops_per_second())
    by_name = {entrant.engine: entrant.rates for entrant in entrants}
    flops = flops_per_step(*shape)
    names = ("keys", "queries", "values", "d_model", "h", "d_qk", "d_vo")
    return [
        {
            "engine": entrant.engine,
            **dict(zip(names, shape, strict=True)),
            "lanes": entrant.lanes,
            "steps_per_second": round(statistics.median(entrant.rates)),
            "spread": round(
                (max(entrant.rates) - min(entrant.rates)) / statistics.median(entrant.rates), 3
            ),
            "vs_reference": ratio(entrant.rates, by_name["reference"]),
            "vs_jax": ratio(entrant.rates, by_name.get("jax")),
            "vs_jax_factored": ratio(entrant.rates, by_name.get("jax factored")),
            "flops_per_step": flops,
            "share_of_peak": round(flops * median_ratio(entrant.rates, peaks), 3),
        }
        for entrant in entrants
    ]


def main(
    how: How = Format.TABLE,
    rounds: Annotated[int, typer.Option(min=1, help="rounds of each engine")] = 7,
    seconds: Annotated[float, typer.Option(min=0, help="time of an engine in a round")] = 0.3,
    shapes: Annotated[int, typer.Option(min=1, max=len(SHAPES), help="how many shapes")] = 3,
) -> None:
    """Measure training steps per second of model facts in every engine."""
    os.environ.setdefault(  # one core for JAX, as for the others
        "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )
    torch.set_num_threads(1)
    messages = Console(stderr=True)
    if not importlib.util.find_spec("jax"):
        messages.print("jax: skipped, not installed; pip install 'rgr-dist[jax]'")
    rows = []
    for shape in SHAPES[:shapes]:
        messages.print(f"(keys, queries, values, d_model, h, d_qk, d_vo) = {shape}")
        rows += measure_shape(shape, rounds, seconds)
    print_listing({"rows": rows}, how)


if __name__ == "__main__":
    typer.run(main)
