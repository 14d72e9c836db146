"""How a run of facts ended: its accuracies, and ranks of what its layer predicts for all pairs."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from rgr_dist.engines.api import FactsOutcome, Outcome, StopReason, Weights
from rgr_dist.facts.logits import all_logits
from rgr_dist.facts.ranks import logits_rank, places_of_largest, triples_rank
from rgr_dist.problem.facts_task import FactsTask
from rgr_dist.study.run import Run

TAUS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Thresholds on the probability at which every layer is measured."""


def facts_outcome(
    task: FactsTask,
    run: Run,
    weights: Weights,
    accuracies: dict[str, float],
    steps: int,
    stop_reason: StopReason,
) -> Outcome:
    """The outcome of a run that did not diverge, without its ``seconds``.

    Args:
        accuracies: ``argmax`` and ``softmax``, as the engine computes them to judge the run.
    """
    score = accuracies[run.cell.facts.score]
    logits = all_logits(weights, run.h, run.cell.facts.residual)
    chances = softmax(logits, axis=2)
    keys, queries, values = task.triples.T
    right = chances[keys, queries, values]
    ranks: dict[bytes, int] = {}  # a layer often predicts the same at several tau

    def at(tau: float) -> tuple[float, float, int]:
        places = np.argwhere(chances >= tau)
        known = places.tobytes()
        if known not in ranks:
            ranks[known] = triples_rank(places).lower
        return tau, float(np.mean(right >= tau)), ranks[known]

    return Outcome(
        steps=steps,
        stop_reason=stop_reason,
        score=score,
        val_score=score,
        facts=FactsOutcome(
            argmax_accuracy=accuracies["argmax"],
            softmax_accuracy=accuracies["softmax"],
            rank_logits=logits_rank(logits),
            rank_argmax=triples_rank(places_of_largest(logits)).lower,
            by_tau=tuple(at(tau) for tau in TAUS),
        ),
    )
