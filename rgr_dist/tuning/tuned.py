"""What a tuning found: its trials, the best protocol, and the effect of that at each probe."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from rgr_dist.planning.portfolio import seed_test
from rgr_dist.planning.tables import finite
from rgr_dist.tuning.journal import journal_place
from rgr_dist.tuning.optuna_trials import OptunaTrials
from rgr_dist.tuning.training_protocol import Protocol, Tuning, probe_rows, rounded
from rgr_dist.tuning.trial import score_of


@dataclass(frozen=True)
class Tuned:
    """What a tuning found.

    Attributes:
        trials: a row for each trial that has begun: number, state, score (the mean so far if
            pruned), seeds, and the tuned keys.
        probes: a row for each probe, with its mean score under the best and the present protocol.
        training: the best protocol, a ``training`` section of a study; None before any trial.
        score, present_score: mean test score of the best protocol, and of the one that the first
            tuned cell has in the study.
        loaded: how many finished trials the journal already held.
        failed: how many trials failed this time, as their rows say.
        kills: how often workers were lost this time.
        journal: where the trials are kept.
    """

    trials: list[dict[str, Any]]
    probes: list[dict[str, Any]]
    training: dict[str, float] | None
    score: float | None
    present_score: float | None
    loaded: int
    failed: int
    kills: int
    journal: str


def ended(score: float | None, pruned: bool) -> str:
    """How a trial ended, in words."""
    if score is None:
        return "failed"
    return f"mean score {score:.4f}{' so far, pruned' if pruned else ''}"


def tuned_by(search: OptunaTrials, tuning: Tuning) -> Tuned:
    """What the trials of a search show; the scores of the probes are read from the store."""
    best, present = search.best, rounded(tuning.present)
    done = (t for t in search.finished if t.state is TrialState.COMPLETE)
    first = next((trial for trial in done if rounded(trial.params) == present), None)
    found = rounded(best.params) if best else None
    listed = [
        row | {"present_score": before, "score": after}
        for row, before, after in zip(
            probe_rows(tuning.study, tuning.probes),
            _means(tuning, present if first else None),
            _means(tuning, found),
            strict=True,
        )
    ]
    seeds, trials = tuning.study.search.seeds, search.study.get_trials(deepcopy=False)
    begun = (trial for trial in trials if trial.state is not TrialState.WAITING)
    return Tuned(
        trials=[_trial_row(trial, seeds) for trial in begun],
        probes=listed,
        training=found,
        score=finite(best.value) if best else None,
        present_score=finite(first.value) if first else None,
        loaded=search.loaded,
        failed=search.failed,
        kills=search.kills,
        journal=journal_place(tuning.store, tuning.study),
    )


def _means(tuning: Tuning, protocol: Protocol | None) -> list[float | None]:
    """Mean stored score of each probe under a protocol; None if one of its seeds is not stored."""
    if protocol is None:
        return [None] * len(tuning.probes)
    worst, seeds = seed_test(tuning.study).worst, range(tuning.study.search.seeds)
    rows = tuning.store.runs().query("stop_reason != 'failed'").to_dict("records")
    scores = {row["run_id"]: score_of(row, worst) for row in rows}
    means = []
    for probe in tuning.probes:
        own = [scores.get(probe.run(protocol, seed).run_id) for seed in seeds]
        known = [score for score in own if score is not None]
        means.append(finite(fmean(known)) if len(known) == len(own) else None)
    return means


def _trial_row(trial: FrozenTrial, seeds: int) -> dict[str, Any]:
    done = trial.state is TrialState.COMPLETE
    return {
        "trial": trial.number,
        "state": trial.state.name.lower().replace("fail", "failed"),
        "score": finite(trial.value),
        "seeds": seeds if done else trial.last_step or 0,
        **rounded(trial.params),
    }
