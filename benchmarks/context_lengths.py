"""How long contexts must be for Algorithm 2; Theorem 8.1 assumes l >= C max(h, ln m).

    python benchmarks/context_lengths.py [--draws 3] [--format table|json|csv]

A row is what ``rgr construct --algorithm 2 --length`` prints: the share of sources with all their
pairs right, among those with and those without their target in the context. Each head that serves
other sources gives an item 1/l on average, so ``background``, (h - 1)/l, must stay below
tau = 1/2. ``other_logit`` is the standard deviation of such heads' logits over items, which the
proof assumes to be bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import typer

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How, drawn_cell
from rgr_dist.theory.construct import matchings_of
from rgr_dist.theory.draws import Constructor

SIZES = ((512, 256), (1024, 256))
LENGTHS = (16, 32, 64, 128, 256)
WIDTHS = (32, 128, 512)


def rows(draws: int) -> Iterator[dict[str, Any]]:
    """A row for each size, width and length."""
    for m, d_model in SIZES:
        for d_k in WIDTHS:
            spread = other_logit(m, d_model, d_k)
            for length in LENGTHS:
                cell = drawn_cell(m, d_model, None, context={"length": length})
                made = Constructor(cell, "2", n_contexts=50)
                row = made.measure(made.heads(), d_k, draws)
                kept = {name: row[name] for name in ("m", "d_model", "h", "d_k")}
                right = {name: row[name] for name in ("present_right", "absent_right", "mean_f1")}
                background = (row["h"] - 1) / length
                yield (
                    kept
                    | {"length": length, "background": background, "other_logit": spread}
                    | right
                )


def other_logit(m: int, d_model: int, d_k: int) -> float:
    """The standard deviation of a head's logits for sources of other heads, over all items."""
    made = Constructor(drawn_cell(m, d_model, None), "2")
    problem, built = made.build(0, made.heads(), d_k)
    own = matchings_of("2", problem.graph, made.heads())[0][:, 0]
    X, layer = problem.X, built.layer
    others = np.setdiff1d(np.arange(m), own)
    scores = (X[others] @ layer.W_Q[:, :d_k]) @ (X @ layer.W_K[:, :d_k]).T
    return float((scores / np.sqrt(d_k)).std(axis=1).mean())


def main(
    draws: Annotated[int, typer.Option(min=1, help="Draws of a row.")] = 3,
    how: How = Format.TABLE,
) -> None:
    """Print a row for each size, width and length."""
    print_listing({"rows": list(rows(draws))}, how)


if __name__ == "__main__":
    typer.run(main)
