"""Training steps per second of every engine, alternating in one run on the same cores.

    python benchmarks/throughput.py [--models max …] [--format table|json|csv] [--threads 2]

A step is one context of one lane; for the transformer, one batch of 128 queries. Rates are medians
over rounds, in each of which every engine trains for a moment; a ratio is the median of the rounds'
ratios, so that a load that comes and goes affects both sides of it. With several threads ``fused``
has a lane for each: on one thread they take turns, on all they run side by side. ``vs_one_thread``
is the median ratio of the two paces in short alternating rounds, of those in which the machine gave
every core (see cores.py); missing if there were too few in a minute. ``vs_one_thread_always`` is
that of all these rounds, whatever the machine gave. A thread's pace is its steps over its own time:
as in a study, no thread waits for another to end.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Protocol

import torch
import typer
from rich.console import Console

from cores import Cores, pin
from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.problem.matching_task import D_FF
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
    "zoo-max": LAYER[:4],
    "zoo-softmax": LAYER[:4],
    "transformer": [(256, 64, 1, 64, 8), (256, 64, 8, 64, 8), (1024, 256, 8, 256, 16)],
}
"""For the transformer, the cell of ``gpt2-small`` with one head and with eight, and a larger one.

For the zoo, the paper's layers as files: ``reference`` and ``lanes`` train the file, ``fused`` and
the peers the same layer without it.
"""
OF_FILES = ("reference", "lanes")
"""Engines that train a layer from a file."""
BLOCK = 50
"""Steps of a block, the unit in which they are counted: what compiled programs take in one call."""
BATCHES = 10
"""The same for the transformer, whose step is a batch."""
BATCH_SIZE = 128
"""Queries in a batch."""
LANES = {"transformer": 5}
"""Lanes of the torch engine and of the peers; 40 for other models, ``lanes`` with 10 too."""

TURNS, TURN = 21, 0.05
"""How many short rounds one thread and all threads take turns in, and seconds of each turn."""

PATIENCE = 60.0
"""Most seconds, for a shape, to wait for enough rounds in which the machine gives every core."""


class Program(Protocol):
    """Lanes that can be advanced."""

    def advance(self, steps: int) -> None:
        """Take so many steps in every lane."""


class ReferenceLoop:
    """The reference engine's steps, without its checks."""

    def __init__(self, runs: Sequence[Run]) -> None:
        from rgr_dist.engines.reference.engine import TRAINERS

        trainer = TRAINERS[runs[0].cell.record.task]
        self.trainer, self.steps = trainer(runs[0], torch.float32), 0

    def advance(self, steps: int) -> None:
        for index in range(self.steps, self.steps + steps):
            self.trainer.step(index)
        self.steps += steps


class FusedLanes:
    """Lanes of the fused engine, each on a thread of its own or one after another."""

    def __init__(self, runs: Sequence[Run], side_by_side: bool = False) -> None:
        from rgr_dist.engines.fused.engine import LANES

        self.lanes = [LANES[run.cell.record.task](run) for run in runs]
        self.shares = [[lane] for lane in self.lanes] if side_by_side else [self.lanes]
        self.threads = ThreadPoolExecutor(len(self.shares))

    def advance(self, steps: int) -> None:
        list(self.threads.map(lambda lane: lane.advance(steps), self.lanes))

    def pace(self, seconds: float, block: int) -> float:
        """Steps per second of all threads, each over its own time of at least ``seconds``."""

        def train(lanes: Sequence[Program]) -> float:
            started, steps = time.perf_counter(), 0
            while (spent := time.perf_counter() - started) < seconds:
                for lane in lanes:
                    lane.advance(block)
                    steps += block
            return steps / spent

        return sum(self.threads.map(train, self.shares))


def make_lanes(runs: Sequence[Run]) -> Program:
    """The torch engine, as it runs on a CPU."""
    cpu = torch.device("cpu")
    if runs[0].cell.record.task == "matching":
        from rgr_dist.engines.lanes.transformer import BlockLanes

        return BlockLanes(runs, cpu, torch.float32, mixed=False)
    if runs[0].cell.layer is not None:
        from rgr_dist.engines.lanes.own_layer import OwnLanes

        return OwnLanes(runs, cpu, torch.float32)
    from rgr_dist.engines.lanes.state import Lanes

    return Lanes(runs, cpu, torch.float32)


def make_jax(runs: Sequence[Run]) -> Program:
    """The JAX peer."""
    if runs[0].cell.record.task == "matching":
        from peers.jax_block import JaxBlocks

        return JaxBlocks(runs, BATCHES)
    from peers.jax_edges import JaxLanes

    return JaxLanes(runs, BLOCK)


def make_compiled(runs: Sequence[Run]) -> Program:
    """The torch.compile peer."""
    if runs[0].cell.record.task == "matching":
        from peers.compiled_block import CompiledBlocks

        return CompiledBlocks(runs)
    from peers.compiled_edges import CompiledLanes

    return CompiledLanes(runs)


PEERS = {"compiled": make_compiled, "jax": make_jax}


@dataclass
class Contestant:
    """An engine at a number of lanes and threads, and its rates in each round."""

    engine: str
    lanes: int
    threads: int
    make: Callable[[Sequence[Run]], Program]
    block: int = BLOCK
    program: Program | None = None
    steps: int = BLOCK
    rates: list[float] = field(default_factory=list)

    def prepare(self, run_of: Callable[[int], Run], seconds: float) -> None:
        """Build, compile, warm up, and find how many steps fill a round.

        Args:
            run_of: the run of a seed.
        """
        pin(self.threads)
        self.program = self.make([run_of(seed) for seed in range(self.lanes)])
        self.program.advance(self.block)
        block = min(self._timed(self.block) for _ in range(2))
        self.steps = self.block * max(1, round(seconds / block))

    def rate(self) -> float:
        """Steps per second in one round."""
        pin(self.threads)
        return self.steps * self.lanes / self._timed(self.steps)

    def _timed(self, steps: int) -> float:
        assert self.program is not None
        started = time.perf_counter()
        self.program.advance(steps)
        return time.perf_counter() - started


def contestants(model: str, threads: int) -> tuple[list[Contestant], list[str]]:
    """The engines that take part, and a message for each that does not."""
    block = BATCHES if model == "transformer" else BLOCK
    beside = LANES.get(model, 40)
    fused = [
        # The same lanes on one thread and on many, so that only the threads differ.
        Contestant("fused", threads, n, partial(FusedLanes, side_by_side=n > 1), block)
        for n in sorted({1, threads})
    ]
    present = [Contestant("reference", 1, 1, ReferenceLoop, block), *fused]
    present += [
        Contestant("lanes", n, 1, make_lanes, block) for n in sorted({min(10, beside), beside})
    ]
    absent = []
    if shutil.which(os.environ.get("CXX", "g++")):
        present.append(Contestant("compiled", beside, 1, make_compiled, block))
    else:
        absent.append("compiled: skipped, torch.compile finds no C++ compiler; set CXX")
    if importlib.util.find_spec("jax"):
        present.append(Contestant("jax", beside, 1, make_jax, block))
    else:
        absent.append("jax: skipped, not installed; pip install 'rgr-dist[jax]'")
    return present, absent


def flops_per_step(model: str, m: int, d_model: int, h: int, D_K: int, length: int) -> int:
    """Floating-point operations that a step needs, a multiply-add as two, an exponential as one.

    For a layer: projection and weight gradient, scores of all heads, gradient through the largest
    head alone or through every softmax, messages mixed and their gradient. For the transformer: see
    ``engines.fused.block.step``, which forms no key or value of a position. In addition, some 12
    operations of AdamW on each weight.
    """
    if model == "transformer":
        n, weights = length + 2, 2 * d_model * (D_K + d_model + D_FF)
        forward = weights + 2 * h * n * d_model + d_model * (m + 1)
        backward = 2 * weights - d_model * D_K + 2 * h * n * d_model + d_model * (m + 1)
        return 2 * BATCH_SIZE * (forward + backward) + 12 * weights
    columns, pairs = 2 * D_K, length * length
    through = D_K if model == "softmax" else D_K // h
    products = 2 * length * d_model * columns + pairs * D_K + 2 * pairs * through
    products += 2 * pairs * d_model if model == "value" else 0
    return 2 * products + 12 * d_model * columns + (pairs * h if model == "softmax" else 0)


def peak_flops_per_second() -> float:
    """What one core reaches, at present, in a large float32 matrix product, the best of several."""
    pin(1)
    a = torch.randn(768, 768)
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        torch.mm(a, a)
        best = min(best, time.perf_counter() - started)
    return float(2 * 768**3 / best)


def measure_shape(
    model: str, shape: Shape, threads: int, rounds: int, seconds: float
) -> list[dict[str, Any]]:
    """One row for each engine at a shape."""
    entrants, _ = contestants(model, threads)
    m, d_model, h, D_K, length = shape
    layer = model.removeprefix("zoo-")
    training = {"batch_size": BATCH_SIZE, "weight_decay": 0.01} if model == "transformer" else {}
    cell = Cell(model=layer, m=m, d_model=d_model, context={"length": length}, training=training)
    cells = dict.fromkeys((entrant.engine for entrant in entrants), cell)
    if layer != model:
        file, _ = load_layer({"zoo": layer}, Path())
        own = {"model": "file", "layer": file}
        cells |= dict.fromkeys(OF_FILES, cell.model_copy(update=own))
    for entrant in entrants:
        own_cell = cells[entrant.engine]

        def run_of(seed: int, cell: Cell = own_cell) -> Run:
            return Run(cell=cell, h=h, d_k=D_K // h, seed=seed)

        entrant.prepare(run_of, seconds)
    peaks = []
    for _ in range(rounds):
        for entrant in entrants:
            entrant.rates.append(entrant.rate())
        peaks.append(peak_flops_per_second())
    reference = entrants[0].rates
    one = next(entrant for entrant in entrants if entrant.engine == "fused")
    jax = next((entrant.rates for entrant in entrants if entrant.engine == "jax"), None)
    flops = flops_per_step(layer, *shape)
    rows = []
    for entrant in entrants:
        rate = statistics.median(entrant.rates)
        rows.append(
            {
                "engine": entrant.engine,
                "model": model,
                **dict(zip(("m", "d_model", "h", "D_K", "length"), shape, strict=True)),
                "lanes": entrant.lanes,
                "threads": entrant.threads,
                "steps_per_second": round(rate),
                "spread": round((max(entrant.rates) - min(entrant.rates)) / rate, 3),
                "vs_reference": ratio(entrant.rates, reference),
                "vs_jax": ratio(entrant.rates, jax),
                **by_turns(entrant, one),
                "flops_per_step": flops,
                "share_of_peak": round(
                    flops / entrant.threads * median_ratio(entrant.rates, peaks), 3
                ),
            }
        )
    return rows


def by_turns(many: Contestant, one: Contestant) -> dict[str, float | None]:
    """The ratio of the paces of many threads and one: while every core was given, and always."""
    names = "vs_one_thread", "vs_one_thread_always"
    if many.threads == 1:
        return dict.fromkeys(names)
    cores, began = Cores(many.threads), time.monotonic()
    ratios: dict[bool, list[float]] = {True: [], False: []}
    while len(ratios[True]) < TURNS and time.monotonic() - began < PATIENCE:
        whole, paces = cores.are_whole(), []
        for entrant in (one, many):
            assert isinstance(entrant.program, FusedLanes)
            pin(entrant.threads)
            paces.append(entrant.program.pace(TURN, max(entrant.block, entrant.steps // 50)))
            whole &= cores.are_whole()
        ratios[whole].append(paces[1] / paces[0])
    kept = round(statistics.median(ratios[True]), 2) if len(ratios[True]) == TURNS else None
    always = round(statistics.median(ratios[True] + ratios[False]), 2)
    return dict(zip(names, (kept, always), strict=True))


def ratio(rates: list[float], others: list[float] | None) -> float | None:
    """The median of the rounds' ratios; None without rates to compare with."""
    return None if others is None else round(median_ratio(rates, others), 2)


def median_ratio(rates: list[float], others: list[float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(rates, others, strict=True))


def main(
    how: How = Format.TABLE,
    threads: Annotated[int, typer.Option(min=1, help="also run fused on so many threads")] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="rounds of each engine")] = 7,
    seconds: Annotated[float, typer.Option(min=0, help="time of an engine in a round")] = 0.3,
    shapes: Annotated[int, typer.Option(min=1, max=5, help="how many shapes of a model")] = 5,
    models: Annotated[
        list[str] | None,
        typer.Option(help="max, softmax, value, zoo-max, zoo-softmax, transformer; all by default"),
    ] = None,
) -> None:
    """Measure training steps per second of every engine."""
    torch.set_num_threads(1)
    messages = Console(stderr=True)
    for word in contestants("max", threads)[1]:
        messages.print(word)
    rows = []
    for model in models or SHAPES:
        if model not in SHAPES:
            raise typer.BadParameter(f"--models {model}: valid: {', '.join(SHAPES)}")
        for shape in SHAPES[model][:shapes]:
            messages.print(f"{model}: (m, d_model, h, D_K, length) = {shape}")
            rows += measure_shape(model, shape, threads, rounds, seconds)
    print_listing({"rows": rows}, how)


if __name__ == "__main__":
    typer.run(main)
