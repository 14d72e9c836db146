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


def f1_cannot_exceed(actual: int, errors: int, value: float) -> bool:
    """Whether this many errors keep micro-F1 from exceeding a value.

    With A actual edges and E errors, F1 is at most 2A / (2A + E), because F1 = 2 TP / (2 TP + FP +
    FN) and TP <= A. Both are quotients of integers and rounded alike, so the bound also holds for
    the computed F1.
    """
    return errors > 0 and 2 * actual / (2 * actual + errors) <= value
