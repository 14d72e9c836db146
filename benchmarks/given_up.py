"""How often ``training.give_up_below`` ends a run wrongly, and what it saves, on stored runs.

    python benchmarks/given_up.py STUDY [--store results] [--below 0.8] [--seeds 10]

Stored runs of the study, on so many seeds, that converged or reached their own step limit are
trained again, without the rule and with it. ``wrong`` counts runs that the rule ended although they
reach ``below`` by their limit, ``converged`` those that would have converged; ``best_score`` is the
best that an ended run would have reached. ``steps_saved`` and ``seconds_saved`` are shares of what
all these runs take without the rule; with it, checks cost more: they are scored in full until one
reaches ``below``. A run that the rule does not end must be the same to the bit.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Annotated, Any

import typer

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.engines.api import Outcome
from rgr_dist.engines.choose import make_engine
from rgr_dist.store.store import Store
from rgr_dist.study.run import Run
from rgr_dist.study.study_file import load_study

Row = dict[str, Any]


def both(config: str, below: float) -> tuple[Outcome, Outcome]:
    """How a run ends without the rule and with it."""
    keys = json.loads(config)
    keys.pop("protocol")
    outcomes = []
    for bar in (None, below):
        keys["cell"]["training"]["give_up_below"] = bar
        run = Run.model_validate(keys)
        outcomes += make_engine(model=run.cell.model).train([run])
    return outcomes[0], outcomes[1]


def saved(ends: list[tuple[Outcome, Outcome]], name: str) -> float:
    """Share of the steps or seconds that the rule saves."""
    without, with_rule = (sum(getattr(pair[i], name) for pair in ends) for i in (0, 1))
    return float(round(1 - with_rule / without, 3))


def main(
    study: Annotated[str, typer.Argument(help="a study that has been run without the rule")],
    how: How = Format.TABLE,
    store: Annotated[str, typer.Option(help="where its runs are")] = "results",
    below: Annotated[float, typer.Option(help="what give_up_below is")] = 0.8,
    seeds: Annotated[int, typer.Option(min=1, help="seeds of a probe, from 0 on")] = 10,
) -> None:
    """Train the stored runs of a study again without the rule and with it."""
    cells = [cell.cell_id for cell in load_study(study).cells]
    runs = Store(store).runs(cells)
    is_own = (runs["trained_to"] == runs["max_steps"]) & (runs["seed"] < seeds)
    runs = runs[is_own & runs["stop_reason"].isin(["converged", "max_steps"])]
    if runs.empty:
        raise SystemExit(f"--store {store}: no such run of {study}; rgr run {study} trains them")
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        ends = list(pool.map(both, runs["config"], [below] * len(runs), chunksize=4))
    given_up = [one for one, other in ends if other.stop_reason == "given_up"]
    assert all(one.score == other.score for one, other in ends if other.stop_reason != "given_up")
    scores = [one.score for one in given_up if one.score is not None]
    row: Row = {
        "study": study,
        "seeds": seeds,
        "below": below,
        "runs": len(ends),
        "given_up": len(given_up),
        "wrong": sum(score >= below for score in scores),
        "converged": sum(one.stop_reason == "converged" for one in given_up),
        "best_score": round(max(scores), 4) if scores else None,
        "steps_saved": saved(ends, "steps"),
        "seconds_saved": saved(ends, "seconds"),
    }
    print_listing({"rows": [row]}, how)


if __name__ == "__main__":
    typer.run(main)
