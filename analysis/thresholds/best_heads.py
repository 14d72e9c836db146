"""From the thresholds of every setting to the best of each cell, as in App. A.2: D_K* and h*.

Columns are named for the study's axis (``study.axis``). Where the value width of facts is searched,
D_K reads D_V, and h reads d_qk where that tells the settings apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.records import integer, parse_certificate, real
from rgr_dist.analysis.runs import scored
from rgr_dist.search.threshold import largest_kept
from rgr_dist.study.axis import SizeAxis
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

SIGNIFICANCE = 0.05
"""Level of the paired t-test that decides which settings h_low and h_high span (App. A.2)."""

POOL_MARGIN = 0.10
"""Share by which a candidate's D_K may exceed D_K* (App. A.2), where that is more than one step of
its d_k."""

SAME_SCORE = 1e-12
"""Scores that differ by less are equal up to rounding."""

Head = dict[str, Any]
"""A row of the thresholds, as a record."""


@per_study
def best_of(results: StudyResults) -> pd.DataFrame:
    """D_K* and h* of every cell of the study, in its order, with or without a threshold.

    h* is the head count with the smallest found D_K, ties broken by better mean score, then by
    fewer heads; [h_low, h_high] spans the retained heads of ``pool_of``. D_K_low is the smallest
    optimistic D_K (App. A.2) of the heads found or pruned, since fails of pruned heads are tested
    like any others; D_K_high is the smallest conservative D_K of the heads found near D_K*. Neither
    depends on what was pruned. D_K_first is the smallest D_K that passes on the first seeds alone;
    confirmed says whether D_K* passes on fresh ones. If no head is found, D_K, h* and d_k are null,
    D_K_low is the smallest D_K not excluded by every head (null unless every head of the study has
    a lower bound) and D_K_high is the smallest known to pass.

    Returns:
        ``cell_id, model, graph, m, d_model, degree, n_edges, D_K, D_K_low, D_K_high, h_star, h_low,
        h_high, d_k, status, mean_score, n_seeds, certificate, max_steps, confirmed, D_K_first``.
        d_k, mean_score, n_seeds and certificate are those of h*'s threshold. status is the cell's:
        ``open`` while any head is open, ``inconsistent`` if an inconsistent head might have a
        smaller D_K, else ``found``, or ``censored`` if no head passes. Settings of facts are not
        rivals: the interval is that of the best one, and an inconsistent one does not make the
        cell inconsistent if another is found.
    """
    study, pool = results.study, pool_of(results)
    axis = study.search.sizes
    arm, total, first_total = axis.shown_arm, axis.total, axis.first
    retained = pool[pool["retained"]].groupby("cell_id")[axis.arm].agg(["min", "max"])
    spans = {cell_id: (low, high) for cell_id, low, high in retained.itertuples()}
    rows = []
    for cell, heads in _heads(results.thresholds, study):
        found = [head for head in heads if head[total] is not None]
        row: dict[str, Any] = {
            "cell_id": cell.cell_id,
            "model": cell.model_name,
            "graph": cell.graph.family,
            "m": cell.m,
            "d_model": cell.d_model,
            "degree": cell.graph.degree,
            "n_edges": cell.n_edges,
            "max_steps": cell.training.max_steps,
            "confirmed": None,
            first_total: _smallest(heads, first_total),
        }
        if not found:
            every = all(head[axis.low] is not None for head in heads)
            known = not axis.has_rivals or (every and _has_every_head(heads, cell, study))
            row[axis.low] = _smallest(heads, axis.low) if known else None
            row[axis.high] = _smallest(heads, axis.high)
        else:
            first = _best_head(found, cell, axis)
            copied = (total, axis.value, "mean_score", "n_seeds", "confirmed", "certificate")
            row |= {name: first.get(name) for name in copied}
            row[axis.best_arm] = first[axis.arm]
            row[f"{arm}_low"], row[f"{arm}_high"] = spans[cell.cell_id]
            if _smallest(found, axis.low) is not None:
                searched = [head for head in heads if head["status"] in ("found", "pruned")]
                row[axis.low] = _smallest(searched, axis.low)
            near = [head for head in found if _is_near(head, first, axis)]
            row[axis.high] = _smallest(near, axis.high)
            if not axis.has_rivals:
                row |= {name: first[name] for name in (axis.low, axis.high)}
        row["status"] = _status(heads, found, cell, study)
        rows.append(row)
    whole = dict.fromkeys(
        ("m", "d_model", "degree", "n_edges", total, axis.low, axis.high, axis.best_arm,
         f"{arm}_low", f"{arm}_high", axis.value), "Int64"
    )  # fmt: skip
    kinds: dict[str, Any] = {"cell_id": "object", "model": "object", "graph": "object", **whole}
    kinds |= {"status": "object", "mean_score": "float64", "n_seeds": "Int64"}
    kinds |= {"certificate": "object", "max_steps": "Int64", "confirmed": "object"}
    kinds[first_total] = "Int64"
    return pd.DataFrame(rows, columns=list(kinds), dtype="object").astype(kinds)


@per_study
def pool_of(results: StudyResults) -> pd.DataFrame:
    """The head counts near D_K*, each compared with h* on paired seeds (App. A.2).

    Candidates are the heads that pass near D_K*: at most ``POOL_MARGIN`` (10 %) above it, or one
    step of their d_k, each at its threshold, or at its smallest tested pass if it is inconsistent.
    (The paper takes heads "whose tested D_K lies within 10%"; we read this as a D_K that was tested
    and passed. A step is usually more than 10 %; without it, h* would be the only candidate.) A
    candidate is retained if a two-sided paired t-test on the scores of the common seeds gives
    p > 0.05. Where no test is possible, ``rule`` says what decided:

    - ``best``: it is h* itself;
    - ``identical``: the score vectors are equal: no difference, retained;
    - ``constant gap``: every difference is the same non-zero number: certain, not retained;
    - ``too few seeds``: fewer than two common seeds: no evidence, retained.

    Returns:
        ``cell_id, m, d_model, degree, h, d_k, D_K, mean_score, n_common, mean_difference, p_value,
        retained, rule``; mean_difference is the candidate's score minus h*'s.
    """
    study = results.study
    axis, good = study.search.sizes, scored(results.searched, study)
    rows_of_probe = good.groupby(["cell_id", axis.arm, axis.value], sort=False).indices
    score, seed = good["score"].to_numpy(), good["seed"].to_numpy()

    def scores(cell: Cell, head: Head) -> dict[int, float]:
        """The scores of a head's probe, by seed."""
        at = rows_of_probe.get((cell.cell_id, head[axis.arm], head[axis.value]), [])
        return dict(zip(seed[at].tolist(), score[at].tolist(), strict=True))

    rows = []
    for cell, heads in _heads(results.thresholds, study):
        found = [head for head in heads if head[axis.total] is not None]
        if not found:
            continue
        first = _best_head(found, cell, axis)
        reference = scores(cell, first)
        for head in _passing(heads, axis):
            if not _is_near(head, first, axis):
                continue
            own = scores(cell, head)
            seeds = [one for one in own if one in reference]
            gap = np.array([own[one] - reference[one] for one in seeds], dtype=np.float64)
            if head[axis.arm] == first[axis.arm]:
                rule, p_value, retained = "best", None, True
            else:
                rule, p_value, retained = _compare(gap)
            rows.append(
                {
                    "cell_id": cell.cell_id,
                    "m": cell.m,
                    "d_model": cell.d_model,
                    "degree": cell.graph.degree,
                    **{name: head[name] for name in (*axis.columns, axis.total, "mean_score")},
                    "n_common": len(seeds),
                    "mean_difference": float(gap.mean()) if len(gap) else None,
                    "p_value": p_value,
                    "retained": retained,
                    "rule": rule,
                }
            )
    whole = ("m", "d_model", "degree", *axis.columns, axis.total)
    kinds: dict[str, Any] = {"cell_id": "object", **dict.fromkeys(whole, "Int64")}
    kinds |= {"mean_score": "float64", "n_common": "Int64", "mean_difference": "float64"}
    kinds |= {"p_value": "float64", "retained": "bool", "rule": "object"}
    return pd.DataFrame(rows, columns=list(kinds), dtype="object").astype(kinds)


def _compare(gap: npt.NDArray[np.float64]) -> tuple[str, float | None, bool]:
    """Rule, p-value and verdict for a candidate's paired score differences."""
    if len(gap) < 2:
        return "too few seeds", None, True
    if np.all(np.abs(gap) <= SAME_SCORE):
        return "identical", None, True
    if np.ptp(gap) <= SAME_SCORE:
        return "constant gap", None, False
    t = float(gap.mean() / (gap.std(ddof=1) / np.sqrt(len(gap))))
    from scipy.special import stdtr  # a quarter of a second, and many commands test nothing

    p_value = float(2 * stdtr(len(gap) - 1, -abs(t)))
    return "paired t-test", p_value, p_value > SIGNIFICANCE


def _is_near(head: Head, first: Head, axis: SizeAxis) -> bool:
    """Whether a head's width is near that of the best one."""
    return bool(head[axis.value] <= largest_kept(first[axis.total], head["h"], POOL_MARGIN))


def with_bounds(thresholds: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The thresholds, with the next D_V beyond the largest searched as the bound of censored ones.

    A censored D_K has such a bound already; on axis d_vo, the search does not know the next cost.
    """
    axis, search = study.search.sizes, study.search
    if axis.value != "d_vo":
        return thresholds
    widths = zip(thresholds["d_model"], thresholds["d_k"], strict=True)
    largest = [
        max(search.listed(d_qk), default=search.max_d_vo or d_model) for d_model, d_qk in widths
    ]
    beyond = thresholds["h"] * (np.array(largest) + 1)
    is_censored = thresholds["status"] == "censored"
    return thresholds.assign(**{axis.low: thresholds[axis.low].mask(is_censored, beyond)})


def _heads(thresholds: pd.DataFrame, study: Study) -> Iterator[tuple[Cell, list[Head]]]:
    """Each cell's threshold rows for the study's settings, sorted; missing values are None.

    Plain records, as operations on small tables would take seconds each over a thousand cells.
    """
    axis = study.search.sizes
    whole = (*axis.columns, *axis.whole, "n_seeds")
    by_cell: dict[str, list[Head]] = {}
    for row in with_bounds(thresholds, study).astype("object").to_dict("records"):
        if int(row[axis.arm]) in study.search.arms:
            head: Head = {str(name): value for name, value in row.items()}
            head |= {name: integer(row.get(name)) for name in whole}  # older tables lack some
            head["mean_score"] = real(row["mean_score"])
            by_cell.setdefault(row["cell_id"], []).append(head)
    for cell in study.cells:
        yield cell, sorted(by_cell.get(cell.cell_id, []), key=lambda head: int(head[axis.arm]))


def _passing(heads: Sequence[Head], axis: SizeAxis) -> list[Head]:
    """The heads known to pass, each with the width at which it does."""
    passing = []
    for head in heads:
        shown = head
        if head["status"] == "inconsistent":
            tested = (parse_certificate(head["certificate"]) or {}).get("pass") or {}
            shown = head | {name: tested.get(name) for name in (axis.value, axis.total)}
            shown["mean_score"] = tested.get("mean_score")
        if shown[axis.total] is not None:
            passing.append(shown)
    return passing


def _best_head(found: Sequence[Head], cell: Cell, axis: SizeAxis) -> Head:
    """The head h*, the least D_K; then the better mean, then the fewer heads."""
    return min(
        found,
        key=lambda row: (
            row[axis.total],
            row["mean_score"] * (1 if cell.record.minimised else -1),
            row[axis.arm],
        ),
    )


def _smallest(heads: Sequence[Head], name: str) -> int | None:
    return min((int(head[name]) for head in heads if head[name] is not None), default=None)


def _has_every_head(heads: Sequence[Head], cell: Cell, study: Study) -> bool:
    """Whether every listed head has a row; under ``heads: all``, whether any head was tried."""
    arms = (1,) if cell.record.algorithm == "one-head" else study.search.arms
    return len(heads) == len(arms)


def _status(heads: Sequence[Head], found: Sequence[Head], cell: Cell, study: Study) -> str:
    axis = study.search.sizes
    if not _has_every_head(heads, cell, study) or any(head["status"] == "open" for head in heads):
        return "open"
    doubtful = [head[axis.low] for head in heads if head["status"] == "inconsistent"]
    if not found:
        return "inconsistent" if doubtful else "censored"
    least = min(head[axis.total] for head in found)
    undercut = axis.has_rivals and any(low is None or low < least for low in doubtful)
    return "inconsistent" if undercut else "found"
