"""Micro-F1 from counts of pairs."""

from __future__ import annotations


def micro_f1(tp: int, predicted: int, actual: int) -> float:
    """Micro-F1 over all pairs of all contexts: 2 TP / (2 TP + FP + FN).

    If no pair is an edge and none is predicted, the recovery is perfect: 1.0.

    Args:
        tp: true positives.
        predicted, actual: numbers of pairs that are predicted to be edges, and that are edges.
    """
    return 2 * tp / (predicted + actual) if predicted + actual else 1.0
