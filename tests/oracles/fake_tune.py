"""Ray Tune without Ray: drives a searcher as Tune's own loop does."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

from ray.tune.search import Searcher
from ray.tune.utils import flatten_dict, merge_dicts

Train = Callable[[dict[str, Any]], Iterable[dict[str, Any]]]


class FakeTune:
    """Runs the trials that a searcher suggests side by side; they report, and end, by chance.

    Args:
        train: what a trial reports for its config, one result after another; it may raise.
        slots: how many trials run at once.
        seed: of chance.
        scheduler: one of Tune's, which may stop trials.
        tells_errors: whether the searcher hears what a trial raised, as ``Watch`` tells it.

    Attributes:
        configs: of every trial that began, by its id.
        running: the trials that have not ended, as a killed Tuner leaves them.
    """

    def __init__(
        self,
        train: Train,
        slots: int = 1,
        seed: int = 0,
        scheduler: Any = None,
        tells_errors: bool = True,
        param_space: dict[str, Any] | None = None,
    ) -> None:
        self.train, self.slots, self.scheduler = train, slots, scheduler
        self.tells_errors, self.param_space = tells_errors, param_space or {}
        self.chance = random.Random(seed)
        self.configs: dict[str, dict[str, Any]] = {}
        self.running: dict[str, Iterator[dict[str, Any]]] = {}
        self._last: dict[str, dict[str, Any]] = {}

    def fit(self, searcher: Any, most: int = 5_000) -> None:
        """Run until the searcher has finished, or this many trials have ended.

        Trials that an earlier call left running begin anew, as after ``Tuner.restore``.
        """
        for trial in self.running:
            self._begin(trial)
        ended = 0
        while ended < most:
            config = None
            if len(self.running) < self.slots:
                config = searcher.suggest(trial := f"trial {len(self.configs)}")
            if config == Searcher.FINISHED and not self.running:
                return
            if isinstance(config, dict):
                self.configs[trial] = merge_dicts(self.param_space, deepcopy(config))
                self._begin(trial)
            else:
                assert self.running, "it waits for nobody"
                ended += self._step(searcher, self.chance.choice(list(self.running)))
        assert most < 5_000, "it does not end"

    def _begin(self, trial: str) -> None:
        self.running[trial] = iter(self.train(self.configs[trial]))
        self._last[trial] = {}
        if self.scheduler:
            self.scheduler.on_trial_add(None, SimpleNamespace(trial_id=trial))

    def _step(self, searcher: Any, trial: str) -> bool:
        """Let a trial report once; whether it has ended."""
        last = self._last[trial]
        own = {"config": self.configs[trial], "trial_id": trial}
        own["training_iteration"] = last.get("training_iteration", 0) + 1
        try:
            result = flatten_dict(next(self.running[trial]) | own)
        except StopIteration:  # a function that returns: Tune shows its last result twice
            del self.running[trial]
            searcher.on_trial_complete(trial, (last or flatten_dict(own)) | {"done": True})
            return True
        except Exception as error:
            del self.running[trial]
            searcher.on_trial_complete(trial, error=True)
            if self.tells_errors:
                name = type(error).__name__
                searcher.explain(trial, f"ray::x.train() (pid=1)\n  File x\n{name}: {error}")
            return True
        self._last[trial] = result
        decision, its = "", SimpleNamespace(trial_id=trial)
        if self.scheduler:
            decision = self.scheduler.on_trial_result(None, its, result)
        if result.get("done") or decision == "STOP":
            del self.running[trial]
            searcher.on_trial_complete(trial, result | {"done": True})
            return True
        searcher.on_trial_result(trial, result)
        return False
