"""What Tune keeps while it runs many trials, and how many run at once; on a real Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ray import tune

from rgr_dist.search.portfolio import Portfolio
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, Probe
from rgr_dist.search.tune import runner
from rgr_dist.search.tune.forgetting import TidyTrainable
from rgr_dist.search.tune.runner import run_trials
from rgr_dist.search.tune.scheduler import SeedScheduler
from rgr_dist.search.tune.searcher import ThresholdSearcher


def answers() -> type:
    """A trainable that workers need not import."""

    class Answers(TidyTrainable):
        """Passes from its threshold on; says where its folder is."""

        def setup(self, config: dict[str, Any]) -> None:
            self.asked = config

        def reset_config(self, new_config: dict[str, Any]) -> bool:
            self.asked = new_config
            return True

        def step(self) -> dict[str, Any]:
            if self.asked["raises"]:
                raise RuntimeError("asked to")
            return {"value": self.asked["value"], "folder": self.logdir}

    return Answers


class Looks(tune.Callback):
    """Notes what Tune keeps, as its loop goes round."""

    def __init__(self, searcher: ThresholdSearcher) -> None:
        self.searcher = searcher
        self.kept: list[int] = []
        self.running: list[int] = []
        self.ended: set[Path] = set()

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        self.kept.append(len(trials))
        self.running.append(len(self.searcher.probes))

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self.ended.add(Path(trial.local_path))


def study(cells: int) -> Portfolio:
    plans = [
        CellPlan(f"{n}", {1: range(1, 33)}, guess_cost=8.0, intervals=False) for n in range(cells)
    ]
    return Portfolio(plans, SeedTest(0.99, 1), slots=2)


@pytest.mark.usefixtures("_ray")
def test_trials_that_have_ended_are_forgotten_with_their_folders() -> None:
    portfolio, folders, left = study(4), set[Path](), []

    def record(probe: Probe, result: dict[str, Any]) -> None:
        folders.add(Path(result["folder"]))
        left.append(sum(folder.exists() for folder in folders))
        score = float(result["value"] >= 7 + int(probe.cell))
        portfolio.tell(probe.cell, probe.arm, probe.value, 0, score)

    def config_of(probe: Probe) -> dict[str, Any]:
        tries = searcher.lost.count(probe)
        return {"value": probe.value, "raises": probe.value == 8 and not tries}

    searcher = ThresholdSearcher(portfolio, config_of)
    scheduler, looks = SeedScheduler(searcher, record), Looks(searcher)
    run_trials(answers(), searcher, 2, {"cpu": 1}, scheduler=scheduler, callbacks=[looks])
    assert scheduler.fault is None
    found = [portfolio.state(f"{n}").result(1).value for n in range(4)]
    assert found == [7, 8, 9, 10]
    assert len(folders) >= 16
    assert max(looks.kept) <= 5
    assert max(left) <= 5
    assert looks.ended
    # A worker may make the folder of its last trial anew, and has no other that would remove it.
    assert sum(folder.exists() for folder in looks.ended) <= 2


@pytest.mark.usefixtures("_ray")
def test_trials_follow_the_slots_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    portfolio, asked = study(6), [0]
    monkeypatch.setattr(runner, "LOOK_EVERY", 0.0)

    def slots() -> int:
        asked[0] += 1
        return 1 if len(told) < 8 else 2

    told: list[int] = []

    def record(probe: Probe, result: dict[str, Any]) -> None:
        told.append(looks.running[-1])
        portfolio.tell(probe.cell, probe.arm, probe.value, 0, float(result["value"] >= 7))

    searcher = ThresholdSearcher(portfolio, lambda p: {"value": p.value, "raises": False})
    looks = Looks(searcher)
    scheduler = SeedScheduler(searcher, record)
    run_trials(answers(), searcher, slots, {"cpu": 1}, scheduler=scheduler, callbacks=[looks])
    assert portfolio.is_done
    assert asked[0] > 2
    assert max(told[:8]) == 1
    assert max(told[8:]) == 2
