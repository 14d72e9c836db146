"""Every decision behind a cell's thresholds, replayed from the stored runs alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rgr_dist.planning.budgets import trained_steps
from rgr_dist.planning.listing import failures
from rgr_dist.planning.search_of import stored_search
from rgr_dist.planning.tables import finite, threshold_rows
from rgr_dist.search.threshold import Search
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

Rows = list[dict[str, Any]]

ENDS = ("h", "status", "d_k", "D_K", "D_K_low", "D_K_high", "because", "fails_above", "confirmed")
"""What is told of where the search of a head count ended."""


def explain_cell(
    study: Study, cell: Cell, store: Store, heads: Sequence[int] = ()
) -> tuple[dict[str, Rows], dict[str, Any]]:
    """The probes of a cell's search in order, what ended that of each head count, and the totals.

    Args:
        heads: list these alone; the whole search is replayed anyway.

    Returns:
        ``decisions``: ``step, h, d_k, D_K, why, verdict, mean_score, ran, spared, evidence``, and
        ``heads``: where each head count ended; then facts of the search as a whole.
    """
    search = stored_search(study, store)
    known = search.portfolio.search(cell.cell_id)
    runs = search.runs[search.runs["cell_id"] == cell.cell_id]
    h, D_K = known.plan.guess
    test = known.plan.test
    facts = {
        "start": f"D_K near {D_K:.0f} and h near {h:.1f} are expected",
        "test": f"mean of {test.seeds} seeds {'at most' if test.minimise else 'at least'} "
        f"{test.target}",
        "finished": known.is_done and not known.open,
        "runs": len(runs),
        "steps": int(trained_steps(runs).sum()),
    }
    if lost := failures(runs):
        facts["failures"] = lost
    if (best := known.best()) and study.record.finds == "D_K":
        result = known.result(best.arm)
        facts["found"] = (
            f"{'' if facts['finished'] else 'so far, '}smallest D_K = {best.arm * best.value} "
            f"at h={best.arm}, d_k={best.value}: {result.why}"
        )
    listed = heads or list(known.plan.axes)
    decisions = [row for row in _decision_rows(known) if row["h"] in listed]
    table = threshold_rows(study, search.portfolio)
    own = [row for row in table if row["cell_id"] == cell.cell_id and row["h"] in listed]
    ends = [{key: row[key] for key in ENDS} for row in own]
    return {"decisions": decisions, "heads": ends}, facts


def _decision_rows(search: Search) -> Rows:
    """One row for each probe."""
    rows = []
    for step, (need, verdict, scores) in enumerate(search.decisions):
        test = search.test_of(need.want)
        rows.append(
            {
                "step": step,
                "h": need.key.arm,
                "d_k": need.key.value,
                "D_K": need.key.arm * need.key.value,
                "why": need.why,
                "verdict": verdict,
                "mean_score": finite(test.mean(scores)) if scores else None,
                "ran": len(scores),
                "spared": test.seeds - len(scores),
                "evidence": test.explain(scores) if scores else "a run of this probe failed",
            }
        )
    return rows
