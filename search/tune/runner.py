"""Runs Ray Tune until a searcher has finished: the one Tuner of every caller."""

from __future__ import annotations

import copy
import gc
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ray import tune

from rgr_dist.search.tune.searcher import LOW_ON_MEMORY, UNKNOWN, ProbeSearcher, Unsaved

Resources = dict[str, float] | tune.PlacementGroupFactory


class Watch(Unsaved, tune.Callback):
    """Watches the trials as Tune's loop goes round.

    Args:
        beat: called about once a second, with all trials.
        explain: called for each trial that ends in error, with its id and the error's text.
    """

    def __init__(
        self,
        beat: Callable[[list[Any]], object],
        explain: Callable[[str, str], None] = lambda trial_id, error: None,
    ) -> None:
        self.beat, self.explain = beat, explain

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Explain what a trial raised, or what became of its worker."""
        file = Path(trial.error_file or "")
        text = file.read_text(errors="replace") if file.is_file() else ""
        last = text.rpartition("Failure # ")[2].partition("\n")[2].strip()
        self.explain(trial.trial_id, last or UNKNOWN)

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Called as Tune's loop goes round."""
        self.beat(trials)


class WhileNeeded(Unsaved, tune.Stopper):
    """Ends a trial that can tell nothing more, and all of them once the search is done."""

    def __init__(self, searcher: ProbeSearcher) -> None:
        self.searcher = searcher

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Whether to end this trial."""
        return bool(result.get("done")) or self.searcher.spare(trial_id)

    def stop_all(self) -> bool:
        """Whether no trial is needed any more."""
        return self.searcher.is_done


def run_trials(
    trainable: Any,
    searcher: ProbeSearcher,
    resources: Resources | None,
    config: Mapping[str, Any] | None = None,
    reuse_actors: bool = True,
    stop: tune.Stopper | None = None,
    callbacks: Sequence[tune.Callback] = (),
    run_config: tune.RunConfig | None = None,
) -> tune.ResultGrid:
    """Run the trials that a searcher suggests, until it says that it has finished.

    If a worker is killed for its memory, Tune ends the whole run: the searcher's
    ``killed_for_memory`` is called, and another run goes on.

    Args:
        resources: of one trial; None for those that the trainable asks for itself.
        config: what every trial's config holds besides what the searcher suggests.
        reuse_actors: give the next trial to a process that has finished one.
        stop: ends trials early.
        run_config: the user's. Not given, Tune's folder is a temporary one, no trial is
            checkpointed, and none is retried, since the searcher suggests a failed one again.
    """
    no_checkpoints = tune.CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False)
    tune_config = tune.TuneConfig(
        search_alg=searcher,
        num_samples=-1,
        reuse_actors=reuse_actors,
        trial_dirname_creator=lambda trial: str(trial.trial_id),
    )
    with tempfile.TemporaryDirectory(prefix="rgr-", ignore_cleanup_errors=True) as folder:
        run = copy.copy(run_config) or tune.RunConfig(
            storage_path=folder, checkpoint_config=no_checkpoints
        )
        run.verbose, run.stop = 0, stop
        if getattr(trainable, "save_checkpoint", None) is tune.Trainable.save_checkpoint:
            run.checkpoint_config = no_checkpoints  # it has none
        run.callbacks = [*(run.callbacks or ()), *callbacks]
        run.progress_reporter = tune.CLIReporter()  # silent; a notebook's clears the cell's output
        if resources is not None:  # which Tune would set on the user's own function
            own = trainable if isinstance(trainable, type) else partial(trainable)
            trainable = tune.with_resources(own, resources)
        while True:
            tuner = tune.Tuner(
                trainable, param_space=dict(config or {}), tune_config=tune_config, run_config=run
            )
            try:
                return tuner.fit()
            except BaseException as error:
                text = "".join(traceback.format_exception(error))
                # Objects in the frames keep trials alive, and their CPUs from the next run.
                traceback.clear_frames(error.__traceback__)
                del tuner
                gc.collect()
                if LOW_ON_MEMORY not in text:
                    raise
                searcher.killed_for_memory()
