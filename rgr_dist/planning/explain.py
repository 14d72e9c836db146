"""Every decision behind a cell's thresholds, replayed from the stored runs alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import pandas as pd

from rgr_dist.faults import typed
from rgr_dist.planning.budgets import trained_steps
from rgr_dist.planning.listing import failures
from rgr_dist.planning.portfolio import check_heads, shown_arms, stored_search
from rgr_dist.planning.tables import finite
from rgr_dist.search.best_arm import rank
from rgr_dist.search.cell_state import CellState
from rgr_dist.store.store import Store
from rgr_dist.study.axis import SizeAxis
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import load_study

Rows = list[dict[str, Any]]


def explain_cell(
    study: Study, cell: Cell, store: Store, heads: Sequence[int] = ()
) -> tuple[dict[str, Rows], dict[str, Any]]:
    """The probes of a cell's search in order, what ended that of each setting, and the totals.

    ``stored_before`` counts the seeds of a probe whose runs had ended before the search had
    seen enough to ask for it: an earlier study or session left them, or a slot took them
    ahead of need. Rows say when a run ended, not for which study it was trained. ``unused_runs``
    are stored runs that no decision has needed: an idle worker trained them ahead, another study
    did, or they were read off a run at another step limit.

    Args:
        heads: list and count these alone; the whole search is replayed anyway.
    """
    search = stored_search(study, store)
    state = search.portfolio.state(cell.cell_id)
    check_heads(cell, state, heads)
    sizes = study.search.sizes
    runs = search.runs[search.runs["cell_id"] == cell.cell_id]
    ended = runs[runs["stop_reason"] != "failed"]
    stored = ended.assign(steps=trained_steps(ended)).set_index([sizes.arm, sizes.value, "seed"])
    decisions = _decision_rows(state, sizes, stored)
    of_arm, of_value = sizes.shown_arm, sizes.value
    own = search.expected[cell.cell_id]
    listed = heads or shown_arms(state)
    shown = [row for row in decisions if row[of_arm] in listed]
    counted = shown if heads else decisions
    test = state.test
    sign = "at most" if test.minimise else "at least"
    expected = f"expected {sizes.total} near {own.D_K:.0f}, {of_arm} near {own.h:.1f}"
    limit = f"{cell.training.max_steps:,} training steps"
    made = {"within": f"{limit}; rgr thresholds says what limits a threshold"}
    if cell.record.algorithm is not None:
        made = {"made_by": f"{cell.record.name} ({cell.record.section}), not trained"}
    facts = {
        "start": f"{expected}, from {own.source}",
        "test": f"mean of {test.seeds} seed{'s' * (test.seeds > 1)} {sign} {test.target}",
        **made,
        "finished": state.is_settled,
        "probes": len({(row[of_arm], row[of_value]) for row in counted}),
        "runs": sum(row["new_seeds"] for row in counted),
        "steps": sum(row["steps"] for row in counted),
        "seconds": sum(row["seconds"] for row in counted),
    }
    if state.is_settled and (unused := _unused(state, stored, heads)):
        facts["unused_runs"] = unused
    if changed := _changed_file(study, cell, store):
        facts["changed"] = changed
    if lost := failures(runs):
        facts["failures"] = lost
    ends = [_end_row(state, sizes, arm) for arm in listed]
    return {"decisions": shown, sizes.arms_key: ends}, facts


def explained(
    study: Study, sections: Mapping[str, Rows], facts: Mapping[str, Any]
) -> tuple[str, dict[str, Rows]]:
    """What ``explain_cell`` has found, for a reader: a sentence, and the lists to show.

    The question of an interval's probe is answered by its evidence, not by the verdict on its mean.

    Returns:
        The sentence on the best of the listed settings is empty if none has a threshold.
    """
    sizes, minimised = study.search.sizes, study.record.minimised
    asked = [
        row | {"verdict": None} if row["why"].startswith("interval:") else row
        for row in sections["decisions"]
    ]
    ends = sections[sizes.arms_key]
    shown = {"decisions": asked, sizes.arms_key: ends}
    found = [
        (rank(row[sizes.total], row["pass_mean"], row[sizes.shown_arm], minimised), row)
        for row in ends
        if row["status"] == "found"
    ]
    if not found or not study.record.finds_thresholds:
        return "", shown
    best = min(found, key=itemgetter(0))[1]
    means = [f"{best[key]:.4f}" for key in ("pass_mean", "fail_mean") if best[key] is not None]
    so_far = "" if facts["finished"] else "so far, "
    at = f"{sizes.total} = {best[sizes.total]} at {sizes.shown_arm} = {best[sizes.shown_arm]}"
    of = "mean" if len(means) == 1 else "means"
    return f"{so_far}smallest {at}: {best['because']} ({of} {', '.join(means)})", shown


def _changed_file(study: Study, cell: Cell, store: Store) -> str | None:
    """A message if stored runs of the study used its layer's file as it was before; or None."""
    table = store.read_study_table(study.name, "thresholds") if cell.layer else None
    if cell.layer is None or table is None:
        return None
    others = {*table["cell_id"]} - {one.cell_id for one in study.cells}
    configs = store.runs(others, ["config"])["config"] if others else ()
    layers = [json.loads(config)["cell"].get("layer") for config in configs]
    alike = [one for one in layers if one and one["name"] == cell.layer.name]
    before = sum(one["digest"] != cell.layer.digest for one in alike)
    if not before:
        return None
    file = study.files[cell.layer.digest].get("file", cell.model_name)
    return f"{file}: changed since {before} stored runs, which now count as another layer's"


def command_to_repeat(source: str, overrides: Sequence[str], cell: Cell, store: Store) -> str:
    """The command that runs a cell's search again from nothing, in a store of its own.

    It finds the same thresholds. Where the study's search did not start from the paper's
    constants, its first probes differ.

    Args:
        source, overrides: the study as the command line gave it.
    """
    study = load_study(source, overrides)
    item = study.written_sizes(cell)
    if study.has_budgets:  # the cell has its own limit already, or is not trained
        overrides = [*overrides, "search.retest_steps=null"]
    if len({one.model_name for one in study.cells}) > 1:
        model, target = json.dumps(study.written_model(cell)), study.target_of(cell)
        overrides = [*overrides, f"model={model}", f"search.target={target}"]
    graph = {} if cell.database is not None else {"graph": study.written(cell.graph)}
    parts = ("context", "training", *(("facts",) if cell.database is not None else ()))
    every_key = {part: dict(getattr(cell, part)) for part in parts}
    for own in ({}, graph, graph | every_key):
        chosen = [*overrides, f"cells={json.dumps([item | own])}"]
        try:
            if load_study(source, chosen).cells == (cell,):
                break
        except StudyError:
            continue
    engines = store.runs([cell.cell_id])["engine"].unique()
    names = {str(engine).partition(",")[0] for engine in engines}  # without its precision
    is_made = cell.record.task == "construction"  # which no --engine names
    engine = ["--engine", *names] if len(names) == 1 and not is_made else []
    settings = [word for setting in chosen for word in ("--set", setting)]
    return typed("rgr", "run", source, *settings, *engine, "--store", "repeat")


def _unused(state: CellState, stored: pd.DataFrame, heads: Sequence[int]) -> int:
    """The number of stored runs, of some head counts or of all, that no decision rests on."""
    used = {
        (one.arm, one.value, seed)
        for one in state.decisions
        for seed in range(one.first_seed, one.first_seed + one.n_seeds)
    }
    return sum(run not in used for run in stored.index if not heads or run[0] in heads)


def _decision_rows(state: CellState, sizes: SizeAxis, stored: pd.DataFrame) -> Rows:
    """One row for each probe, with the seeds that it took beyond those it had."""
    counted: set[tuple[int, int, int]] = set()
    known_until: pd.Timestamp | None = None
    rows: Rows = []
    for step, decision in enumerate(state.decisions):
        # The seeds behind a decision are consecutive, since its waves take them in order.
        probe = (decision.arm, decision.value)
        seeds = range(decision.first_seed, decision.first_seed + decision.n_seeds)
        new = [run for seed in seeds if (run := (*probe, seed)) not in counted]
        trained = stored.loc[[run for run in new if run in stored.index]]
        ended = trained["finished_at"]
        before = None if known_until is None else int((ended <= known_until).sum())
        rows.append(
            {
                "step": step,
                sizes.shown_arm: decision.arm,
                sizes.value: decision.value,
                sizes.total: sizes.width(*probe),
                "why": decision.reason,
                "verdict": decision.verdict,
                "mean_score": finite(decision.mean_score),
                "ran": decision.n_seeds,
                "spared": decision.seeds - decision.n_seeds,
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


NEXT = (
    "; next: more seeds of both (search.extra_seeds), "
    "or every width there with all seeds (search.mode: grid, its widths as D_K)"
)
"""What to try where a pass lies below a fail."""


def _end_row(state: CellState, sizes: SizeAxis, arm: int) -> dict[str, Any]:
    """Where a setting ended and what that rests on, with the means of its certificate."""
    result = state.result(arm)
    passed, failed = result.contradiction or (result.passed, result.failed)
    return {
        sizes.shown_arm: arm,
        "status": result.status,
        sizes.value: result.value,
        sizes.total: result.cost,
        sizes.low: result.cost_low,
        sizes.high: result.cost_high,
        "because": result.because + NEXT * (result.status == "inconsistent"),
        "pass_mean": finite(passed.mean_score) if passed else None,
        "fail_mean": finite(failed.mean_score) if failed else None,
        "confirmed": result.confirmed,
    }
