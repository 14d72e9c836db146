"""What several heads are worth: the threshold of every head count, beside the best of its cell."""

from __future__ import annotations

import pandas as pd

from analysis import wording
from analysis.load import StudyResults, per_study
from analysis.records import integer, parse_certificate
from analysis.rows import Row, by_size, name_keys, rows_of
from analysis.thresholds.best import best_of
from analysis.thresholds.rows import certificate_of, thresholds_of
from rgr_dist.study.study import Study

HEAD_KINDS = {
    "cell_id": "object", "m": "Int64", "d_model": "Int64", "degree": "Int64", "max_steps": "Int64",
    "h": "Int64", "status": "object", "D_K": "Int64", "D_K_fails": "Int64", "D_K_low": "Int64",
    "D_K_high": "Int64", "at_least": "Int64", "is_best": "bool", "times_best": "float64",
    "arrow": "bool",
}  # fmt: skip


def by_heads(thresholds: pd.DataFrame, best: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The threshold of every head count of every cell, in the study's order.

    A head that is pruned or censored has no threshold but a bound, ``at_least``: its threshold is
    that or more. ``keep_within: null`` in a study searches every head to its end instead.

    Args:
        best: the table of ``analysis.thresholds.best.best``.

    Returns:
        ``cell_id, m, d_model, degree, max_steps, h, status, D_K``; ``D_K_fails``, the largest D_K
        known to fail at these heads, the other side of the certificate; ``D_K_low, D_K_high``, the
        ends of App. A.2, null unless found; ``at_least``, null where found; ``is_best``;
        ``times_best``, D_K or its bound over the cell's D_K*; ``arrow``, whether it is a bound.
    """
    stars = best.set_index("cell_id")[["D_K", "h_star"]].astype("object")
    limits = {cell.cell_id: cell.training.max_steps for cell in study.cells}
    order = {cell.cell_id: i for i, cell in enumerate(study.cells)}
    rows = []
    for row in thresholds.astype("object").to_dict("records"):
        if row["cell_id"] not in order or not study.search.lists(int(row["h"])):
            continue
        h, D_K = int(row["h"]), integer(row["D_K"])
        star = integer(stars.at[row["cell_id"], "D_K"])
        failed = (parse_certificate(row.get("certificate")) or {}).get("fail")
        low = integer(row["D_K_low"])
        bound = None if D_K is not None else low
        shown = D_K if D_K is not None else bound
        names = ("cell_id", "m", "d_model", "degree", "h", "status")
        rows.append(
            {name: row[name] for name in names}
            | {
                "max_steps": limits[row["cell_id"]],
                "D_K": D_K,
                "D_K_fails": h * int(failed["d_k"]) if failed and D_K is not None else None,
                "D_K_low": low if D_K is not None else None,
                "D_K_high": integer(row["D_K_high"]) if D_K is not None else None,
                "at_least": bound,
                "is_best": star is not None and h == integer(stars.at[row["cell_id"], "h_star"]),
                "times_best": shown / star if shown is not None and star else None,
                "arrow": row["status"] in ("pruned", "censored") and bound is not None,
            }
        )
    rows.sort(key=lambda row: (order[row["cell_id"]], row["h"]))
    frame = pd.DataFrame(rows, columns=list(HEAD_KINDS), dtype="object")
    return frame.astype({name: kind for name, kind in HEAD_KINDS.items() if kind != "object"})


@per_study
def by_heads_of(results: StudyResults) -> pd.DataFrame:
    """The threshold of every (cell, h), or the bound on it, beside the cell's D_K*."""
    return by_heads(thresholds_of(results), best_of(results), results.study)


@per_study
def heads_of(results: StudyResults) -> list[Row]:
    """The rows of ``by_heads`` by size, with the rest of their threshold, names and words."""
    kept = ("graph", "n_edges", "mean_score", "n_seeds", "d_k", "certificate", "limited_by",
            "confirmed")  # fmt: skip
    rest, ends = {}, {}
    for row in rows_of(thresholds_of(results)):
        key = row["cell_id"], row["h"]
        rest[key] = {name: row[name] for name in kept if name in row}
        ends[key] = row["D_K_low"], row["D_K_high"]
    rows = []
    for row in by_size(by_heads_of(results)):
        key = row["cell_id"], row["h"]
        row |= name_keys(results, row) | rest[key]
        row["D_K_words"] = wording.with_range(row["D_K"], *ends[key])
        row["certificate_words"] = certificate_of(results, row)
        is_found = row["D_K"] is not None
        found = f"D_K {'= ' if is_found else ''}{row['D_K_words']}, {row['status']}"
        text = [f"{row['full']}, h = {row['h']}", found]
        if row["certificate_words"] != wording.MISSING:
            text.append(row["certificate_words"])
        row["text"] = "\n".join(text)
        rows.append(row)
    return rows
