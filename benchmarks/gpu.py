"""Training steps per second on a GPU, by the number of lanes in flight.

    python benchmarks/gpu.py [--models max …] [--lanes 1 --lanes 1000] [--format table|json|csv]

A step is one context of one lane. Engines are *blocks*, a thread block for each lane; *graph*, all
lanes in one captured program of torch; and *jax*, if JAX sees the GPU. Rates are medians over
rounds in which the engines take turns, including drawing contexts and waiting for results; ratios
are medians of the rounds' ratios. The peak is what the GPU reaches, at the time, in a large float32
matrix product.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from throughput import LAYER, Program, Shape, flops_per_step, ratio

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
MODELS = ("max", "softmax", "value")
BLOCK = 100
"""Steps of a block, the unit in which they are counted: what JAX compiles into one call."""


def make_blocks(runs: Sequence[Run]) -> Program:
    """A thread block for each lane."""
    from rgr_dist.engines.cuda.lanes import CudaLanes

    return CudaLanes(runs)


def make_graph(runs: Sequence[Run]) -> Program:
    """All lanes in one captured program."""
    from rgr_dist.engines.lanes.state import Lanes

    return Lanes(runs, torch.device("cuda"), torch.float32)


def make_jax(runs: Sequence[Run]) -> Program:
    """The JAX peer, which takes the GPU by itself."""
    from peers.jax_edges import JaxLanes

    return JaxLanes(runs, BLOCK)


def engines() -> dict[str, Callable[[Sequence[Run]], Program]]:
    """The engines that take part."""
    found = {"blocks": make_blocks, "graph": make_graph}
    if importlib.util.find_spec("jax"):
        import jax

        if jax.default_backend() == "gpu":
            found["jax"] = make_jax
    return found


def timed(work: Callable[[], object]) -> float:
    """Seconds that some work takes, until the GPU has finished its part."""
    started = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def peak_flops_per_second() -> float:
    """What the GPU reaches in a large float32 matrix product, the best of several."""
    a = torch.randn(8192, 8192, device="cuda")
    return 2 * 8192**3 / min(timed(lambda: torch.mm(a, a)) for _ in range(5))


def measure(
    model: str, shape: Shape, lanes: int, rounds: int, seconds: float
) -> list[dict[str, Any]]:
    """One row for each engine at a shape, with so many lanes."""
    m, d_model, h, D_K, length = shape
    cell = Cell(model=model, m=m, d_model=d_model, context={"length": length})
    runs = [Run(cell=cell, h=h, d_k=D_K // h, seed=seed) for seed in range(lanes)]
    programs = {engine: make(runs) for engine, make in engines().items()}
    steps, rates = {}, {engine: [] for engine in programs}
    for engine, program in programs.items():
        timed(lambda program=program: program.advance(2 * BLOCK))  # compiles
        block = timed(lambda program=program: program.advance(2 * BLOCK)) / 2
        steps[engine] = BLOCK * max(1, round(seconds / block))
    for _ in range(rounds):
        for engine, program in programs.items():
            spent = timed(lambda program=program, engine=engine: program.advance(steps[engine]))
            rates[engine].append(steps[engine] * lanes / spent)
    peak, rows = peak_flops_per_second(), []
    for engine, per_round in rates.items():
        rate = statistics.median(per_round)
        rows.append(
            {
                "engine": engine,
                "model": model,
                **dict(zip(("m", "d_model", "h", "D_K", "length"), shape, strict=True)),
                "lanes": lanes,
                "steps_per_second": round(rate),
                "spread": round((max(per_round) - min(per_round)) / rate, 3),
                "vs_graph": ratio(per_round, rates["graph"]),
                "vs_jax": ratio(per_round, rates.get("jax")),
                "share_of_peak": round(rate * flops_per_step(model, *shape) / peak, 3),
            }
        )
    return rows


def main(
    how: How = Format.TABLE,
    rounds: Annotated[int, typer.Option(min=1, help="rounds of each engine")] = 5,
    seconds: Annotated[float, typer.Option(min=0, help="time of an engine in a round")] = 0.3,
    shapes: Annotated[int, typer.Option(min=1, max=4, help="how many shapes")] = 4,
    models: Annotated[list[str] | None, typer.Option(help=f"{', '.join(MODELS)}; all")] = None,
    lanes: Annotated[list[int] | None, typer.Option(help="lanes in flight; 1 to 1000")] = None,
) -> None:
    """Measure training steps per second on a GPU."""
    torch.set_num_threads(1)
    messages = Console(stderr=True)
    messages.print(torch.cuda.get_device_name())
    rows = []
    for model in models or MODELS:
        for shape in LAYER[:shapes]:
            for count in lanes or [1, 10, 100, 1000]:
                messages.print(f"{model}: (m, d_model, h, D_K, length) = {shape}, {count} lanes")
                rows += measure(model, shape, count, rounds, seconds)
    print_listing({"rows": rows}, how)


if __name__ == "__main__":
    typer.run(main)
