"""Setting searches driven without Ray."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from rgr_dist.search.protocol import Probe
from rgr_dist.search.tune.question import Question
from rgr_dist.search.tune.score_file import ScoreFile
from rgr_dist.search.tune.setting_search import SettingSearch
from rgr_dist.search.tune.threshold import Thresholds


def train(config: dict[str, Any]) -> None:
    """Never called here."""


ABOUT = {"axis": "width", "metric": "accuracy", "config": {}, "trainable": train}
"""What a score file of such a search holds."""


def ask(**changes: Any) -> Question:
    options = {
        "axis": "width", "values": range(1, 65), "metric": "accuracy", "target": 0.9,
        "bounds": (0, 1), "seeds": 2,
    }  # fmt: skip
    return Question.checked(**options | changes)


def drive(search: SettingSearch, score: Any, slots: int = 1, seed: int = 0) -> Thresholds:
    """Run what the search asks for in ``slots`` at a time, ending by chance.

    ``score(setting, value, seed)`` is a score, or the exception that the trial raises.
    """
    order, running = random.Random(seed), []
    search.portfolio.slots = slots
    while True:
        while len(running) < slots and isinstance(probe := search.portfolio.ask(), Probe):
            running.append(probe)
        if not running:
            break
        probe = running.pop(order.randrange(len(running)))
        config = search.config(probe)
        value, number = config.pop("width"), config.pop("seed")
        outcome = score(config, value, number)
        if isinstance(outcome, Exception):
            search.note(probe, f"{type(outcome).__name__}: {outcome}".rstrip(": "))
            search.portfolio.tell_failed(probe.cell, probe.key, probe.seeds)
        else:
            search.take_in(probe, outcome)
        search.portfolio.release(probe)
    return search.result()


def found(score: Any, slots: int = 1, **changes: Any) -> Thresholds:
    return drive(SettingSearch(ask(**changes), ScoreFile(None, {})), score, slots)


def in_a_process(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script in the folder where it is, in a process of its own."""
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=script.parent,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONHASHSEED": "random"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def trainings(found: Thresholds) -> int:
    """How many scores there are, of all settings."""
    return sum(len(scores) for one in found for scores in one.scores.values())


def rising(thresholds: dict[int, int]) -> Any:
    return lambda setting, value, seed: float(value >= thresholds[setting.get("depth", 0)])
