"""A head count's bracket in a few signs, for whoever watches a study run."""

from __future__ import annotations

from typing import Literal, NamedTuple

from rgr_dist.search.cell_state import CellState

Look = Literal["found", "pruned", "censored", "contradiction", "failed", "open", "untried"]


class Sign(NamedTuple):
    """What is shown of a bracket, and what it means."""

    text: str
    look: Look


MEANINGS = (
    (Sign("7", "found"), "threshold"),
    (Sign("4–9", "open"), "above 4, at most 9"),
    (Sign("> 4 …", "open"), "above 4 so far"),
    (Sign("> 64", "censored"), "none up to 64, the largest allowed"),
    (Sign("–", "pruned"), "pruned"),
    (Sign("!", "contradiction"), "passes below a fail"),
    (Sign("failed", "failed"), "a run failed"),
    (Sign("·", "untried"), "not begun"),
)
"""Every sign with an example, for a legend."""


def bracket_sign(state: CellState, h: int) -> Sign:
    """What is known of a head count's threshold d_k."""
    result, bracket = state.result(h), state.brackets[h]
    if result.status == "found":
        return Sign(f"{result.value}", "found")
    if result.status == "pruned":
        return Sign("–", "pruned")
    if result.status == "censored":
        return Sign(f"> {bracket.axis[-1]}", "censored")
    if result.status == "inconsistent":
        return Sign("!", "contradiction")
    if h in state.failed_arms:
        return Sign("failed", "failed")
    if bracket.high is not None:
        return Sign(f"{bracket.low}–{bracket.high}", "open")
    return Sign(f"> {bracket.low} …", "open") if bracket.low else Sign("·", "untried")


def accuracy_sign(state: CellState, h: int) -> Sign:
    """The accuracy at the largest D_K so far, and over how many of the study's seeds."""
    test = state.test
    known = {
        key.value: {seed: scores[seed] for seed in test.in_order if seed in scores}
        for key, scores in state.evidence.items()
        if key.arm == h
    }
    largest = max((value for value, scores in known.items() if scores), default=None)
    if largest is None:
        return Sign("·", "untried")
    return Sign(f"{test.mean(known[largest]):.3f} ({len(known[largest])})", "found")
