"""Thresholds as the training budget grows.

A threshold holds for one step limit T. Where a cell has several, D_K*(T) falls as T grows, and so
may the gain of several heads, D_K(1) / D_K*. Weights that training does not find may still exist.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.records import integer
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.analysis.wording import plural, span
from rgr_dist.planning.budgets import AtLimit, limited_by
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

SIZES = ["cell_id", "m", "d_model", "degree"]
WIDTHS = ["D_K", "D_K_low", "D_K_high"]
OF_ONE = ["D_K_one", "one_low", "one_high"]
HEADS = ["h_star", "h_low", "h_high"]
GAIN = ["gain", "gain_low", "gain_high"]


@per_study
def gains(results: StudyResults) -> pd.DataFrame:
    """The best head count against one head, at every step limit of every cell.

    Returns:
        ``cell_id, m, d_model, degree, max_steps, D_K, D_K_low, D_K_high, h_star, h_low, h_high,
        D_K_one, one_low, one_high, one_status, gain, gain_low, gain_high, confirmed``. D_K_one is
        the threshold of one head, with its interval and status; gain is D_K_one / D_K. gain_low and
        gain_high divide opposite ends of the two intervals, so that they cover at least what either
        interval covers; each is null where an end that it needs is not known. If one head has no
        threshold, gain is null and gain_low is what its smallest width not ruled out would give.
        While a cell's search is open all three are null.
    """
    thresholds = results.thresholds[results.thresholds["h"] == 1]
    of_one = dict(zip(WIDTHS, OF_ONE, strict=True)) | {"status": "one_status"}
    one = thresholds[["cell_id", *of_one]].rename(columns=of_one)
    best = best_of(results).set_index("cell_id")
    table = best.loc[[cell.cell_id for cell in results.study.cells]].reset_index()
    table = table.merge(one, on="cell_id", how="left")
    whole = [*SIZES[1:], "max_steps", *WIDTHS, *HEADS, *OF_ONE]
    table = table.astype(dict.fromkeys(whole, "Int64"))
    D_K, alone = table["D_K"], table["D_K_one"]
    table["gain"] = alone / D_K
    table["gain_low"] = table["one_low"] / table["D_K_high"]
    table["gain_high"] = (table["one_high"] / table["D_K_low"]).where(alone.notna())
    table.loc[table["status"] == "open", GAIN] = None
    columns = [*SIZES, "max_steps", *WIDTHS, *HEADS, *OF_ONE, "one_status", *GAIN, "confirmed"]
    return table[columns].astype(dict.fromkeys(GAIN, "float64"))


def verdict(cell_gains: pd.DataFrame) -> str:
    """What happens to the gain of several heads at one cell as its budget grows.

    Args:
        cell_gains: the rows of ``gains`` of one cell, by growing limit.

    Returns:
        ``stays``: at the largest budget the whole interval lies above 1; ``shrinks``: it does, but
        lies below the whole interval at a smaller budget; ``ends``: it does not, though at a
        smaller budget it does; ``none``: it lies above 1 at no budget; ``cannot tell``: its lower
        end is not known at the largest budget, or at one that would tell ``none`` from ``ends``.
    """
    last = cell_gains.iloc[-1]
    if pd.isna(last["gain_low"]):
        return "cannot tell"
    above = cell_gains["gain_low"] > 1
    if not above.iloc[-1]:
        is_known = cell_gains["gain_low"].notna().all()
        return "ends" if above.any() else "none" if is_known else "cannot tell"
    before = cell_gains["gain_low"].iloc[:-1].max()
    shrank = pd.notna(last["gain_high"]) and last["gain_high"] < before
    return "shrinks" if shrank else "stays"


def headline(results: StudyResults) -> list[str]:
    """How far D_K* falls from each cell's smallest step limit to its largest; empty if unknown."""
    best = best_of(results).set_index("cell_id")
    table = best["D_K"].mask(best["status"] == "open")
    ends, steps = [], set()
    for family in families(results.study):
        by_limit = sorted(family, key=lambda cell: cell.training.max_steps)
        first, last = (table[by_limit[i].cell_id] for i in (0, -1))
        if pd.notna(first) and pd.notna(last):
            ends.append(1 - last / first)
            steps.add((by_limit[0].training.max_steps, by_limit[-1].training.max_steps))
    if not ends:
        return []
    from_to = "from {:,} to {:,} training steps".format(*steps.pop())
    over = "from the smallest step limit to the largest" if steps else from_to
    falls = [end for end in ends if end > 0]
    if not falls:
        return [f"D_K* does not fall {over}, in {plural(len(ends), 'cell')}."]
    by = f"{span([round(100 * end) for end in falls], ' to ')} %"
    return [f"D_K* falls by {by} {over}, at {len(falls)} of {plural(len(ends), 'cell')}."]


@per_study
def limits(results: StudyResults) -> pd.DataFrame:
    """What the largest step limits say about each cell.

    Returns:
        One row for all limits of a cell: ``cell_id, m, d_model, degree, D_K`` at the
        largest; ``falls``, whether D_K* still falls between the two
        largest, null unless that is known; and ``gain``, what happens to the gain of several heads
        (``verdict``).
    """
    status = best_of(results).set_index("cell_id")["status"].to_dict()
    rows = [_row(gains(results), status, family) for family in families(results.study)]
    columns = [*SIZES, "D_K", "falls", "gain"]
    frame = pd.DataFrame(rows, columns=columns, dtype="object")
    return frame.astype(dict.fromkeys([*SIZES[1:], "D_K"], "Int64"))


def _row(
    table: pd.DataFrame, status: Mapping[Hashable, str], family: Sequence[Cell]
) -> dict[Hashable, object]:
    own = table[table["cell_id"].isin([cell.cell_id for cell in family])].sort_values("max_steps")
    ends = (map(integer, own[name]) for name in ("D_K", "D_K_low"))
    known = list(map(AtLimit.of, own["cell_id"].map(status), *ends))
    limit = limited_by(known[-1].total, known)
    return own.iloc[-1][[*SIZES, "D_K"]].to_dict() | {
        "falls": None if limit is None else limit == "budget",
        "gain": verdict(own),
    }


def families(study: Study) -> list[tuple[Cell, ...]]:
    """Groups of several cells that differ in their step limit alone, in the study's order."""
    distinct = dict.fromkeys(study.budgets[cell.cell_id] for cell in study.cells)
    return [family for family in distinct if len(family) > 1]
