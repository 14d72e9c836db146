"""A head count's bracket in a few signs, for whoever watches a study run."""

from __future__ import annotations

from typing import Literal, NamedTuple

from rgr_dist.search.threshold import Search

Look = Literal["found", "pruned", "censored", "failed", "open", "untried"]


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
    (Sign("failed", "failed"), "a run failed"),
    (Sign("·", "untried"), "not begun"),
)
"""Every sign with an example, for a legend."""


def bracket_sign(search: Search, arm: int) -> Sign:
    """What is known of a head count's threshold d_k."""
    result, axis = search.result(arm), search.plan.axes[arm]
    if result.status == "found":
        return Sign(f"{result.value}", "found")
    if result.status == "pruned":
        return Sign("–", "pruned")
    if result.status == "censored":
        return Sign(f"> {axis[-1]}", "censored")
    if arm in search.open:
        return Sign("failed", "failed")
    fails, passing = search.bracket(arm)
    low = axis[fails - 1] if fails else 0
    if passing is not None:
        return Sign(f"{low}–{axis[passing]}", "open")
    return Sign(f"> {low} …", "open") if low else Sign("·", "untried")


def accuracy_sign(search: Search, arm: int) -> Sign:
    """The accuracy at the largest width so far, and over how many of the study's seeds."""
    test = search.plan.test
    known = {
        key.value: {seed: scores[seed] for seed in test.in_order if seed in scores}
        for key, scores in search.evidence.items()
        if key.arm == arm
    }
    largest = max((value for value, scores in known.items() if scores), default=None)
    if largest is None:
        return Sign("·", "untried")
    return Sign(f"{test.mean(known[largest]):.3f} ({len(known[largest])})", "found")
