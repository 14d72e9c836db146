"""Runs Ray Tune until a searcher has finished: the one Tuner of every caller."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
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
from ray.tune.search import Searcher

from search.tune.memory_kill import memory_kills_end_one_trial

Resources = dict[str, float] | PlacementGroupFactory


def run_trials(
    trainable: Any,
    searcher: Searcher,
    slots: int,
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
        slots: trials that run at once.
        resources: of one trial; None for those that the trainable asks for itself.
        config: what every trial's config holds besides what the searcher suggests.
        reuse_actors: give the next trial to a process that has ended one.
        stop: ends all trials early.
    """
    folder = tempfile.mkdtemp(prefix="rgr-")
    try:
        tuner = Tuner(
            trainable if resources is None else with_resources(trainable, resources),
            param_space=dict(config or {}),
            tune_config=TuneConfig(
                search_alg=searcher,
                scheduler=scheduler,
                num_samples=-1,
                max_concurrent_trials=slots,
                reuse_actors=reuse_actors,
                trial_dirname_creator=lambda trial: str(trial.trial_id),
            ),
            run_config=RunConfig(
                storage_path=folder,
                verbose=0,
                failure_config=FailureConfig(max_failures=0),
                stop=stop,
                checkpoint_config=CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
                callbacks=list(callbacks),
                progress_reporter=CLIReporter(),  # silent; a notebook's clears the cell's output
            ),
        )
        with memory_kills_end_one_trial():
            tuner.fit()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
