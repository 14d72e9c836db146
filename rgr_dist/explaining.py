"""Every decision behind a cell's thresholds, replayed from the stored runs alone."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

import pandas as pd

from rgr_dist.replay import open_portfolio
from rgr_dist.study import Cell, Study
from rgr_dist.study_faults import StudyError
from rgr_dist.study_file import load_study
from search.cell_state import CellState
from search.protocol import HeadResult, ProbeResult

Rows = list[dict[str, Any]]


def explain_cell(
    study: Study, cell: Cell, heads: Sequence[int], runs: pd.DataFrame
) -> tuple[dict[str, Rows], dict[str, Any]]:
    """The probes of a cell's search in order, what bounds each head, and the totals.

    ``stored_before`` counts the seeds of a probe whose runs had ended before the search had
    seen enough to ask for it: an earlier study or session left them, or a slot took them
    ahead of need. Rows say when a run ended, not for which study it was trained.

    Args:
        heads: list these alone; the whole search is replayed all the same.
        runs: the store's runs.
    """
    state = open_portfolio(study, runs).state(cell.cell_id)
    decisions = _decision_rows(state, runs[runs["cell_id"] == cell.cell_id])
    facts = {
        "start": f"D_K near {state.plan.guess_D_K:.0f}, heads nearest to {state.plan.guess_h:.1f}",
        "test": f"mean of {state.test.seeds} seeds at least {state.test.target}",
        "finished": state.is_done,
        "probes": len({(row["h"], row["d_k"]) for row in decisions}),
        "runs": sum(row["new_seeds"] for row in decisions),
        "steps": sum(row["steps"] for row in decisions),
        "seconds": sum(row["seconds"] for row in decisions),
    }
    bounds = [_head_row(state, h) for h in heads]
    shown = [row for row in decisions if row["h"] in heads]
    return {"decisions": shown, "heads": bounds}, facts


def command_to_repeat(source: str, overrides: Sequence[str], cell: Cell, runs: pd.DataFrame) -> str:
    """The command that runs a cell's search again from nothing, in a store of its own.

    Args:
        source, overrides: the study as the command line had it.
    """
    item: dict[str, Any] = {"m": cell.m, "d_model": cell.d_model}
    for own in ({}, {part: getattr(cell, part).model_dump() for part in ("context", "training")}):
        chosen = [*overrides, f"cells={json.dumps([item | own])}"]
        try:
            if load_study(source, chosen).cells == (cell,):
                break
        except StudyError:
            continue
    engines = runs.loc[runs["cell_id"] == cell.cell_id, "engine"].unique()
    engine = ["--engine", str(engines[0])] if len(engines) == 1 else []
    settings = [word for setting in chosen for word in ("--set", setting)]
    return shlex.join(["rgr", "run", source, *settings, *engine, "--out", "repeat"])


def _decision_rows(state: CellState, runs: pd.DataFrame) -> Rows:
    """One row for each probe, with the seeds that it took beyond those it had."""
    stored = runs[runs["stop_reason"] != "failed"].set_index(["h", "d_k", "seed"])
    counted: set[tuple[int, int, int]] = set()
    known_until: pd.Timestamp | None = None
    rows: Rows = []
    for step, decision in enumerate(state.decisions):
        seeds = range(decision.n_seeds)
        places = [(decision.h, decision.d_k, seed) for seed in seeds]
        new = [place for place in places if place not in counted]
        trained = stored.loc[[place for place in new if place in stored.index]]
        ended = trained["finished_at"]
        before = None if known_until is None else int((ended <= known_until).sum())
        rows.append(
            {
                "step": step,
                "h": decision.h,
                "d_k": decision.d_k,
                "D_K": decision.h * decision.d_k,
                "why": decision.reason,
                "verdict": decision.verdict,
                "mean_score": decision.mean_score,
                "ran": decision.n_seeds,
                "spared": state.test.seeds - decision.n_seeds,
                "seeds": list(seeds),
                "evidence": decision.evidence,
                "new_seeds": len(new),
                "stored_before": before,
                "steps": int(trained["steps"].sum()),
                "seconds": float(trained["seconds"].sum()),
                "ended": ended.max().isoformat(timespec="seconds") if len(trained) else None,
            }
        )
        counted.update(new)
        if len(trained):
            known_until = ended.max() if known_until is None else max(known_until, ended.max())
    return rows


def _head_row(state: CellState, h: int) -> dict[str, Any]:
    """Where a head ended, and what bounds it."""
    result = state.result(h)
    return {
        "h": h,
        "status": result.status,
        "d_k": result.d_k,
        "D_K": None if result.d_k is None else h * result.d_k,
        "D_K_low": result.D_K_low,
        "D_K_high": result.D_K_high,
        "bound": _bound(state, result),
    }


def _bound(state: CellState, result: HeadResult) -> str:
    h, bracket, margin = result.h, state.brackets[result.h], state.margin_D_K
    if result.contradiction is not None:
        passed, failed = result.contradiction
        return f"{_shown(passed)} passes, yet {_shown(failed)} fails"
    if result.status == "found":
        below = f"{_shown(result.failed)} fails" if result.failed else "nothing lies below"
        return f"{_shown(result.passed)} passes, {below}"
    if result.status == "censored":
        return f"{_shown(result.failed)} fails, and no larger width is allowed"
    if result.status == "pruned" and margin is not None:
        kept = f"D_K up to {margin} is kept: {state.plan.keep_within:.0%} above the least that"
        kept += f" passes, {state.best_D_K}"
        if bracket.high is not None and h * bracket.high > margin:
            return f"passes at D_K = {h * bracket.high}; {kept}"
        if bracket.low:
            return (
                f"fails up to D_K = {h * bracket.low}; the next is {h * (bracket.low + 1)}; {kept}"
            )
        return f"needs D_K = {h} at the least; {kept}"
    if h in state.stuck:
        return "a run of this head failed; run the study again to retry it"
    return f"above d_k = {bracket.low}" + (f", at most {bracket.high}" if bracket.high else "")


def _shown(probe: ProbeResult | None) -> str:
    if probe is None:
        return "nothing"
    return f"d_k = {probe.d_k} (mean {probe.mean_score:.4f} of {probe.n_seeds} seeds)"
