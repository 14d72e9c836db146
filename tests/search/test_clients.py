"""Other people's trainables under ``ThresholdSearch``: killed and restored, the answer is that of
trying everything by Tune's own grid search."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.search.clients import CLIENTS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SCRIPT = Path(__file__).with_name("clients.py")
NEEDS = {
    "ray-xgboost": ("xgboost", "sklearn"),
    "scikit-learn": ("sklearn",),
    "lightning": ("lightning",),
    "hugging-face": ("transformers", "accelerate"),
}
KILLED_AFTER = 2
"""Trials that have ended when the Tuner is killed."""


def command(name: str, folder: Path, what: str) -> list[str]:
    return [sys.executable, str(SCRIPT), name, str(folder), what]


def told(name: str, folder: Path, what: str) -> dict[str, Any]:
    """What the script found, run to its end."""
    done = subprocess.run(command(name, folder, what), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads((folder / f"{what}.json").read_text())
    return answer


def is_whole(snapshot: Path) -> bool:
    """Whether Tune writes nothing of its state just now: it would restore half a file as none."""
    states = list(snapshot.glob("*_state-*.json"))
    return len(states) >= 2 and all(state.stat().st_size for state in states)


def begin_and_kill(name: str, folder: Path) -> None:
    ended = folder / "ended"
    with subprocess.Popen(
        command(name, folder, "begin"),
        env=os.environ | {"TUNE_GLOBAL_CHECKPOINT_S": "0"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as driver:
        while not (ended.exists() and len(ended.read_text().splitlines()) >= KILLED_AFTER):
            assert driver.poll() is None, "it ended before it could be killed"
            time.sleep(0.05)
        driver.send_signal(signal.SIGSTOP)
        while not is_whole(folder / "mine"):
            driver.send_signal(signal.SIGCONT)
            time.sleep(0.01)
            driver.send_signal(signal.SIGSTOP)
        driver.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("name", CLIENTS)
def test_killed_and_restored_it_ends_with_the_answer_of_brute_force(
    name: str, tmp_path: Path
) -> None:
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package, reason="needs the extra clients")
    client = CLIENTS[name]()
    scores = told(name, tmp_path, "brute force")
    means = {int(value): sum(of.values()) / len(of) for value, of in scores.items()}
    sign = 1 if client.mode == "max" else -1
    passing = [value for value, mean in means.items() if sign * mean >= sign * client.target]
    assert 1 < len(passing) < len(means), "the target asks something"
    assert passing == [value for value in means if value >= passing[0]], "and has one answer"

    begin_and_kill(name, tmp_path)
    found = told(name, tmp_path, "go on")
    assert (found["status"], found["value"]) == ("found", passing[0])
    assert found["failed"] == max(value for value in means if value < passing[0])
    for value, of in found["scores"].items():
        assert of == {seed: scores[value][seed] for seed in of}
    trained = (tmp_path / "ended").read_text().splitlines()
    assert len(trained) <= len(set(trained)) + 4, "what ran as it was killed may run again"
    assert any((tmp_path / "mine").rglob("checkpoint_*")) == client.has_checkpoints
