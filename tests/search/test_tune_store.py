"""A file of scores goes on for the same trainable alone, told by what it is made of."""

from __future__ import annotations

import functools
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ray import tune

from rgr_dist.search.tune.find_threshold import find_threshold
from rgr_dist.search.tune.identity import digest
from rgr_dist.search.tune.score_file import ScoreFile
from rgr_dist.search.tune.threshold_search import ThresholdSearch
from tests.oracles.fake_tune import FakeTune

pytestmark = pytest.mark.filterwarnings("ignore:all seeds of a value")
NAMES = {"axis": "width", "metric": "f1", "seed_key": "seed"}


def train(config: dict[str, Any]) -> None:
    """Never called here."""


# ----- What tells trainables apart: each pair is one that a user changes between two runs

ONE = """
import functools, threading
RATE, KINDS, LOCK = 0.1, {"relu", "gelu", "tanh"}, threading.Lock()

def helper(x):
    return x * 2

class Base:
    steps = 5
    def loss(self, x):
        return x + 1

class Experiment(Base):
    def __init__(self, rate):
        self.rate, self.lock = rate, threading.Lock()
    def train(self, config):
        return super().loss(self.rate)

def make(rate):
    def train(config):
        return rate
    return train

def plain(config, k=3):
    with LOCK:
        return helper(config["w"]) * RATE if config["act"] in {"relu", "gelu"} else len(KINDS)

@functools.lru_cache
def cached(x):
    return x + 1

def calls(config):
    return cached(1)

def repeats(times):
    def wrap(function):
        @functools.wraps(function)
        def inner(config):
            return [function(config) for _ in range(times)]
        return inner
    return wrap

@repeats(3)
def decorated(config):
    return 1

def recursive(n):
    return recursive(n - 1) if n else other(n)

def other(n):
    return recursive(n)

closure, method, klass = make(0.1), Experiment(0.1).train, Experiment
part = functools.partial(plain, k=4)
"""
"""A script of a user's."""
ALL = ["closure", "method", "klass", "plain", "calls", "decorated", "recursive", "part"]


def digests(source: str) -> dict[str, str]:
    """The digest of each trainable of a script."""
    script = types.ModuleType("__main__")
    exec(compile(source, "script.py", "exec"), script.__dict__)
    return {name: digest(getattr(script, name)) for name in ALL}


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("make(0.1)", "make(0.2)", {"closure"}),
        ("Experiment(0.1)", "Experiment(0.2)", {"method"}),
        ("RATE, KINDS, LOCK = 0.1", "RATE, KINDS, LOCK = 0.2", {"plain", "part"}),
        ('"tanh"', '"sine"', {"plain", "part"}),
        ('{"relu", "gelu"}', '{"relu", "silu"}', {"plain", "part"}),
        ("k=3", "k=5", {"plain", "part"}),
        ("k=4", "k=5", {"part"}),
        ("x * 2", "x * 3", {"plain", "part"}),
        ("x + 1\n\nclass Exp", "x + 2\n\nclass Exp", {"method", "klass"}),
        ("steps = 5", "steps = 6", {"method", "klass"}),
        ("x + 1\n\ndef calls", "x + 2\n\ndef calls", {"calls"}),
        ("@repeats(3)", "@repeats(4)", {"decorated"}),
        ("return 1\n", "return 2\n", {"decorated"}),
        ("return recursive(n)", "return recursive(n + 1)", {"recursive"}),
        ("import functools", "# a comment\n\nimport functools", set()),
        ("# nothing", "", set()),
    ],
)
def test_a_trainable_changes_with_whatever_it_uses_and_with_nothing_else(
    before: str, after: str, changed: set[str]
) -> None:
    one, other = digests(ONE), digests(ONE.replace(before, after))
    assert {name for name in one if one[name] != other[name]} == changed


def test_a_trainable_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("NAMES = {'a', 'b', 'c'}\ndef build(c): return len(NAMES)\n")
    end = "import mine\nfrom rgr_dist.search.tune.identity import digest\ndef uses(config):\n"
    end += "    return mine.build(1)\n\ndef imports(config):\n"
    end += "    from mine import build\n    return build(1)\n"
    end += f"print([digest(one) for one in [uses, imports, {', '.join(ALL)}]])\n"
    (tmp_path / "script.py").write_text(ONE + end)
    run = [sys.executable, "script.py"]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONHASHSEED": "random"}

    def told() -> str:
        done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = told()
    assert told() == first
    (tmp_path / "mine.py").write_text("NAMES = {'a', 'b', 'c'}\ndef build(c): return 7\n")
    changed = told()
    before, after = first.split(","), changed.split(",")
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert before[2:] == after[2:]


def tensors(change: float) -> Callable[[dict[str, Any]], Any]:
    network = torch.nn.Linear(3, 2)
    with torch.no_grad():
        network.weight.fill_(1.0)
        network.bias.fill_(change)
    return lambda config: network


@pytest.mark.parametrize(
    "make",
    [
        tensors,
        lambda change: tune.with_parameters(train, data=np.arange(5) * change),
        lambda change: tune.with_parameters(Model, data=np.arange(5) * change),
        lambda change: functools.partial(train, [{"rate": change}]),
        lambda change: {"layers": [{"rate": change}], "of": train},
        lambda change: {"array": np.full(4, change), "half": torch.full((2,), change).bfloat16()},
    ],
)
def test_what_a_trainable_holds_counts_by_its_content(make: Callable[[float], Any]) -> None:
    assert digest(make(1.0)) == digest(make(1.0)) != digest(make(2.0))


class Model(tune.Trainable):
    """A class."""

    def setup(self, config: dict[str, Any], data: Any = None) -> None:
        """Take nothing."""


def test_resources_and_a_run_change_nothing() -> None:
    before = digest(train)
    assert digest(tune.with_resources(train, {"cpu": 2})) == before
    train.calls = 3  # type: ignore[attr-defined]
    assert digest(train) != before
    del train.calls  # type: ignore[attr-defined]
    assert digest(train) == before


# ----- The file


def test_a_search_goes_on_from_its_file_and_another_is_refused(tmp_path: Path) -> None:
    def from_width(threshold: int) -> Any:
        return lambda config: [{"f1": float(config["width"] >= threshold)}]

    path, asked = tmp_path / "scores", {"metric": "f1", "target": 0.9, "bounds": (0, 1)}
    eleven, config = from_width(11), {"rate": 0.1}

    def search(**changes: Any) -> ThresholdSearch:
        return ThresholdSearch("width", range(1, 33), **asked | changes)

    first, tune = search(store=ScoreFile(path, eleven, config)), FakeTune(eleven)
    tune.fit(first, most=4)
    FakeTune(eleven).fit(again := search(store=ScoreFile(path, eleven, config)))
    assert again.threshold().value == 11
    assert len(path.read_text().splitlines()) == 1 + sum(map(len, again.scores.values()))
    assert search(store=ScoreFile(path, eleven, config)).is_done
    other = search(target=0.8, store=ScoreFile(path, from_width(11), config))
    assert other.is_done, "another question about the same scores"
    for trainable, its, stop, said in (
        (from_width(12), config, None, "trainable"),
        (eleven, {"rate": 0.2}, None, "config"),
        (eleven, config, {"training_iteration": 3}, "stop"),
    ):
        with pytest.raises(ValueError, match=f"holds scores of another {said}; give another file"):
            search(store=ScoreFile(path, trainable, its, stop))
    with pytest.raises(ValueError, match="another metric"):
        search(metric="loss", store=ScoreFile(path, eleven, config))


def test_a_file_that_answers_all_starts_no_ray(tmp_path: Path) -> None:
    file = ScoreFile(tmp_path / "scores", train)
    file.read(**NAMES)
    for width in (1, 2):
        file.add(width, 0, float(width == 2))
    file.add(3, 0, 1.0)
    found = find_threshold(train, "width", [1, 2, 3], "f1", 0.9, seeds=1, store=tmp_path / "scores")
    assert (found.value, found.scores[2]) == (2, {0: 1.0})


def test_a_line_that_was_cut_off_holds_no_score(tmp_path: Path) -> None:
    path = tmp_path / "scores"
    file = ScoreFile(path, train)
    assert file.read(**NAMES) == []
    file.add(0.5, 0, 0.25)
    file.add(0.75, 1, 1)
    path.write_text(path.read_text()[:-5])
    assert ScoreFile(path, train).read(**NAMES) == [(0.5, 0, 0.25)]
    file.add(0.75, 1, 1)
    assert ScoreFile(path, train).read(**NAMES) == [(0.5, 0, 0.25), (0.75, 1, 1)]


@pytest.mark.parametrize("text", ["width,f1\n1,0.5\n", "[]\n", "\n\n"])
def test_a_file_of_something_else_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "scores").write_text(text)
    with pytest.raises(ValueError, match="give another file"):
        ScoreFile(tmp_path / "scores", train).read(**NAMES)
