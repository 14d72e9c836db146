"""Trainings needed to find the smallest good width: our search, a grid, bisection, Optuna, Ax.

    python benchmarks/own_trainable.py [--scores FILE] [--repeats 10] [--format table|json|csv]

The task is real: how wide must a hidden layer be for a network to learn 256 random labels by heart,
at a mean accuracy of 0.99 over three seeds? Every width from 1 to 64 is first trained with every
seed (kept in ``--scores``), so that all ways see the same trainings. Each repeat has three seeds of
its own; its number seeds the samplers.

``grid``: every width. ``search``: that of ``find_threshold``, one training at a time.
``bisection``: halves the range of widths. ``optuna``: TPE minimises the width; one that fails
counts as more than the largest. ``ax``: Bayesian optimisation minimises the width under a
constraint on the accuracy. These three use the search's test of a width, and pay for no training
twice; the two samplers answer with the smallest width that passed. ``noisy``: noisy binary search
(probabilistic bisection: Horstein 1963; Waeber, Frazier, Henderson 2013): each training takes a
fresh seed from any repeat, and is taken to say with a probability of 0.8 of being right whether the
threshold lies at its width or below; the answer is the median of the belief. Samplers and noisy
search stop after as many trainings as the search took, or twice as many.

``trainings`` is the median over the repeats. ``same``: share of the repeats whose answer is the
grid's on the same seeds. ``off``: how many widths the answer is from the smallest that passes over
the seeds of all repeats, median and largest. ``shown``: share of the repeats in which the width
below was trained and fails. Ax is not among our dependencies: pip install ax-platform. Without it,
its rows are left out.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import random
import statistics
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import optuna
import torch
import typer
from rich.console import Console
from rich.progress import track
from torch import nn

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, ProbeKey
from rgr_dist.search.tune.score_file import ScoreFile
from threshold_search.baselines import CountedRuns, adaptive, exhaustive
from threshold_search.simulate import SimulatedRun

WIDTHS = range(1, 65)
TARGET, SEEDS = 0.99, 3
TRUST = 0.8
"""Probability with which noisy bisection takes a single training to be right."""
TRIALS = 400
"""Most suggestions asked of a sampler; widths tried before cost no training."""

Run = Callable[[ProbeKey, int], SimulatedRun]
Answer = tuple[int | None, bool]  # the width, and whether the one below was trained and fails


def accuracies(
    width: int, seeds: Sequence[int], labels: int = 256, steps: int = 200
) -> list[float]:
    """Share of random labels that a network of one hidden layer has learnt, for each seed.

    The networks of all seeds are trained side by side, independently of each other: inputs are
    (seeds, labels, 8), weights (seeds, in, out).
    """
    x, y = [], []
    layers: list[list[torch.Tensor]] = [[], [], [], []]
    for seed in seeds:
        chance = torch.Generator().manual_seed(seed)
        x.append(torch.randn(labels, 8, generator=chance))
        y.append(torch.randint(2, (labels,), generator=chance))
        for place, shape in enumerate([(8, width), (1, width), (width, 2), (1, 2)]):
            bound = (8 if place < 2 else width) ** -0.5  # as torch.nn.Linear draws them
            layers[place].append((2 * torch.rand(shape, generator=chance) - 1) * bound)
    inputs, wanted = torch.stack(x), torch.stack(y)
    weights = [torch.stack(layer).requires_grad_() for layer in layers]
    optimizer = torch.optim.Adam(weights, lr=0.03)

    def answers() -> torch.Tensor:
        hidden = torch.baddbmm(weights[1], inputs, weights[0]).relu()
        return torch.baddbmm(weights[3], hidden, weights[2])

    for _ in range(steps):
        optimizer.zero_grad()
        losses = nn.functional.cross_entropy(
            answers().flatten(0, 1), wanted.flatten(), reduction="sum"
        )
        (losses / labels).backward()
        optimizer.step()
    right = (answers().argmax(2) == wanted).float().mean(1)
    return [float(share) for share in right]


def by_search(runs: CountedRuns, test: SeedTest, seed: int) -> Iterator[Answer]:
    """What ``find_threshold`` does without a guess."""
    plan = CellPlan(
        "", {1: WIDTHS}, float(WIDTHS[0]), spread=math.inf, keep_within=None, intervals=False
    )
    found = adaptive(plan, test, runs)[1]
    yield found.value, found.failed is not None


def by_grid(runs: CountedRuns, test: SeedTest, seed: int) -> Iterator[Answer]:
    """Every width with every seed."""
    found = exhaustive({1: WIDTHS}, test, runs)[1]
    yield found.value, found.failed is not None


def by_bisection(runs: CountedRuns, test: SeedTest, seed: int) -> Iterator[Answer]:
    """Plain bisection, which skips seeds that could not change a verdict."""

    def passes(width: int) -> bool:
        return test.verdict(runs.verdict_scores(ProbeKey(1, width), test)) == "pass"

    at = bisect_left(WIDTHS, True, key=passes)
    yield (WIDTHS[at] if at < len(WIDTHS) else None), at > 0


class Tried:
    """The widths that a sampler has tried, each with the seeds that its verdict takes."""

    def __init__(self, runs: CountedRuns, test: SeedTest) -> None:
        self.runs, self.test = runs, test
        self.passes: dict[int, bool] = {}

    def mean(self, width: int) -> float:
        """The mean accuracy of a width, over the seeds that its verdict takes."""
        scores = self.runs.verdict_scores(ProbeKey(1, width), self.test)
        self.passes[width] = self.test.verdict(scores) == "pass"
        return self.test.mean(scores)

    @property
    def answer(self) -> Answer:
        """The smallest width that passed."""
        least = min((width for width, passed in self.passes.items() if passed), default=None)
        return least, least is not None and self.passes.get(least - 1) is False


def by_optuna(runs: CountedRuns, test: SeedTest, seed: int) -> Iterator[Answer]:
    """TPE on the width; a width that fails counts as more than the largest."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    tried = Tried(runs, test)
    for _ in range(TRIALS):
        trial = study.ask()
        width = trial.suggest_int("width", WIDTHS[0], WIDTHS[-1])
        mean = tried.mean(width)
        study.tell(trial, width if tried.passes[width] else WIDTHS[-1] * (2 - mean))
        yield tried.answer


def by_ax(runs: CountedRuns, test: SeedTest, seed: int) -> Iterator[Answer]:
    """Ax's default strategy: least width under a constraint on the accuracy."""
    from ax.api.client import Client
    from ax.api.configs import RangeParameterConfig

    for name in ("ax", "ax.api.client"):
        logging.getLogger(name).setLevel(logging.ERROR)
    client = Client(random_seed=seed)
    width = RangeParameterConfig(name="width", parameter_type="int", bounds=(WIDTHS[0], WIDTHS[-1]))
    client.configure_experiment(parameters=[width])
    client.configure_optimization(
        objective="-size", outcome_constraints=[f"accuracy >= {test.target}"]
    )
    tried = Tried(runs, test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(TRIALS):
            for number, asked in client.get_next_trials(max_trials=1).items():
                size = int(asked["width"])
                client.complete_trial(number, {"accuracy": tried.mean(size), "size": float(size)})
            yield tried.answer


def by_noisy_bisection(runs: CountedRuns, test: SeedTest, seed: int) -> Iterator[Answer]:
    """A belief about the threshold; each training is at its median, and sharpens it."""
    order = random.Random(seed)
    belief = dict.fromkeys([*WIDTHS, WIDTHS[-1] + 1], 1.0)  # the last: no width is enough
    unused: dict[int, list[int]] = {}

    def median() -> int:
        half, total = sum(belief.values()) / 2, 0.0
        for width, weight in belief.items():
            total += weight
            if total >= half:
                return width
        raise AssertionError("a belief has a median")

    while True:
        width = min(median(), WIDTHS[-1])
        fresh = unused.setdefault(width, order.sample(range(test.seeds), test.seeds))
        if not fresh:
            return
        passed = runs.score(ProbeKey(1, width), fresh.pop()) >= test.target
        belief = {
            one: weight * (TRUST if (one <= width) == passed else 1 - TRUST)
            for one, weight in belief.items()
        }
        answer = median()
        yield answer if answer in WIDTHS else None, False


WAYS: dict[str, Callable[[CountedRuns, SeedTest, int], Iterator[Answer]]] = {
    "grid": by_grid,
    "search": by_search,
    "bisection": by_bisection,
    "optuna": by_optuna,
    "ax": by_ax,
    "noisy": by_noisy_bisection,
}


def _shifted(run: Run, first: int, key: ProbeKey, seed: int) -> SimulatedRun:
    """The run of a seed that is counted from ``first``."""
    return run(key, first + seed)


def compare(run: Run, repeats: int, ways: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each way and budget.

    Args:
        run: the training of a width with any of 3 × repeats seeds.
    """
    test = SeedTest(TARGET, SEEDS)
    whole = SeedTest(TARGET, SEEDS * repeats)
    truth = next(by_grid(CountedRuns(run), whole, 0))[0]
    answers: dict[tuple[str, int], list[tuple[int, Answer]]] = {}
    for number in range(repeats):
        own = partial(_shifted, run, number * SEEDS)
        spent = 0
        for way in ways:
            ends_itself = way in ("grid", "search", "bisection")
            budgets = [1] if ends_itself else [spent, 2 * spent]
            alone = way == "noisy"  # takes its seeds from all repeats
            runs = CountedRuns(run if alone else own)
            reached = answers_at(budgets, runs, WAYS[way](runs, whole if alone else test, number))
            spent = runs.steps if way == "search" else spent
            for share, found in enumerate(reached, 1):
                answers.setdefault((way, share), []).append(found)
    grid = [answer[0] for _, answer in answers["grid", 1]]
    return [
        {
            "way": way if share == 1 else f"{way}, twice the trainings",
            "trainings": statistics.median(steps for steps, _ in given),
            "same": None
            if way == "noisy"
            else statistics.fmean(a[0] == g for (_, a), g in zip(given, grid, strict=True)),
            "off": statistics.median(_off(a[0], truth) for _, a in given),
            "off_most": max(_off(a[0], truth) for _, a in given),
            "shown": statistics.fmean(a[1] for _, a in given),
        }
        for (way, share), given in answers.items()
    ]


def answers_at(
    budgets: Sequence[int], runs: CountedRuns, way: Iterator[Answer]
) -> list[tuple[int, Answer]]:
    """The trainings and answer of a way when it first reaches each budget, or else at its end."""
    reached: list[tuple[int, Answer]] = []
    answer: Answer = (None, False)
    for answer in way:
        while len(reached) < len(budgets) and runs.steps >= budgets[len(reached)]:
            reached.append((runs.steps, answer))
        if len(reached) == len(budgets):
            return reached
    return reached + [(runs.steps, answer)] * (len(budgets) - len(reached))


def _off(answer: int | None, truth: int | None) -> int:
    return abs((answer or WIDTHS[-1] + 1) - (truth or WIDTHS[-1] + 1))


def main(
    how: How = Format.TABLE,
    scores: Annotated[
        Path, typer.Option(help="file of the trainings, which it goes on from")
    ] = Path("own-trainable.log"),
    repeats: Annotated[int, typer.Option(min=1, help="times that every way is tried")] = 10,
) -> None:
    """Compare the ways on one task."""
    messages = Console(stderr=True)
    torch.set_num_threads(1)
    seeds = range(SEEDS * repeats)
    kept = ScoreFile(scores, {"axis": "width", "trainable": accuracies})
    known = {(score.value, score.seed): score.score for score in kept.scores}
    for width in track(WIDTHS, console=messages):
        lacking = [seed for seed in seeds if (width, seed) not in known]
        for seed, score in zip(lacking, accuracies(width, lacking) if lacking else (), strict=True):
            known[width, seed] = score
            kept.add(width, seed, score)
    ways = [way for way in WAYS if way != "ax" or importlib.util.find_spec("ax")]
    if "ax" not in ways:
        messages.print("Ax is left out: pip install ax-platform")
    rows = compare(lambda key, seed: SimulatedRun(known[key.value, seed], 0, 1), repeats, ways)
    print_listing({"rows": rows}, how)


if __name__ == "__main__":
    typer.run(main)
