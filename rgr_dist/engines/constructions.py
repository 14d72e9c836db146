"""Weights that are constructed, not trained, behind the interface of an engine.

The search can thus find the smallest passing d_k of a construction as it does for a trained layer,
on the same graphs and embeddings, seed by seed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch

from rgr_dist.engines.api import Engine, Outcome, Weights
from rgr_dist.engines.tasks import F1Scorer
from rgr_dist.models.layer import PAPERS
from rgr_dist.problem.edge_task import Task
from rgr_dist.study.run import Run
from rgr_dist.theory.all_pairs import score_all_pairs
from rgr_dist.theory.construct import build, problem_of
from rgr_dist.theory.layer import Built


class ConstructionEngine(Engine):
    """Makes the weights of each run, and scores them.

    ``score`` is micro-F1 over all m² pairs, a stricter test than the sampled contexts of a trained
    run; 1 is exact recovery. ``val_score`` is micro-F1 on the sampled test contexts, by the code
    that scores trained weights. For a softmax layer (Algorithm 2), both are the latter.
    ``steps`` counts projections; it is 1 for a closed form. Where one head is decided, a run that
    converged with a score below 1 has proved that no weights of one head are right on every pair;
    ``max_steps`` means that neither weights nor a proof was found.
    """

    name = "construction"

    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        """Make and score each run's weights; untrained, they are the same at every budget."""
        return [[_outcome(run)] * (len(budgets) + 1) for run in runs]

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[Weights]:
        """The weights; they do not depend on training steps."""
        layers = [_built(run).layer for run in runs]
        return [{"W_Q": one.W_Q, "W_K": one.W_K, "tau": np.array(one.tau)} for one in layers]


def _built(run: Run) -> Built:
    record, options = run.cell.record, run.cell.construction
    assert record.algorithm is not None
    problem = problem_of(run.cell, run.seed)
    return build(record.algorithm, problem, run.h, run.d_k, options.iterations)


def _outcome(run: Run) -> Outcome:
    started = time.perf_counter()
    built, task = _built(run), Task.of(run.cell, run.seed)
    layer = built.layer
    X, W_Q, W_K, tau = (
        torch.as_tensor(value, dtype=torch.float64)
        for value in (task.embedding, layer.W_Q, layer.W_K, layer.tau)
    )
    scored = PAPERS[run.cell.record.heads or "max"](run.cell.d_model, run.h, W_Q.shape[1] // run.h)
    p = {"W_Q": W_Q, "W_K": W_K}
    scorer = F1Scorer(task.test, torch.from_numpy(task.graph.table).long())
    on_contexts = scorer.score(lambda nodes: scored.scores(X[nodes], p), tau)
    on_pairs = on_contexts
    if run.cell.record.scores_pairs:
        on_pairs = score_all_pairs(layer, task.embedding, task.graph).f1
    return Outcome(
        score=on_pairs,
        val_score=on_contexts,
        tau=layer.tau,
        steps=max(1, built.iterations),
        stop_reason="converged" if built.settled else "max_steps",
        seconds=time.perf_counter() - started,
    )
