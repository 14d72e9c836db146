"""The weights that a run of edges starts from: random ones, or those of a construction."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rgr_dist.problem.edge_task import initial_projections
from rgr_dist.study.cell import Run

Float64Array = npt.NDArray[np.float64]

LOGIT = 8.0
"""Of an edge with a score of 1 at the start, where another pair has at most -8.

The loss is then small where the construction is right, so that training keeps what is. At 2 it
leads away from layers that are right on every pair, and at (64, 16) some end below 0.99.
"""


def initial_weights(run: Run) -> tuple[Float64Array, Float64Array, float]:
    """W_Q and W_K at the start, each [d_model, D_K], and tau, as ``training.start`` has them.

    Constructed are those of alternating projections (``theory.projections``), which score an edge
    at 1 and every other pair at 0.9 or less, as far as the width allows. All scores and tau are
    scaled alike, so that every pair stays on its side, and such an edge has a logit of ``LOGIT``;
    ``training.initial_scale`` multiplies W_Q and W_K beyond that. Each column of W_Q is as long as
    that of W_K, since AdamW moves the entries of both equally fast.
    """
    training = run.cell.training
    if training.start == "random":
        return (*initial_projections(run), 0.0)
    from rgr_dist.theory.construct import build, problem_of  # a second, and few runs need it
    from rgr_dist.theory.projections import CEILING

    problem = problem_of(run.cell, run.seed)
    layer = build("ours", run.cell.construction, problem, run.h, run.d_k).layer
    scale = training.initial_scale**2 * LOGIT / (training.sharpness * (1 - CEILING) / 2)
    lengths = (np.linalg.norm(W, axis=0) for W in (layer.W_Q, layer.W_K))
    query, key = (np.where(length > 0, length, 1.0) for length in lengths)
    root = np.sqrt(scale * query * key)
    W_Q, W_K = layer.W_Q * (root / query), layer.W_K * (root / key)
    return W_Q.astype(np.float64), W_K.astype(np.float64), scale * layer.tau
