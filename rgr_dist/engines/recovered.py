"""Scores of trained weights on all m² pairs, as they are and rounded to fewer bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import torch

from rgr_dist.engines.api import Engine
from rgr_dist.models.edges import score_contexts
from rgr_dist.problem.edge_task import Task
from rgr_dist.store.schema import BITS, Precision
from rgr_dist.study.run import Run
from rgr_dist.theory.all_pairs import score_all_pairs
from rgr_dist.theory.layer import Layer

PRECISIONS: tuple[Precision, ...] = get_args(Precision)


def rounded(W: npt.NDArray[np.floating], precision: Precision) -> npt.NDArray[np.float32]:
    """A matrix rounded to the nearest values that a format can hold, as float32.

    Integer formats are symmetric, with one scale for the matrix: its largest magnitude is
    2^(bits - 1) - 1 steps, that is 127 for int8 and 7 for int4.
    """
    values = torch.from_numpy(np.ascontiguousarray(W, dtype=np.float32))
    if precision.startswith("int"):
        steps = 2 ** (BITS[precision] - 1) - 1
        scale = values.abs().max() / steps
        result = torch.round(values / scale) * scale if scale > 0 else values
    else:
        result = values.to(getattr(torch, precision)).float()
    held: npt.NDArray[np.float32] = result.numpy()
    return held


def recovered(
    engine: Engine, run: Run, steps: int, precisions: Sequence[Precision]
) -> list[dict[str, Any]]:
    """Train a run of model ``max`` again for ``steps`` steps, and score it at each precision.

    W_Q and W_K are rounded; tau, a single number, is not.

    Args:
        steps: how many the stored run took.

    Returns:
        Rows of ``ALL_PAIRS``: ``score`` is micro-F1 on the sampled test contexts, which is what a
        trained run is judged by; ``f1``, ``failed_pairs`` and ``margin`` describe the same weights
        on all pairs, at the learned tau.
    """
    (weights,) = engine.weights_after([run], steps)
    cell, task = run.cell, Task.of(run.cell, run.seed)
    targets = torch.from_numpy(task.graph.table).long()
    contexts, X = torch.from_numpy(task.test).long(), torch.from_numpy(task.embedding).float()
    tau = float(weights["tau"])
    rows = []
    for precision in precisions:
        W_Q, W_K = (rounded(W, precision) for W in (weights["W_Q"], weights["W_K"]))
        layer = torch.from_numpy(W_Q), torch.from_numpy(W_K)
        pairs = score_all_pairs(Layer(W_Q, W_K, run.h, tau), task.embedding, task.graph)
        rows.append(
            {
                "run_id": run.run_id,
                "cell_id": cell.cell_id,
                "m": cell.m,
                "d_model": cell.d_model,
                "h": run.h,
                "d_k": run.d_k,
                "D_K": run.D_K,
                "seed": run.seed,
                "precision": precision,
                "bits": BITS[precision],
                "score": score_contexts(contexts, targets, X, *layer, torch.tensor(tau), run.h),
                "f1": pairs.f1,
                "failed_pairs": pairs.failed_pairs,
                "margin": pairs.margin if math.isfinite(pairs.margin) else None,
            }
        )
    return rows
