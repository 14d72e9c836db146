"""Training steps that the thresholds of a study cost: adaptive search, exhaustive grid, Optuna.

    python benchmarks/search_cost.py [--out results] [--scratch FOLDER] [--format table|json|csv]

Exhaustive is every d_k of every head with every seed, up to D_K = 2 m' log2(m) / d_model. It is
trained in full on the measured cells; elsewhere a run is taken to be as short, in its step limit,
as on the measured cell where runs are the shortest, which is in the grid's favour.

Adaptive is all that ``rgr run`` spends in a store that holds nothing: certificates of every head
within the kept margin, App. A.2's intervals, and, on two slots, what is trained ahead of need. It
is replayed on the runs in the store; one that the store lacks lies between its neighbours.

Certificates are the least that shows the adaptive search's answers: the passing and the failing
probe of each head, with seeds spared as far as a verdict allows, and the best one's fresh seeds. A
search that was told every threshold would train these, then the probes of App. A.2's interval.

Optuna is TPE, asked for the smallest D_K that passes, within the exhaustive range. It gets the seed
test of the adaptive search, pays for no probe twice, and stops when it has touched the D_K* that it
is not told: the figure is the median over its own seeds. It leaves no certificate, and cannot know
that it has arrived.

``same_thresholds``: the adaptive search finds what the exhaustive grid finds, at every head within
the kept margin of each measured cell; Optuna, the same D_K*, with each of its seeds.

What the store lacks is trained first, minutes on two cores for the defaults. It goes into a store
of its own, ``--scratch``, and the next call finds it there: the study's own store is only read.
"""

from __future__ import annotations

import math
import statistics
from typing import Annotated, Any

import optuna
import pandas as pd
import typer
from rich.console import Console

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.paper import capacity_scale
from rgr_dist.planning.portfolio import open_portfolio, plan_cell, seed_test, stored_runs
from rgr_dist.running.run_study import run_study
from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.search.protocol import ArmResult, ProbeKey
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.search import Search
from rgr_dist.study.select import cell_named
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import load_study
from threshold_search.baselines import CountedRuns, adaptive, exhaustive, least_cost
from threshold_search.curves import RecordedCurve
from threshold_search.optuna_asked import smallest_by_optuna
from threshold_search.simulate import SimulatedRun, simulate

MEASURED = ("m=64,d_model=16", "m=64,d_model=32", "m=128,d_model=32")
SLOTS = 2
TRIALS = 400
"""Most trials that Optuna gets for a cell."""

Row = dict[str, Any]


def exhaustive_axes(study: Study, cell: Cell) -> dict[int, range]:
    """Every d_k of every head up to twice the law's width; heads that exceed it are left out."""
    largest = math.floor(2 * capacity_scale(cell.m, cell.d_model, cell.n_edges))
    heads = range(1, largest + 1) if study.search.heads == "all" else study.search.heads
    return {h: range(1, largest // h + 1) for h in heads if h <= largest}


def grid_study(study: Study, cell: Cell) -> Study:
    """The exhaustive grid of a cell as a study."""
    axes = exhaustive_axes(study, cell)
    search = Search(
        mode="grid",
        heads=tuple(axes),
        D_K=tuple(range(1, axes[min(axes)][-1] * min(axes) + 1)),
        target=study.search.target,
        seeds=study.search.seeds,
        intervals=False,
        extra_seeds=0,
    )
    name = f"exhaustive-{cell.name}".replace("=", "").replace(",", "-")
    return Study(name=name, cells=(cell,), search=search)


def scratch_store(study: Study, store: Store, root: str) -> Store:
    """A store of its own with every run of the study that is stored, to be added to."""
    scratch, stored = Store(root), store.runs(cell.cell_id for cell in study.cells)
    known = stored["run_id"].isin(stored_runs(study, scratch)["run_id"])
    copied = stored[~known & (stored["stop_reason"] != "failed")]
    scratch.append(copied.astype("object").where(copied.notna(), None).to_dict("records"))
    return scratch


def recorded(cell: Cell, runs: pd.DataFrame) -> RecordedCurve:
    """The stored runs of a cell as a curve to simulate on."""
    own = runs[(runs["cell_id"] == cell.cell_id) & (runs["stop_reason"] != "failed")]
    by_probe: dict[tuple[int, int], dict[int, SimulatedRun]] = {}
    for row in own.to_dict("records"):
        score = 0.0 if row["stop_reason"] == "diverged" else row["score"]
        run = SimulatedRun(score, row["seconds"], row["steps"])
        by_probe.setdefault((row["h"], row["d_k"]), {})[row["seed"]] = run
    return RecordedCurve(by_probe)


def agree(found: dict[int, ArmResult], truth: dict[int, ArmResult]) -> bool:
    """Whether a search found the thresholds of the grid at every head that it kept."""
    kept = {h: result.value for h, result in found.items() if result.status == "found"}
    same = all(h in truth and truth[h].value == d_k for h, d_k in kept.items())
    return same and least_cost(found) == least_cost(truth)


def cell_rows(study: Study, cell: Cell, curve: RecordedCurve, seeds: int) -> list[Row]:
    """The three ways on one cell whose exhaustive grid is measured, one run at a time."""
    test, axes = seed_test(study), exhaustive_axes(study, cell)
    name = f"{study.name} {cell.name}"
    everything, asked = CountedRuns(curve.run), CountedRuns(curve.run)
    truth = exhaustive(axes, test, everything)
    found = adaptive(plan_cell(cell, study.search), test, asked)
    goal = least_cost(truth)
    rows = [
        _row(name, "exhaustive", everything.steps, everything.steps, True),
        _row(name, "adaptive", asked.steps, everything.steps, agree(found, truth)),
    ]
    if goal is not None:
        tries = [
            smallest_by_optuna(axes, test, CountedRuns(curve.run), goal, TRIALS, seed)
            for seed in range(seeds)
        ]
        steps = round(statistics.median(result.steps for result in tries))
        same = all(goal == result.cost for result in tries)
        rows.append(_row(name, "optuna", steps, everything.steps, same))
    return rows


def study_rows(
    study: Study, curves: dict[str, RecordedCurve], measured: dict[str, Row], same: bool
) -> list[Row]:
    """Adaptive and exhaustive over the whole study.

    Args:
        measured: the exhaustive row of each measured cell, by cell_id.
    """
    shares = {
        cell.cell_id: measured[cell.cell_id]["training_steps"] / _step_limit(study, cell)
        for cell in study.cells
        if cell.cell_id in measured
    }
    steps = sum(
        _step_limit(study, cell) * shares.get(cell.cell_id, min(shares.values()))
        for cell in study.cells
    )
    portfolio = open_portfolio(study, no_runs())
    done = simulate(portfolio, lambda cell, key, seed: curves[cell].run(key, seed), SLOTS)
    least = {cell: certificate_steps(portfolio, cell, curves[cell]) for cell in portfolio.plans}
    return [
        _row(study.name, "exhaustive", round(steps), round(steps), True),
        _row(study.name, "adaptive", done.steps, round(steps), same),
        _row(study.name, "certificates", sum(least.values()), round(steps), True),
        *(
            _row(row["study"], "certificates", least[cell], row["training_steps"], True)
            for cell, row in measured.items()
        ),
    ]


def certificate_steps(portfolio: Portfolio, cell: str, curve: RecordedCurve) -> int:
    """Training steps of a finished cell's certificates and of its best head's fresh seeds."""
    state, runs = portfolio.state(cell), CountedRuns(curve.run)
    for arm in portfolio.plans[cell].axes:
        result = state.result(arm)
        for probe in (result.passed, result.failed):
            if probe is not None:
                runs.verdict_scores(ProbeKey(arm, probe.value), portfolio.test)
    for key in state.confirmed:
        for seed in state.scores(key, "fresh seeds"):
            runs.score(key, seed)
    return runs.steps


def _step_limit(study: Study, cell: Cell) -> int:
    """Steps of the exhaustive grid of a cell if no run stopped early."""
    probes = sum(len(axis) for axis in exhaustive_axes(study, cell).values())
    return probes * study.search.seeds * cell.training.max_steps


def no_runs() -> pd.DataFrame:
    """What a store without runs gives."""
    return pd.DataFrame(columns=["cell_id", "h", "d_k", "seed", "score", "stop_reason"])


def _row(study: str, strategy: str, steps: int, whole: int, same: bool) -> Row:
    return {
        "study": study,
        "strategy": strategy,
        "training_steps": steps,
        "share_of_exhaustive": round(steps / whole, 4),
        "same_thresholds": same,
    }


def main(
    how: How = Format.TABLE,
    out: Annotated[str, typer.Option(help="store of the study's runs, only read")] = "results",
    scratch: Annotated[
        str | None, typer.Option(help="store of what that lacks; OUT-search-cost by default")
    ] = None,
    study: Annotated[str, typer.Option(help="a shipped study, or a YAML file")] = "base-grid",
    measure: Annotated[list[str] | None, typer.Option(help="cells to train in full")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="seeds of Optuna's sampler")] = 31,
) -> None:
    """Count the training steps of every way to the same thresholds."""
    messages = Console(stderr=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    resolved = load_study(study)
    store = scratch_store(resolved, Store(out), scratch or f"{out.rstrip('/')}-search-cost")
    cells = [cell_named(resolved, name) for name in measure or MEASURED]
    for part in (resolved, *(grid_study(resolved, cell) for cell in cells)):
        messages.print(f"training what {part.name} lacks")
        run_study(part, store)
    runs = stored_runs(resolved, store)
    curves = {cell.cell_id: recorded(cell, runs) for cell in resolved.cells}
    rows, measured = [], {}
    for cell in cells:
        messages.print(f"counting on {cell.name}")
        rows += cell_rows(resolved, cell, curves[cell.cell_id], seeds)
        measured[cell.cell_id] = next(
            row for row in rows if row["strategy"] == "exhaustive" and cell.name in row["study"]
        )
    same = all(row["same_thresholds"] for row in rows if row["strategy"] == "adaptive")
    rows += study_rows(resolved, curves, measured, same)
    print_listing({"rows": rows}, how)


if __name__ == "__main__":
    typer.run(main)
