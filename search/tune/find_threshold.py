"""The smallest value of an integer setting at which any Ray Tune trainable is good enough."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import ray
from ray.tune import PlacementGroupFactory

from search.portfolio import Portfolio
from search.protocol import CellPlan, Decision, ProbeResult, Status, Words
from search.seed_test import SeedTest
from search.tune.runner import Resources, run_trials
from search.tune.scheduler import SeedScheduler
from search.tune.score_file import ScoreFile
from search.tune.searcher import ThresholdSearcher

CELL = "threshold"


@dataclass(frozen=True)
class Threshold:
    """The smallest value that passes, and what shows it.

    Attributes:
        status: ``found``; ``censored`` where no value passes; ``inconsistent`` where a pass
            lies below a fail; ``open`` where every attempt at a probe failed.
        value: None unless found.
        passed, failed: the certificate: mean scores at the value and at the one below it.
        because: the same in words.
        decisions: every probe, why it was made and what it showed.
    """

    status: Status
    value: int | None
    passed: ProbeResult | None
    failed: ProbeResult | None
    because: str
    decisions: tuple[Decision, ...]


class _KeepingSearcher(ThresholdSearcher):
    """Takes a trial's last result as the score of its seed, and keeps it before telling."""

    def __init__(self, portfolio: Portfolio, kept: ScoreFile, axis: str, metric: str) -> None:
        super().__init__(portfolio, lambda probe: {axis: probe.value, "seed": probe.seeds[0]})
        self.kept, self.score_name = kept, metric
        self.fault: Exception | None = None

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Keep the score of a trial that ran to its end; any other end gives none."""
        probe = self.probes.get(trial_id)
        score = _number((result or {}).get(self.score_name))
        if probe is not None and score is not None and not error and trial_id not in self.spared:
            value, seed = probe.value, probe.seeds[0]
            try:
                self.portfolio.test.check(score)
                self.kept.add(value, seed, score)
                self.portfolio.tell(CELL, 1, value, seed, score)
            except (ValueError, OSError) as fault:
                self.fault, self.is_stopped = fault, True
        super().on_trial_complete(trial_id, result, error)


def _number(score: Any) -> float | None:
    try:
        return None if math.isnan(float(score)) else float(score)
    except (TypeError, ValueError):
        return None


def find_threshold(
    trainable: Callable[[dict[str, Any]], Any] | type,
    axis: str,
    values: Sequence[int],
    metric: str,
    target: float,
    mode: Literal["max", "min"] = "max",
    bounds: tuple[float | None, float | None] = (None, None),
    seeds: int = 3,
    config: Mapping[str, Any] | None = None,
    store: str | Path | None = None,
    guess: int | None = None,
    slots: int | None = None,
    resources: Resources | None = None,
) -> Threshold:
    """The smallest value of ``axis`` whose mean ``metric`` over the seeds reaches ``target``.

    Every trial is one seed at one value: its config is ``config`` with ``axis`` and ``seed``
    set, its score the last ``metric`` that it reports. Quality is expected to grow with the
    value; evidence that it does not ends as ``inconsistent``.

    Args:
        values: increasing positive integers to choose from, such as ``range(1, 513)``.
        mode: ``min`` where a smaller metric is better, as for a loss.
        bounds: smallest and largest metric there can be, None where there is none: with them
            seeds are spared that could not change a verdict.
        store: a file of scores. Run again with the same trainable and config, the search goes on
            from it.
        guess: where to start; the middle of the values if not given.
        slots: trials at once; as many as Ray has CPUs for if not given.
        resources: of one trial, as for ``ray.tune.with_resources``; one CPU if not given.

    Raises:
        ValueError: bad arguments, a metric outside its bounds, or a store of another search.
    """
    if not values or values[0] < 1 or any(b <= a for a, b in pairwise(values)):
        raise ValueError("values: give positive integers in increasing order")
    values = values if isinstance(values, range) else [int(value) for value in values]
    low, high = bounds
    test = SeedTest(target, seeds, minimise=mode == "min", low=low, high=high)
    about = {"axis": axis, "metric": metric, "config": dict(config or {}), "trainable": trainable}
    kept = ScoreFile(store, about)
    wanted: Resources = resources or {"cpu": 1}
    if not ray.is_initialized():
        ray.init()
    plan = CellPlan(
        CELL, {1: values}, float(guess or values[len(values) // 2]), keep_within=None,
        intervals=False, words=Words(value=axis),
    )  # fmt: skip
    portfolio = Portfolio([plan], test, slots or _slots(wanted), together=1)
    for value, seed, score in kept.scores:
        portfolio.tell(CELL, 1, value, seed, score)
    if not portfolio.is_done:
        searcher = _KeepingSearcher(portfolio, kept, axis, metric)
        os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")  # the newer one prints a banner anyway
        run_trials(
            trainable,
            searcher,
            portfolio.slots,
            wanted,
            scheduler=SeedScheduler(searcher, record=lambda probe, result: None),
            config=config,
            reuse_actors=not isinstance(trainable, type),
        )
        if searcher.fault is not None:
            raise searcher.fault
    state = portfolio.state(CELL)
    result = state.result(1)
    passed, failed = result.contradiction or (result.passed, result.failed)
    decisions = tuple(state.decisions)
    return Threshold(result.status, result.value, passed, failed, result.because, decisions)


def _slots(resources: Resources) -> int:
    """Trials that fit on the cluster at once, by CPUs and GPUs."""
    if isinstance(resources, PlacementGroupFactory):
        resources = resources.required_resources
    there = ray.cluster_resources()
    fits = [
        there.get(name.upper(), 0) / amount
        for name, amount in resources.items()
        if amount and name.upper() in ("CPU", "GPU")
    ]
    return max(1, int(min(fits, default=1)))
