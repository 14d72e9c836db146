"""The weights that a run of edges starts from: random ones, or those of a construction."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rgr_dist.problem.edge_task import initial_projections
from rgr_dist.study.run import Run

Float64Array = npt.NDArray[np.float64]

LOGIT = 8.0
"""Logit of an edge that scores 1 at the start; pairs that score 0.9 or less then have at most -8.

The loss is then small where the construction is right, so training preserves it. With a logit of 2
it leads away from layers that are right on every pair, and at (64, 16) some end below 0.99.
"""


def initial_weights(run: Run) -> tuple[Float64Array, Float64Array, float]:
    """W_Q and W_K at the start, each [d_model, D_K], and tau, as ``training.start`` says.

    Constructed weights are those of alternating projections (``theory.projections``): if the width
    allows, they score every edge at 1 and every other pair at 0.9 or less. All scores and tau are
    scaled alike, so that every pair stays on its side of tau and such an edge has a logit of
    ``LOGIT``; ``training.initial_scale`` multiplies W_Q and W_K further. Each column of W_Q is made
    as long as that of W_K, since AdamW moves the entries of both equally fast.
    """
    training = run.cell.training
    if training.start == "random":
        return (*initial_projections(run), 0.0)
    from rgr_dist.theory.construct import build, problem_of  # takes a second, and few runs need it
    from rgr_dist.theory.projections import CEILING

    problem = problem_of(run.cell, run.seed)
    layer = build("ours", problem, run.h, run.d_k).layer
    scale = training.initial_scale**2 * LOGIT / (training.sharpness * (1 - CEILING) / 2)
    lengths = (np.linalg.norm(W, axis=0) for W in (layer.W_Q, layer.W_K))
    query, key = (np.where(length > 0, length, 1.0) for length in lengths)
    root = np.sqrt(scale * query * key)
    W_Q, W_K = layer.W_Q * (root / query), layer.W_K * (root / key)
    return W_Q.astype(np.float64), W_K.astype(np.float64), scale * layer.tau
