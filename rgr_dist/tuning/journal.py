"""Keeps trials in ``studies/<name>/tuning.journal`` of a store, a folder or a bucket.

The file is an Optuna journal, with one JSON object per line: ``optuna-dashboard
results/studies/<name>/tuning.journal`` opens it.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable
from typing import Any

import optuna
from optuna.distributions import FloatDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from rgr_dist.store.storage import StoreError
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study
from rgr_dist.tuning.optuna_trials import FINISHED

Log = dict[str, Any]
LARGEST = 1e30
"""Largest value of a tuned key."""
DAMAGED = (
    OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError,
    RecursionError,
)  # fmt: skip
"""What Optuna raises for a journal that is damaged."""


class StoredJournal(BaseJournalBackend):
    """Optuna's journal as a file of the store, written by a single process.

    Each change rewrites the file, so that it is never torn; a tuning has a few hundred lines.

    Raises:
        ValueError: the file is not a journal.
    """

    def __init__(self, store: Store, path: str) -> None:
        self.store, self.path = store, path
        text = store.read_text(path) or ""
        whole, end, _ = text.rpartition("\n")  # drops an unfinished line
        if text and not end:
            raise ValueError("its first line has no end")
        self.logs: list[Log] = [json.loads(line) for line in whole.splitlines()]

    def read_logs(self, log_number_from: int) -> Iterable[Log]:
        """The lines from that number on."""
        return self.logs[log_number_from:]

    def append_logs(self, logs: list[Log]) -> None:
        """Add lines."""
        self.logs += logs
        lines = (json.dumps(log, separators=(",", ":")) + "\n" for log in self.logs)
        self.store.write_text(self.path, "".join(lines))


def open_journal(store: Store, study: Study) -> JournalStorage:
    """The journal of a study's tunings, empty if there is none.

    Raises:
        StoreError: it cannot be read.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    most = math.inf if study.record.minimised else 1.0
    try:
        stored = StoredJournal(store, _path(study))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of distributions that an older Optuna wrote
            journal = JournalStorage(stored)
        for trial_id in {log["trial_id"]: log for log in stored.logs if "trial_id" in log}:
            journal.get_trial(trial_id)  # Optuna drops the lines of unknown trials
        for name in optuna.get_all_study_names(journal):
            wanted = optuna.load_study(study_name=name, storage=journal).directions
            if wanted != [StudyDirection["MINIMIZE" if study.record.minimised else "MAXIMIZE"]]:
                raise ValueError(f"{name} looks for another score than the best")
            trials = finished_trials(journal, name)
            for trial in trials:
                if not trial.params or trial.params.keys() != trials[0].params.keys():
                    raise ValueError(f"trial {trial.number} has no keys, or not those of the first")
                for key, value in trial.params.items():
                    drawn = trial.distributions[key]
                    if not isinstance(drawn, FloatDistribution):
                        raise ValueError(f"trial {trial.number} has a {key} that is no float")
                    _check(trial, key, value, max(0, drawn.low), min(drawn.high, LARGEST))
                if trial.state is TrialState.COMPLETE:
                    (score,) = trial.values
                    _check(trial, "score", score, 0, most)
        return journal
    except DAMAGED as error:
        why = str(error) or type(error).__name__
        raise StoreError(
            f"{journal_place(store, study)}: not a readable journal: {why}; move it away"
        ) from None


def _check(trial: FrozenTrial, key: str, value: Any, least: float, most: float) -> None:
    """Raise ValueError if a number of a trial is none, or outside of its bounds."""
    if type(value) not in (int, float) or not least <= value <= most:
        raise ValueError(f"trial {trial.number} has the {key} {value!r}")


def journal_place(store: Store, study: Study) -> str:
    """Where the journal is: a path, or a URI."""
    return store.address(_path(study))


def finished_trials(journal: JournalStorage, name: str) -> list[FrozenTrial]:
    """Trials that a journal holds, completed or pruned, in their order; none before the first."""
    if name not in optuna.get_all_study_names(journal):
        return []
    study = optuna.load_study(study_name=name, storage=journal)
    return study.get_trials(deepcopy=False, states=FINISHED)


def _path(study: Study) -> str:
    return f"studies/{study.name}/tuning.journal"
