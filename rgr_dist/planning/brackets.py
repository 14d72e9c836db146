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
    """The accuracy at the largest D_K so far, and of how many seeds."""
    probes = [key for key in state.evidence if key.arm == h]
    if not probes:
        return Sign("·", "untried")
    scores = state.evidence[max(probes, key=lambda key: key.value)]
    return Sign(f"{state.test.mean(scores):.3f} ({len(scores)})", "found")
