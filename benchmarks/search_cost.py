"""Training steps that the thresholds of a study cost: adaptive search, exhaustive grid, Optuna.

    python benchmarks/search_cost.py [--store results] [--scratch FOLDER] [--format table|json]

Exhaustive is every d_k of every head count with every seed, up to D_K = 2 m' log2(m) / d_model. It
is trained in full on the measured cells; elsewhere a run is taken to be as short, in its step
limit, as on the measured cell where runs are the shortest, which is in the grid's favour.

Adaptive is what the search asks for from an empty store, one probe at a time: the probes that close
in on every head count near the best, twenty fresh seeds of the best, and its interval.

Certificates are the least that shows its answers: of each head count the passing and the failing
probe, with seeds spared as far as a verdict allows, and the best one's fresh seeds. A search that
was told every threshold would train these, then the probes of the interval.

Optuna is TPE, asked for the smallest D_K that passes, within the exhaustive range. It gets the seed
test of the adaptive search, pays for no probe twice, and stops when it has touched the D_K* that it
is not told: the figure is the median over its own seeds. It leaves no certificate, and cannot know
that it has arrived.

``same_thresholds``: the adaptive search finds the least D_K that the exhaustive grid finds on each
measured cell, before fresh seeds refute any; Optuna, the same with each of its seeds.

What the store lacks is trained first, minutes on two cores for the defaults, into ``--scratch``;
the study's own store is only read.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import optuna
import typer
from rich.console import Console

from rgr_dist.paper import capacity_scale
from rgr_dist.planning.search_of import plan_cell, stored_runs
from rgr_dist.running.run_study import run_study
from rgr_dist.search.threshold import Key, Plan, Search
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.search import Search as Keys
from rgr_dist.study.select import cell_named
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import load_study
from threshold_search.rules import (
    CountedRuns,
    Found,
    Listing,
    exhaustive,
    listed,
    search_to_its_end,
)

MEASURED = ("64,16", "64,32", "128,32")
TRIALS = 400
"""Most trials that Optuna gets for a cell."""
COLUMNS = ("study", "strategy", "training_steps", "share_of_exhaustive", "same_thresholds")
Row = dict[str, Any]


def grid_plan(plan: Plan, cell: Cell) -> Plan:
    """The exhaustive range of a cell: every head count and d_k up to twice the law's width."""
    largest = math.floor(2 * capacity_scale(cell.m, cell.d_model, cell.n_edges))
    return replace(plan, axes={h: range(1, largest // h + 1) for h in plan.axes if h <= largest})


def grid_study(study: Study, cell: Cell, plan: Plan) -> Study:
    """That range as a study of its own."""
    largest = plan.axes[min(plan.axes)][-1] * min(plan.axes)
    search = Keys(
        mode="grid",
        heads=tuple(plan.axes),
        D_K=tuple(range(1, largest + 1)),
        target=study.search.target,
        seeds=study.search.seeds,
    )
    return Study(name=f"exhaustive-{cell.m}-{cell.d_model}", cells=(cell,), search=search)


def scratch_store(study: Study, store: Store, root: str) -> Store:
    """A store of its own with every run of the study that is stored, to be added to."""
    scratch, stored = Store(root), store.runs(cell.cell_id for cell in study.cells)
    known = stored["run_id"].isin(stored_runs(study, scratch)["run_id"])
    copied = stored[~known & (stored["stop_reason"] != "failed")]
    scratch.append(copied.astype("object").where(copied.notna(), None).to_dict("records"))
    return scratch


def recorded(cell: Cell, store: Store) -> CountedRuns:
    """The stored runs of a cell, to be asked for and counted."""
    runs = store.runs([cell.cell_id])
    runs = runs[runs["stop_reason"] != "failed"]
    worst = runs["score"].where(runs["stop_reason"] != "diverged", 0.0)
    keys = zip(map(Key, runs["h"], runs["d_k"]), runs["seed"], strict=True)
    known = dict(zip(keys, zip(worst, runs["steps"], strict=True), strict=True))
    return CountedRuns(lambda key, seed: known[key, seed])


def certificate_steps(search: Search, runs: CountedRuns) -> int:
    """Training steps of a finished cell's certificates and of its best head's fresh seeds."""
    for arm in search.plan.axes:
        result = search.result(arm)
        for probe in (result.passed, result.failed):
            if probe is not None:
                runs.passes(Key(arm, probe.value), search.plan.test)
    for key in search.confirmed:
        for seed in search.scores(key, "fresh seeds"):
            runs.score(key, seed)
    return runs.steps


def optuna_steps(plan: Plan, runs: CountedRuns, goal: int, seed: int) -> tuple[int, bool]:
    """Training steps until TPE first passes at a D_K no larger than the goal; whether it did.

    A trial chooses a head count and a D_K, within which the largest d_k is tried. It is scored by
    its D_K if that passes, and above every D_K if not.
    """
    sampler = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    largest = max(h * axis[-1] for h, axis in plan.axes.items())
    space = {
        "h": optuna.distributions.CategoricalDistribution(list(plan.axes)),
        "D_K": optuna.distributions.IntDistribution(1, largest, log=True),
    }
    for _ in range(TRIALS):
        trial = sampler.ask(space)
        h, d_k = trial.params["h"], trial.params["D_K"] // trial.params["h"]
        passed = d_k > 0 and d_k in plan.axes[h] and runs.passes(Key(h, d_k), plan.test)
        sampler.tell(trial, h * d_k if passed else 2.0 * largest)
        if passed and h * d_k <= goal:
            return runs.steps, True
    return runs.steps, False


def cell_rows(study: Study, cell: Cell, store: Store, seeds: int) -> list[Row]:
    """The four ways on one cell whose exhaustive grid is measured, one run at a time."""
    plan = plan_cell(cell, study)
    grid, name = grid_plan(plan, cell), f"{study.name} ({cell.m}, {cell.d_model})"
    every = recorded(cell, store)
    truth = _cost(exhaustive(grid, every))
    asked = recorded(cell, store)
    search = search_to_its_end(plan, asked)
    bare = search_to_its_end(replace(plan, confirm_seeds=0, intervals=False), recorded(cell, store))
    least = certificate_steps(search, recorded(cell, store))
    rows = [
        _row(name, "exhaustive", every.steps, every.steps, True),
        _row(name, "adaptive", asked.steps, every.steps, _cost(Found(bare.best())) == truth),
        _row(name, "certificates", least, every.steps, True),
    ]
    if truth is not None:
        tries = [optuna_steps(grid, recorded(cell, store), truth, seed) for seed in range(seeds)]
        steps = round(statistics.median(steps for steps, _ in tries))
        rows.append(_row(name, "optuna", steps, every.steps, all(same for _, same in tries)))
    return rows


def study_rows(study: Study, store: Store, measured: Mapping[str, Row], same: bool) -> list[Row]:
    """Adaptive, exhaustive and certificates over the whole study.

    Args:
        measured: the exhaustive row of each measured cell, by cell_id.
    """
    limits = {cell.cell_id: _step_limit(study, cell) for cell in study.cells}
    shares = {cell: row["training_steps"] / limits[cell] for cell, row in measured.items()}
    whole = round(sum(limits[c] * shares.get(c, min(shares.values())) for c in limits))
    asked, least = 0, 0
    for cell in study.cells:
        runs = recorded(cell, store)
        search = search_to_its_end(plan_cell(cell, study), runs)
        asked += runs.steps
        least += certificate_steps(search, recorded(cell, store))
    return [
        _row(study.name, "exhaustive", whole, whole, True),
        _row(study.name, "adaptive", asked, whole, same),
        _row(study.name, "certificates", least, whole, True),
    ]


def _step_limit(study: Study, cell: Cell) -> int:
    """Steps of the exhaustive grid of a cell if no run stopped early."""
    probes = sum(len(axis) for axis in grid_plan(plan_cell(cell, study), cell).axes.values())
    return probes * study.search.seeds * cell.training.max_steps


def _cost(found: Found) -> int | None:
    return found.winner and found.winner.arm * found.winner.value


def _row(study: str, strategy: str, steps: int, whole: int, same: bool) -> Row:
    return dict(zip(COLUMNS, (study, strategy, steps, round(steps / whole, 4), same), strict=True))


def main(
    store: Annotated[str, typer.Option(help="of the study's runs, only read")] = "results",
    scratch: Annotated[
        str | None, typer.Option(help="store of what that lacks; STORE-search-cost by default")
    ] = None,
    study: Annotated[str, typer.Option(help="a shipped study, or a YAML file")] = "base-grid",
    measure: Annotated[list[str] | None, typer.Option(help="cells to train in full")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="seeds of Optuna's sampler")] = 31,
    how: Annotated[Listing, typer.Option("--format")] = "table",
) -> None:
    """Count the training steps of every way to the same thresholds."""
    messages = Console(stderr=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    resolved = load_study(study)
    kept = scratch_store(resolved, Store(store), scratch or f"{store.rstrip('/')}-search-cost")
    cells = [cell_named(resolved, name) for name in measure or MEASURED]
    grids = [
        grid_study(resolved, cell, grid_plan(plan_cell(cell, resolved), cell)) for cell in cells
    ]
    for part in (resolved, *grids):
        messages.print(f"training what {part.name} lacks")
        run_study(part, kept)
    rows, measured = [], {}
    for cell in cells:
        messages.print(f"counting on ({cell.m}, {cell.d_model})")
        own = cell_rows(resolved, cell, kept, seeds)
        measured[cell.cell_id] = own[0]
        rows += own
    same = all(row["same_thresholds"] for row in rows if row["strategy"] == "adaptive")
    print(listed(rows + study_rows(resolved, kept, measured, same), how, COLUMNS))


if __name__ == "__main__":
    typer.run(main)
