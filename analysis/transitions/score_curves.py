"""Curves through scores: top / (1 + exp(-(x - middle) / width)) in x = log₂ D_K, by least squares.

Levenberg's and Marquardt's method from several starts, for many curves in one call; the best end
counts. scipy's ``curve_fit`` does one curve from one start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from analysis.laws.interval_likelihood import Array

BEYOND = 6.0
"""How far the middle may lie outside the widths that ran, in doublings of D_K."""

LEAST_WIDTH, LARGEST_WIDTH = 0.01, 6.0
"""Bounds on the width, in doublings."""

START_MIDDLES, START_WIDTHS = 5, (0.05, 0.3)
"""Starts: so many middles from the narrowest to the widest run, each with these widths."""

STEPS, TOLERANCE = 200, 1e-13


@dataclass(frozen=True)
class ScoreCurves:
    """Curves of least squares.

    Attributes:
        top: the score at endless width, from 0 to 1, shape (curves,).
        middle: log₂ D_K at which half of that is reached.
        width: in doublings.
    """

    top: Array
    middle: Array
    width: Array


def fit(x: Array, y: Array, weight: Array) -> ScoreCurves:
    """The curves of least Σ weight · (y - curve)².

    Args:
        x: log₂ D_K, shape (curves, n).
        y: mean score at x.
        weight: how many runs it is of; 0 leaves it out.
    """
    ran = weight > 0
    ends = np.where(ran, x, np.inf).min(axis=1), np.where(ran, x, -np.inf).max(axis=1)
    widths = np.log([LEAST_WIDTH, LARGEST_WIDTH])
    curves, one = len(x), np.ones(len(x))
    low = np.column_stack([0 * one, ends[0] - BEYOND, widths[0] * one])
    high = np.column_stack([one, ends[1] + BEYOND, widths[1] * one])
    tops = np.clip(np.where(ran, y, 0.0).max(axis=1), 0.05, 1.0)
    starts = [
        np.column_stack([tops, ends[0] + share * (ends[1] - ends[0]), math.log(width) * one])
        for share in np.linspace(0, 1, START_MIDDLES)
        for width in START_WIDTHS
    ]
    several = len(starts)
    found, loss = _descend(
        np.concatenate(starts),
        *(np.tile(part, (several, 1)) for part in (low, high, x, y, weight)),
    )
    best = loss.reshape(several, curves).argmin(axis=0)
    top, middle, log_width = found.reshape(several, curves, 3)[best, np.arange(curves)].T
    return ScoreCurves(top, middle, np.exp(log_width))


def _descend(
    state: Array, low: Array, high: Array, x: Array, y: Array, weight: Array
) -> tuple[Array, Array]:
    """The unknowns (top, middle, log width) where each sum of squares stops falling, and the sum.

    An unknown at a bound that the sum would fall beyond is held there.
    """
    damping = np.full(len(state), 1e-3)
    loss, gradient, normal = _squares(state, x, y, weight)
    for _ in range(STEPS):
        held = ((state <= low) & (gradient < 0)) | ((state >= high) & (gradient > 0))
        slope = np.where(held, 0.0, gradient)
        matrix = np.where(held[:, :, None] | held[:, None, :], 0.0, normal)
        diagonal = np.einsum("bpp->bp", matrix)
        ridge = np.where(held, 1.0, damping[:, None] * diagonal + 1e-12)
        step = np.linalg.solve(matrix + ridge[:, :, None] * np.eye(3), slope[..., None])[..., 0]
        promise = (step * slope).sum(axis=1)
        if (promise <= TOLERANCE * loss + 1e-300).all():
            break
        trial = np.clip(state + step, low, high)
        others = _squares(trial, x, y, weight)
        better = others[0] < loss
        state = np.where(better[:, None], trial, state)
        loss = np.where(better, others[0], loss)
        gradient = np.where(better[:, None], others[1], gradient)
        normal = np.where(better[:, None, None], others[2], normal)
        damping = np.clip(np.where(better, damping / 5, damping * 4), 1e-12, 1e12)
    return state, loss


def _squares(state: Array, x: Array, y: Array, weight: Array) -> tuple[Array, Array, Array]:
    """The sum of squares, half its descent, and the normal matrix of its linear model."""
    top, middle, log_width = (part[:, None] for part in state.T)
    z = (x - middle) / np.exp(log_width)
    share = expit(z)
    bend = top * share * expit(-z)
    residual = y - top * share
    slopes = np.stack([share, -bend / np.exp(log_width), -bend * z], axis=-1)
    weighted = weight[..., None] * slopes
    loss = (weight * residual**2).sum(axis=1)
    return (
        np.asarray(loss),
        np.einsum("bnp,bn->bp", weighted, residual),
        np.einsum("bnp,bnq->bpq", weighted, slopes),
    )
