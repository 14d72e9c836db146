"""Training steps per second of every engine, alternating in one run on the same cores.

    python benchmarks/throughput.py [--models max …] [--format table|json|csv]

A step is one context of one lane; for the transformer, one batch of 128 queries. Rates are medians
over rounds, in each of which every engine trains for a moment; a ratio is the median of the rounds'
ratios, so that a load that comes and goes affects both sides of it. JAX trains its lanes side by
side, by ``vmap``; the engines train one lane after another, so one lane is enough.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol

import torch
import typer
from rich.console import Console

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.engines.choose import make_engine
from rgr_dist.study.cell import Cell
from rgr_dist.study.layer_file import load_layer
from rgr_dist.study.run import Run

Shape = tuple[int, int, int, int, int]
"""m, d_model, h, D_K and the context's length."""
LAYER = [
    (256, 32, 8, 64, 16),
    (64, 16, 4, 20, 16),
    (512, 16, 64, 448, 16),
    (1024, 128, 8, 96, 16),
    (4096, 512, 8, 112, 16),
]
SHAPES: dict[str, list[Shape]] = {
    "max": LAYER,
    "softmax": LAYER[:4],
    "value": LAYER[:4],
    "grouped": LAYER[:4],
    "transformer": [(256, 64, 1, 64, 8), (256, 64, 8, 64, 8), (1024, 256, 8, 256, 16)],
}
"""For the transformer, the cell of ``gpt2-small`` with one head and with eight, and a larger one;
``grouped`` is a layer of the zoo, which has no kernels of its own and no peer."""
BATCH_SIZE = 128
"""Queries in a batch."""


class Program(Protocol):
    """Lanes that can be advanced."""

    def advance(self, steps: int) -> None:
        """Take so many steps in every lane."""


@dataclass
class Contestant:
    """An engine at a number of lanes, and its rates in each round.

    Attributes:
        block: steps of which only multiples are taken.
    """

    engine: str
    lanes: int
    make: Callable[[Sequence[Run]], Program]
    block: int
    program: Program | None = None
    steps: int = 0
    rates: list[float] = field(default_factory=list)

    def prepare(self, cell: Cell, h: int, d_k: int, seconds: float) -> None:
        """Build, compile, warm up, and find how many steps fill a round."""
        runs = [Run(cell=cell, h=h, d_k=d_k, seed=seed) for seed in range(self.lanes)]
        self.program = self.make(runs)
        self._timed(self.block)
        block = min(self._timed(self.block) for _ in range(2))
        self.steps = self.block * max(1, round(seconds / block))

    def rate(self) -> float:
        """Steps per second of all lanes in one round."""
        return self.steps * self.lanes / self._timed(self.steps)

    def _timed(self, steps: int) -> float:
        assert self.program is not None
        started = time.process_time()
        self.program.advance(steps)
        return time.process_time() - started


def contestants(model: str) -> list[Contestant]:
    """The engines that train a model, and JAX where it is installed."""
    block = 32 if model == "transformer" else 250
    engines = ["reference", "compiled", *([] if model == "grouped" else ["fused"])]

    def maker(engine: str) -> Callable[[Sequence[Run]], Program]:
        return lambda runs: make_engine(engine, model=runs[0].cell.model).lane(runs[0])

    entrants = [Contestant(engine, 1, maker(engine), block) for engine in engines]
    if importlib.util.find_spec("jax") and model != "grouped":
        lanes = (5,) if model == "transformer" else (10, 40)
        entrants += [Contestant("jax", n, make_jax, 10 if n == 5 else 50) for n in lanes]
    return entrants


def make_jax(runs: Sequence[Run]) -> Program:
    """The JAX peer."""
    if runs[0].cell.record.task == "matching":
        from peers.jax_block import JaxBlocks

        return JaxBlocks(runs, 10)
    from peers.jax_edges import JaxLanes

    return JaxLanes(runs, 50)


def measure_shape(model: str, shape: Shape, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """One row for each engine at a shape."""
    m, d_model, h, D_K, length = shape
    keys: dict[str, Any] = {"m": m, "d_model": d_model, "context": {"length": length}}
    if model == "transformer":
        keys["training"] = {"batch_size": BATCH_SIZE, "weight_decay": 0.01}
    if model == "grouped":
        keys["layer"], _ = load_layer({"zoo": model}, Path())
    cell = Cell(model="file" if model == "grouped" else model, **keys)
    entrants = contestants(model)
    for entrant in entrants:
        entrant.prepare(cell, h, D_K // h, seconds)
    for _ in range(rounds):
        for entrant in entrants:
            entrant.rates.append(entrant.rate())
    jax = [entrant.rates for entrant in entrants if entrant.engine == "jax"]
    return [
        {
            "model": model,
            "engine": entrant.engine,
            **dict(zip(("m", "d_model", "h", "D_K"), shape[:4], strict=True)),
            "lanes": entrant.lanes,
            "threads": 1,
            "steps_per_second": round(statistics.median(entrant.rates)),
            "vs_reference": ratio(entrant.rates, entrants[0].rates),
            "vs_jax": ratio(entrant.rates, jax[-1]) if jax else None,
        }
        for entrant in entrants
    ]


def ratio(rates: list[float], others: list[float]) -> float:
    """The median of the rounds' ratios."""
    return round(statistics.median(a / b for a, b in zip(rates, others, strict=True)), 2)


def main(
    how: How = Format.TABLE,
    rounds: Annotated[int, typer.Option(min=1, help="rounds of each engine")] = 7,
    seconds: Annotated[float, typer.Option(min=0, help="time of an engine in a round")] = 0.3,
    shapes: Annotated[int, typer.Option(min=1, max=5, help="how many shapes of a model")] = 5,
    models: Annotated[
        list[str] | None,
        typer.Option(help="max, softmax, value, grouped, transformer; all by default"),
    ] = None,
) -> None:
    """Measure training steps per second of every engine."""
    torch.set_num_threads(1)
    messages = Console(stderr=True)
    if not importlib.util.find_spec("jax"):
        messages.print("jax: skipped, not installed; pip install 'rgr-dist[jax]'")
    rows = []
    for model in models or SHAPES:
        if model not in SHAPES:
            raise typer.BadParameter(f"--models {model}: valid: {', '.join(SHAPES)}")
        for shape in SHAPES[model][:shapes]:
            messages.print(f"{model}: (m, d_model, h, D_K, length) = {shape}")
            rows += measure_shape(model, shape, rounds, seconds)
    print_listing({"rows": rows}, how)


if __name__ == "__main__":
    typer.run(main)
