"""How trials run on Tune's own loop: errors, slots and a memory that runs out; on a real Ray."""

from __future__ import annotations

from typing import Any

import pytest
from ray import tune

from rgr_dist.search.portfolio import Portfolio
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, Probe
from rgr_dist.search.tune import runner, searcher
from rgr_dist.search.tune.lost_workers import LOW_ON_MEMORY
from rgr_dist.search.tune.runner import Watch, WhileNeeded, run_trials
from rgr_dist.search.tune.searcher import ProbeSearcher


def answers() -> type:
    """A trainable that workers need not import."""

    class Answers(tune.Trainable):
        """Passes from its threshold on; dies where it is asked to."""

        def setup(self, config: dict[str, Any]) -> None:
            self.asked = config

        def reset_config(self, new_config: dict[str, Any]) -> bool:
            self.asked = new_config
            return True

        def step(self) -> dict[str, Any]:
            if self.asked["dies"]:
                import os

                os._exit(1)
            return {"value": self.asked["value"], "done": True}

    return Answers


def study(cells: int) -> Portfolio:
    plans = [
        CellPlan(f"{n}", {1: range(1, 17)}, guess_cost=8.0, intervals=False) for n in range(cells)
    ]
    return Portfolio(plans, SeedTest(0.99, 1), slots=2)


@pytest.mark.slow  # workers are killed under a whole study in tests/cli/test_faults.py
@pytest.mark.usefixtures("_ray")
def test_a_probe_whose_worker_dies_is_trained_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    portfolio, running = study(2), []
    monkeypatch.setattr(searcher, "LOOK_EVERY", 0.0)

    def record(trial_id: str, probe: Probe, result: dict[str, Any]) -> None:
        score = float(result["value"] >= 7 + int(probe.cell))
        running.append(len(trials.probes))
        portfolio.tell(probe.cell, probe.arm, probe.value, 0, score)

    def config_of(probe: Probe) -> dict[str, Any]:
        return {"value": probe.value, "dies": probe.value == 8 and not trials.lost.count(probe)}

    trials = ProbeSearcher(portfolio, config_of, record, slots=lambda: 1 if len(running) < 4 else 2)
    watch = Watch(lambda trials: None, trials.explain)
    run_trials(answers(), trials, {"cpu": 1}, stop=WhileNeeded(trials), callbacks=[watch])
    assert trials.fault is None
    assert [portfolio.state(f"{n}").result(1).value for n in range(2)] == [7, 8]
    assert sum(trials.lost.count(Probe(f"{n}", 1, 8, ())) for n in range(2)) >= 1
    assert max(running[:4]) == 1
    assert max(running[4:]) == 2


def test_a_run_that_ends_for_its_memory_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = [RuntimeError(f"Caught unexpected exception: it was {LOW_ON_MEMORY}"), None, OSError()]
    told = []

    class Tuner:
        def __init__(self, *args: Any, **options: Any) -> None:
            """Takes whatever a Tuner takes."""

        def fit(self) -> None:
            if error := fits.pop(0):
                raise error

    class Searcher:
        def killed_for_memory(self) -> None:
            told.append("killed")

    monkeypatch.setattr(runner, "Tuner", Tuner)
    monkeypatch.setattr(runner, "TuneConfig", lambda **options: None)
    run_trials(answers(), Searcher(), None)
    assert told == ["killed"]
    with pytest.raises(OSError):  # noqa: PT011 (any other error is not ours)
        run_trials(answers(), Searcher(), None)
