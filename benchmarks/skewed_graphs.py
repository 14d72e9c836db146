"""Graphs with one large in-degree: what training finds, and what Algorithm 5 needs.

    python benchmarks/skewed_graphs.py [--out results] [--format table|json|csv]

Each graph is a permutation of m items, except that delta items share one target: m' = m, and only
the largest degree grows. Lemma B.8 packs it into m'/d_model + delta matchings, so Theorem B.9's D_K
grows with delta; Corollary B.10 manages with m'/d_model heads only up to delta = m'/d_model
(eq. 33). ``D_K`` and ``h_star`` are those of training, as ``rgr run`` finds them over ten seeds.
``heads_of_5`` is the number of heads by Lemma B.8, and ``f1_of_5`` what they reach over ten draws
as d_k grows without bound, each at its best tau; ``heads_of_B10`` is the number by an equitable
colouring. Each delta has the same edges at every seed.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer
import yaml

import rgr_dist as rgr
from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How, drawn_cell
from rgr_dist.theory.draws import Constructor

SIZES = ((128, 32), (256, 64))
DELTAS = (1, 4, 16, 64)
DRAWS = 10


def hub(m: int, delta: int) -> list[tuple[int, int]]:
    """The edges: items 0 to delta - 1 go to the target of item 0, each other to one of its own."""
    targets = np.random.default_rng(0).permutation(m)
    targets[:delta] = targets[0]
    return list(enumerate(targets.tolist()))


def algorithm_5(m: int, d_model: int, graph: Path) -> dict[str, Any]:
    """The heads that Algorithm 5 needs for a graph, and what they reach."""
    made = Constructor(drawn_cell(m, d_model, str(graph)), "5")
    limit = made.limit.measure(made.heads(), 1, DRAWS)
    heads = made.promised_heads()
    return {
        "heads_of_5": heads["promised_heads"],
        "heads_of_B10": heads["equitable_heads"],
        "f1_of_5": limit["mean_f1"],
    }


def main(
    out: Annotated[str, typer.Option(help="The store of the trained runs.")] = "results",
    how: How = Format.TABLE,
) -> None:
    """Train and construct every graph, and print a row for each."""
    with TemporaryDirectory() as folder:
        files = {(m, delta): Path(folder, f"{m}-{delta}.csv") for m, _ in SIZES for delta in DELTAS}
        for (m, delta), file in files.items():
            file.write_text("".join(f"{i},{j}\n" for i, j in hub(m, delta)))
        made = {
            (m, d, delta): algorithm_5(m, d, files[m, delta]) for m, d in SIZES for delta in DELTAS
        }
        study = {
            "name": "skewed",
            "graph": {"family": "edges"},
            "cells": [
                {"m": m, "d_model": d, "graph": {"file": files[m, delta].name}}
                for m, d, delta in made
            ],
            "search": {"heads": [1, 2, 4, 8, 16], "intervals": "best"},
        }
        path = Path(folder, "skewed.yaml")
        path.write_text(yaml.safe_dump(study))
        best = rgr.run(path, out=out, show=False).best()
    print_listing({"rows": _rows(best.to_dict("records"), made)}, how)


def _rows(
    best: list[dict[Any, Any]], made: dict[tuple[int, int, int], Any]
) -> list[dict[str, Any]]:
    """A row for each graph; the cells of a study are in the order in which it lists them."""
    kept = ("D_K", "D_K_low", "D_K_high", "h_star")
    return [
        {
            "m": m,
            "d_model": d_model,
            "delta": delta,
            **{name: int(row[name]) for name in kept},
            **found,
        }
        for row, ((m, d_model, delta), found) in zip(best, made.items(), strict=True)
    ]


if __name__ == "__main__":
    typer.run(main)
