"""The reference with given weights: what scores are held to."""

from __future__ import annotations

import numpy as np
import torch

from rgr_dist.engines.api import Weights
from rgr_dist.engines.fused.lane import Lane
from rgr_dist.engines.reference.edges import EdgeTrainer
from rgr_dist.study.run import Run


def reference_with(run: Run, weights: Weights) -> EdgeTrainer:
    """The reference in float32 with the weights of an engine."""
    trainer = EdgeTrainer(run, torch.float32)
    for name in ("W_Q", "W_K", "tau"):
        value = np.ascontiguousarray(weights[name], dtype=np.float32)
        trainer.theta[name].data = torch.from_numpy(value)
    return trainer


def lane_and_reference(run: Run, steps: int) -> tuple[Lane, EdgeTrainer]:
    """A trained lane, and the reference with its weights."""
    lane = Lane(run)
    lane.advance(steps)
    return lane, reference_with(run, lane.weights())
