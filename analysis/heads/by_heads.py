"""The threshold of every head count, next to the best of its cell.

Columns are named for the study's axis, as in ``thresholds.best_heads``.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from rgr_dist.analysis import wording
from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.records import integer, parse_certificate
from rgr_dist.analysis.rows import Row, named, rows_of
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.analysis.thresholds.certificates import certificate_words
from rgr_dist.analysis.thresholds.rows import thresholds_of


@per_study
def by_heads_of(results: StudyResults) -> pd.DataFrame:
    """The threshold of every head count of every cell, in the study's order.

    A head without a threshold, such as a pruned or censored one, has a lower bound ``at_least`` if
    any is known. In a study with ``keep_within: none``, no head is pruned.

    Returns:
        ``cell_id, m, d_model, degree, max_steps, h, status, D_K``; ``D_K_fails``, the largest D_K
        known to fail at these heads, the other side of the certificate; ``D_K_low, D_K_high``, the
        ends of App. A.2; all three null unless found; ``at_least``, null where found; ``is_best``;
        ``times_best``, D_K or its bound over the cell's D_K*; ``arrow``, whether the figure draws
        it as a bound.
    """
    study, best = results.study, best_of(results)
    axis = study.search.sizes
    stars = best.set_index("cell_id")[[axis.total, axis.best_arm]].astype("object")
    limits = {cell.cell_id: cell.training.max_steps for cell in study.cells}
    fails = f"{axis.total}_fails"
    rows = []
    for row in thresholds_of(results).astype("object").to_dict("records"):
        if int(row[axis.arm]) not in study.search.arms:
            continue
        arm, width = int(row[axis.arm]), integer(row[axis.total])
        star, best_arm = (integer(value) for value in stars.loc[row["cell_id"]])
        failed = (parse_certificate(row.get("certificate")) or {}).get("fail")
        is_found, low = width is not None, integer(row[axis.low])
        shown = width if is_found else low
        names = ("cell_id", "m", "d_model", "degree", "status", *dict(axis.fixed), axis.arm)
        rows.append(
            {name: row[name] for name in names}
            | {
                "max_steps": limits[row["cell_id"]],
                axis.total: width,
                fails: axis.width(arm, failed[axis.value]) if failed and is_found else None,
                axis.low: low if is_found else None,
                axis.high: integer(row[axis.high]) if is_found else None,
                "at_least": None if is_found else low,
                "is_best": star is not None and arm == best_arm,
                "times_best": shown / star if shown is not None and star else None,
                "arrow": not is_found and low is not None,
            }
        )
    sizes = ("m", "d_model", "degree", "max_steps", *dict(axis.fixed), axis.arm)
    widths = (axis.total, fails, axis.low, axis.high, "at_least")
    kinds: dict[str, Any] = {
        "cell_id": "object",
        **dict.fromkeys(sizes, "Int64"),
        "status": "object",
        **dict.fromkeys(widths, "Int64"),
        "is_best": "bool",
        "times_best": "float64",
        "arrow": "bool",
    }
    return pd.DataFrame(rows, columns=list(kinds), dtype="object").astype(kinds)


@per_study
def heads_of(results: StudyResults) -> list[Row]:
    """The rows of ``by_heads_of`` by size, with the rest of their threshold, names and words."""
    axis = results.study.search.sizes
    kept = ("graph", "n_edges", "mean_score", "n_seeds", axis.value, "certificate", "confirmed")
    stored = {(row["cell_id"], row[axis.arm]): row for row in rows_of(thresholds_of(results))}
    rows = []
    for row in named(results, by_heads_of(results)):
        threshold = stored[row["cell_id"], row[axis.arm]]
        row |= {name: threshold[name] for name in kept if name in threshold}
        ends = threshold[axis.low], threshold[axis.high]
        row["width_words"] = wording.with_range(row[axis.total], *ends)
        row["certificate_words"] = certificate_words(row["certificate"], results.study)
        name = f"{row['full']}, {axis.shown_arm} = {row[axis.arm]}"
        row["text"] = f"{name}\n{axis.total}: {row['width_words']}, {row['status']}"
        rows.append(row)
    return rows
