"""How often ``training.give_up_below`` ends a run wrongly, and what it saves, on stored runs.

    python benchmarks/given_up.py STUDY [--store results] [--below 0.8] [--seeds 10]

Every stored run of the study that came to its own end is trained again with the rule. ``wrong``
counts runs that it ended although they reach ``below`` by their limit, ``converged`` those that
would have converged, ``best_score`` is the best of those that it ended, had they gone on;
``steps_saved`` is a share of all the steps of these runs. Runs that the rule does not end are the
same to the bit, which is checked.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Annotated, Any

import typer

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.engines.choose import make_engine
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Run
from rgr_dist.study.from_yaml import load_study

Row = dict[str, Any]


def with_rule(config: str, below: float) -> tuple[str, int, float | None]:
    """How a stored run ends with the rule, after how many steps, and its score then."""
    keys = json.loads(config)
    keys.pop("protocol")
    keys["cell"]["training"]["give_up_below"] = below
    run = Run.model_validate(keys)
    (outcome,) = make_engine(model=run.cell.model).train([run])
    return outcome.stop_reason, outcome.steps, outcome.score


def main(
    study: Annotated[str, typer.Argument(help="a study that has been run without the rule")],
    how: How = Format.TABLE,
    store: Annotated[str, typer.Option(help="where its runs are")] = "results",
    below: Annotated[float, typer.Option(help="what give_up_below is")] = 0.8,
    seeds: Annotated[int, typer.Option(min=1, help="seeds of a probe, from 0 on")] = 10,
) -> None:
    """Train the stored runs of a study again with the rule."""
    cells = [cell.cell_id for cell in load_study(study).cells]
    runs = Store(store).runs(cells)
    is_own = (runs["trained_to"] == runs["max_steps"]) & (runs["seed"] < seeds)
    runs = runs[is_own & runs["stop_reason"].isin(["converged", "max_steps"])]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        ends = list(pool.map(with_rule, runs["config"], [below] * len(runs), chunksize=4))
    reasons, steps, scores = map(list, zip(*ends, strict=True))
    ended = runs.assign(now=reasons, after=steps, again=scores)
    given_up = ended[ended["now"] == "given_up"]
    others = ended[ended["now"] != "given_up"]
    assert (others["again"] == others["score"]).all(), "another engine trained these runs"
    row: Row = {
        "study": study,
        "below": below,
        "runs": len(runs),
        "given_up": len(given_up),
        "wrong": int((given_up["score"] >= below).sum()),
        "converged": int((given_up["stop_reason"] == "converged").sum()),
        "best_score": round(float(given_up["score"].max()), 4) if len(given_up) else None,
        "steps_saved": round(1 - ended["after"].sum() / ended["steps"].sum(), 3),
    }
    print_listing({"rows": [row]}, how)


if __name__ == "__main__":
    typer.run(main)
