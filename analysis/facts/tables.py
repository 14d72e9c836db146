"""What a study of facts found: thresholds d_vo by setting, their ranks and accuracies."""

from __future__ import annotations

import json
from typing import Any, Literal

import numpy as np
import pandas as pd

from rgr_dist.analysis import wording
from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.rows import Row, name_keys, rows_of
from rgr_dist.analysis.runs import scored
from rgr_dist.analysis.thresholds.database_ranks import layer_bound
from rgr_dist.analysis.thresholds.listing import threshold_records
from rgr_dist.analysis.wording import plural
from rgr_dist.search.seed_test import t_interval
from rgr_dist.study.study import Study

Rows = list[dict[str, Any]]


@per_study
def rows_of_facts(results: StudyResults) -> list[Row]:
    """The record of every (cell, setting) of a study of facts, with names and words.

    ``D_V_fails`` is the largest D_V known to fail below the threshold; 0 if none is.
    """
    rows, table = [], results.thresholds.to_dict("records")
    for row, stored in zip(threshold_records(results), table, strict=True):
        row["cell_id"] = stored["cell_id"]
        failed = ((row["certificate"] or {}).get("fail") or {}).get("D_V")
        if row["status"] == "censored":
            failed = row["D_V_low"] - row["h"]
        row["D_V_fails"] = failed or 0
        row |= name_keys(results, row)
        row["D_V_words"] = wording.with_range(row["D_V"], row["D_V_low"], row["D_V_high"])
        low, high = row["rank_low"], row["rank_high"]
        ends = () if low is None else dict.fromkeys((f"{low:,.0f}", f"{high:,.0f}"))
        row["rank_words"] = " to ".join(ends)
        at = f"h = {row['h']}, d_qk = {row['d_qk']}"
        row["text"] = f"{row['full']}, {at}\nD_V {row['D_V_words']}, {row['status']}"
        rows.append(row)
    return rows


def headline(rows: Rows, study: Study, n_fails: int = 0) -> str:
    """The finding of a study, in a sentence.

    Args:
        n_fails: the number of cells of ``wider_fails``, for a study with a fixed total.
    """
    found = [row for row in rows if row["d_vo"] is not None]
    if not found:
        return "No threshold was found."
    arm, best = study.search.sizes.shown_arm, dict[str, int]()
    for row in found:
        best[row["cell_id"]] = min(row["D_V"], best.get(row["cell_id"], row["D_V"]))
    of = f"{len(best)} of {plural(len({row['cell_id'] for row in rows}), 'cell')}"
    facts = wording.span([row["facts"] for row in found])
    total = study.search.total
    at = f"At d_qk + d_vo = {total}, " if total else ""
    said = f"{at}D_V* is {wording.span(list(best.values()))} in {of} of {facts} facts"
    if n_fails:
        said += f"; in {n_fails} of them a wider one fails"
    if len(study.search.arms) > 1 and not total:
        least = min(row[arm] for row in rows)
        narrow = [row["D_V"] == best[row["cell_id"]] for row in found if row[arm] == least]
        where = "" if sum(narrow) == len(best) else f" in {sum(narrow)} of those {len(best)}"
        said += f"; {arm} = {least} is enough for it{where}"
    return f"{said}."


def wider_fails(results: StudyResults, by: Literal["high", "mean_score"] = "high") -> set[str]:
    """The cells in which a split misses the target though a narrower one passes.

    Args:
        by: ``high``: only by a whole 95 % interval; ``mean_score``: perhaps by the luck of seeds.
    """
    splits, target = by_split(results), results.study.search.target
    passing = splits[splits["mean_score"] >= target].groupby("cell_id")["d_vo"].min()
    splits = splits.join(passing.rename("narrowest"), on="cell_id")
    return set(splits.query(f"d_vo > narrowest and {by} < @target")["cell_id"])


@per_study
def runs(results: StudyResults) -> Rows:
    """The scored runs of the study's search, with the bound on the rank of their logits.

    Returns:
        ``cell_id, h, d_qk, d_vo, D_V, seed, score, argmax_accuracy, softmax_accuracy, rank_logits,
        rank_argmax, rank_bound, by_tau``: the last a list of (tau, accuracy, rank).
    """
    cells = {cell.cell_id: cell for cell in results.study.cells}
    table = scored(results.searched, results.study).rename(columns={"d_k": "d_qk"})
    table = table[table["rank_logits"].notna()]
    whole = ["h", "d_qk", "d_vo", "seed", "rank_logits", "rank_argmax"]
    kept = ["cell_id", *whole, "score", "argmax_accuracy", "softmax_accuracy", "by_tau"]
    rows = rows_of(table[kept].astype(dict.fromkeys(whole, "int64")))
    for row in rows:
        row["D_V"] = row["h"] * row["d_vo"]
        row["rank_bound"] = layer_bound(cells[row["cell_id"]], row["h"], row["d_vo"])
        row["by_tau"] = json.loads(row["by_tau"])
    return rows


def by_split(results: StudyResults) -> pd.DataFrame:
    """The mean share of facts held of every probe of a study, with its 95 % t-interval from 0 to 1.

    Returns:
        ``cell_id, m, d_model, d_qk, d_vo, n_seeds, mean_score, low, high``.
    """
    table = scored(results.searched, results.study).rename(columns={"d_k": "d_qk"})
    keys = ["cell_id", "m", "d_model", "d_qk", "d_vo"]
    rows = []
    for probe, scores in table.groupby(keys, sort=False)["score"]:
        ends = t_interval(scores.tolist())
        low, high = (None, None) if ends is None else np.clip(ends, 0.0, 1.0)
        rows.append((*probe, len(scores), scores.mean(), low, high))
    told = pd.DataFrame(rows, columns=[*keys, "n_seeds", "mean_score", "low", "high"])
    return told.sort_values(["cell_id", "d_vo"], ignore_index=True)


def by_tau(rows: Rows) -> Rows:
    """Means over runs at each tau: accuracy, rank of softmax≥tau(L), and its gap to the rank of L.

    ``above_bound`` counts the runs, of ``n``, whose rank exceeds the bound on that of L.

    Args:
        rows: of ``runs``.
    """
    table = pd.DataFrame(
        {
            "tau": tau,
            "accuracy": accuracy,
            "rank": rank,
            "above_bound": rank > row["rank_bound"],
            "gap": abs(rank - row["rank_logits"]),
            "n": 1,
        }
        for row in rows
        for tau, accuracy, rank in row["by_tau"]
    )
    means = {"accuracy": "mean", "rank": "mean", "above_bound": "sum", "gap": "mean", "n": "sum"}
    return rows_of(table.groupby("tau").agg(means).reset_index())
