"""Runs Ray Tune until a searcher has finished: the one Tuner of every caller."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ray.tune import (
    Callback,
    CheckpointConfig,
    CLIReporter,
    FailureConfig,
    PlacementGroupFactory,
    RunConfig,
    Stopper,
    TuneConfig,
    Tuner,
    with_resources,
)
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import ConcurrencyLimiter, Searcher

from rgr_dist.search.tune.forgetting import NoProgress
from rgr_dist.search.tune.lost_workers import memory_kills_end_one_trial

Resources = dict[str, float] | PlacementGroupFactory

LOOK_EVERY = 5.0
"""Seconds between looks at how many slots there are."""
MOST_STARTING = 1000
"""Workers that may be starting at once where the number of slots changes."""


class FollowSlots(Callback):
    """Lets as many trials run at once as there are slots, however many that are by now."""

    def __init__(self, limiter: ConcurrencyLimiter, slots: Callable[[], int]) -> None:
        self.limiter, self.slots, self.looked = limiter, slots, 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Nothing of a search is pickled: running it again resumes it."""
        return {}

    def setup(self, *args: Any, **info: Any) -> None:
        """Called before the first trial is asked for."""
        self.on_step_begin()

    def on_step_begin(self, *args: Any, **info: Any) -> None:
        """Called as Tune's loop goes round."""
        if time.monotonic() - self.looked > LOOK_EVERY:
            self.limiter.max_concurrent = max(1, self.slots())
            self.looked = time.monotonic()


def run_trials(
    trainable: Any,
    searcher: Searcher,
    slots: int | Callable[[], int],
    resources: Resources | None,
    scheduler: TrialScheduler | None = None,
    config: Mapping[str, Any] | None = None,
    reuse_actors: bool = True,
    stop: Stopper | None = None,
    callbacks: Sequence[Callback] = (),
) -> None:
    """Run the trials that a searcher suggests; returns when it says that it has finished.

    Tune keeps nothing of them: its folder is temporary, no trial is checkpointed, and none is
    retried, since the searcher suggests a failed one again.

    Args:
        slots: trials that run at once; a function is asked for them every few seconds.
        resources: of one trial; None for those that the trainable asks for itself.
        config: what every trial's config holds besides what the searcher suggests.
        reuse_actors: give the next trial to a process that has ended one.
        stop: ends all trials early.
    """
    callbacks = [*callbacks, NoProgress()]
    if callable(slots):
        searcher = ConcurrencyLimiter(searcher, max_concurrent=MOST_STARTING)
        callbacks.append(FollowSlots(searcher, slots))
    with (
        tempfile.TemporaryDirectory(prefix="rgr-", ignore_cleanup_errors=True) as folder,
        memory_kills_end_one_trial(),
    ):
        Tuner(
            trainable if resources is None else with_resources(trainable, resources),
            param_space=dict(config or {}),
            tune_config=TuneConfig(
                search_alg=searcher,
                scheduler=scheduler,
                num_samples=-1,
                max_concurrent_trials=None if callable(slots) else slots,
                reuse_actors=reuse_actors,
                trial_dirname_creator=lambda trial: str(trial.trial_id),
            ),
            run_config=RunConfig(
                storage_path=folder,
                verbose=0,
                failure_config=FailureConfig(max_failures=0),
                stop=stop,
                checkpoint_config=CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
                callbacks=callbacks,
                progress_reporter=CLIReporter(),  # silent; a notebook's clears the cell's output
            ),
        ).fit()
