"""What ``rgr run budget`` found: thresholds at each step limit, and the gain of several heads."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from statistics import linear_regression
from typing import Any

import pandas as pd

from rgr_dist.analysis.laws.fits import lack_of_fit
from rgr_dist.analysis.laws.scaling_laws import Law, power_law
from rgr_dist.analysis.wording import MISSING, with_limits, with_range
from rgr_dist.paper import capacity_scale, is_narrow
from tables.benchmarks import printed as printed_by
from tables.markdown import table
from tables.results import known, printed, unexplained

STUDY = "budget"
PATH = Path(__file__).parent.parent / "results" / f"{STUDY}.training-time.json"
"""The tables ``gains`` and ``limits`` of the study's report, and what it trained."""
TABLE_2 = 20_000
"""Step limit of the paper's Table 2, but for m = 256 and 512 at d_model = 16."""
ELSEWHERE = (512, 16)
"""Where ``every-head-512`` finds the largest limit's D_K* within Table 2's limit already."""
ADVANTAGE = {
    "stays": "stays",
    "shrinks": "shrinks",
    "ends": "ends",
    "none": "never seen",
    "cannot tell": "cannot be told",
}

NUMBERS = [
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]

Record = dict[str, Any]


def read(store: str) -> None:
    """Keep the tables of a store in which the study is finished.

    Raises:
        StudyError, StoreError: the store cannot be read.
    """
    from rgr_dist.analysis.budgets.step_limits import gains, limits
    from rgr_dist.analysis.load import open_results
    from rgr_dist.store.store import Store
    from rgr_dist.study.study_file import load_study

    study = load_study(STUDY)
    results = open_results(study, Store(store))
    limit = results.runs["cell_id"].map(
        {cell.cell_id: cell.training.max_steps for cell in study.cells}
    )
    trained = results.runs[results.runs["trained_to"].fillna(limit) == limit]
    kept = {
        "study": STUDY,
        "rows": len(results.runs),
        "runs": len(trained),
        "steps": int(trained["steps"].sum()),
        "gains": json.loads(gains(results).to_json(orient="records")),
        "limits": json.loads(limits(results).to_json(orient="records")),
    }
    PATH.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


@cache
def _kept() -> Record:
    result: Record = json.loads(PATH.read_text("utf-8"))
    return result


def _cells() -> Iterator[tuple[str, list[Record]]]:
    """The rows of each cell by growing limit, with its name."""

    def size(row: Record) -> tuple[int, int]:
        return row["m"], row["d_model"]

    rows = sorted(_kept()["gains"], key=lambda row: (*size(row), row["max_steps"]))
    for (m, d_model), own in groupby(rows, size):
        yield f"({m}, {d_model})", list(own)


def thresholds() -> str:
    """D_K* with its interval, and h*, a row for each cell and a column for each limit."""
    cells = list(_cells())
    steps = [row["max_steps"] for row in cells[0][1]]
    header = [f"{limit:,}{' (Table 2)' if limit == TABLE_2 else ''}" for limit in steps]
    return table(["cell", *header], [[name, *map(_threshold, rows)] for name, rows in cells])


def _threshold(row: Record) -> str:
    if row["D_K"] is None:
        return "none"
    return f"{with_range(row['D_K'], row['D_K_low'], row['D_K_high'])}, {row['h_star']}"


def gain() -> str:
    """One head beside the best head count, at Table 2's limit and at the largest."""
    limits = {(row["m"], row["d_model"]): row for row in _kept()["limits"]}
    rows = []
    for name, own in _cells():
        at = {row["max_steps"]: row for row in own}
        ends, limit = (at[TABLE_2], own[-1]), limits[own[0]["m"], own[0]["d_model"]]
        rows.append(
            [
                name,
                *map(_alone, ends),
                *map(_gain, ends),
                ADVANTAGE[limit["gain"]],
                "yes" if limit["falls"] else "no",
            ]
        )
    last = f"{next(_cells())[1][-1]['max_steps']:,}"
    header = [f"{what} at {at}" for what in ("one head", "gain") for at in (f"{TABLE_2:,}", last)]
    asked = ["the gain with more steps", "does D_K* still fall?"]
    return table(["cell", *header, *asked], rows)


def _alone(row: Record) -> str:
    if row["D_K_one"] is None:
        return "none"
    return with_range(row["D_K_one"], row["one_low"], row["one_high"])


def _gain(row: Record) -> str:
    if row["gain"] is None:
        return MISSING if row["gain_low"] is None else f"> {row['gain_low']:.1f}"
    return with_limits(row["gain"], row["gain_low"], row["gain_high"], "{:.2f}".format)


def _ends() -> list[tuple[Record, Record]]:
    """Each cell as ``base-grid`` has it, within Table 2's step limit, and at the largest limit."""
    found = {(row["m"], row["d_model"]): row for row in printed("base-grid", "thresholds")["best"]}
    return [(found[rows[-1]["m"], rows[-1]["d_model"]], rows[-1]) for _, rows in _cells()]


def _shares() -> list[float]:
    """By how much D_K* is lower at the largest limit, in %, by ten seeds; not at ``ELSEWHERE``."""
    ends = [(first, last) for first, last in _ends() if (last["m"], last["d_model"]) != ELSEWHERE]
    return [100 * (1 - last["D_K"] / first["D_K_first"]) for first, last in ends]


def lower() -> str:
    """At how many cells it is lower."""
    return NUMBERS[sum(share > 0 for share in _shares())]


def falls() -> str:
    """``14 to 46 %``: by how much."""
    return f"{min(_shares()):.0f} to {max(_shares()):.0f} %"


def apart() -> str:
    """At how many cells the intervals do not touch."""
    return NUMBERS[sum(last["D_K_high"] < first["D_K_low"] for first, last in _ends())]


def _at(limit: int, wide: bool) -> pd.DataFrame:
    """The cells with a threshold at a step limit, by its place, as laws are fitted to them.

    ``seed_sd`` is of App. A.2's interval, read as 1.96 standard deviations to both sides.

    Args:
        wide: leave out d_model = 16 with m > 64, which the theorems exclude.
    """
    found = [rows[limit] for _, rows in _cells() if rows[limit]["D_K"] is not None]
    return pd.DataFrame(
        {
            "status": "found",
            "scale": capacity_scale(row["m"], row["d_model"]),
            "D_K_fails": row["D_K"] - row["h_star"],
            "D_K_passes": row["D_K"],
            "resolution": math.log(row["D_K"] / (row["D_K"] - row["h_star"])) / math.sqrt(12),
            "seed_sd": math.log(row["D_K_high"] / row["D_K_low"]) / (2 * 1.96),
            "residual": 0.0,  # known: the test makes its own
        }
        for row in found
        if not (wide and is_narrow(row["m"], row["d_model"]))
    )


def _law(limit: int, wide: bool) -> Law:
    ends = ("D_K_fails", "D_K_passes")
    return power_law("", ("D_K*", "scale"), "", _at(limit, wide), "scale", ends)


def power(wide: bool, limit: int = -1) -> str:
    """``1.16 [0.97 to 1.34]``: the power of m log₂ m / d_model by which D_K* grows at the end."""
    return _power(_law(limit, wide))


def slope(wide: bool) -> str:
    """``1.09``: the slope of D_K* at the end, by the paper's estimator."""
    cells = _at(-1, wide)
    return f"{(cells['scale'] @ cells['D_K_passes']) / (cells['scale'] @ cells['scale']):.2f}"


def _power(law: Law) -> str:
    return f"{law.exponent:.2f} [{law.exponent_low:.2f} to {law.exponent_high:.2f}]"


def _of_widths(widths: Mapping[tuple[int, int], tuple[int, int]], wide: bool) -> str:
    """The power of D_K and heads by cell; a step of d_k below each is not known to pass."""
    ends = ("D_K_fails", "D_K_passes")
    cells = pd.DataFrame(
        {"status": "found", "scale": capacity_scale(*cell), ends[0]: D_K - h, ends[1]: D_K}
        for cell, (D_K, h) in widths.items()
        if not (wide and is_narrow(*cell))
    )
    return _power(power_law("", ("", ""), "", cells, "scale", ends))


def _made() -> dict[tuple[int, int], tuple[int, int]]:
    rows = printed("constructions", "thresholds")["best"]
    return {(row["m"], row["d_model"]): (row["D_K"], row["h_star"]) for row in rows}


def constructed_power() -> str:
    """The power by which the widths of the construction grow, over all cells."""
    return _of_widths(_made(), wide=False)


def known_power(wide: bool) -> str:
    """The power of the smallest D_K that any kept result passes at.

    That is ``results.known``.
    """
    return _of_widths({cell: (one.D_K, one.h) for cell, one in known().items()}, wide)


def longest() -> str:
    """At how many wide cells no known width is below that of the longest training."""
    last = {(rows[-1]["m"], rows[-1]["d_model"]): rows[-1]["D_K"] for _, rows in _cells()}
    return NUMBERS[sum(last[cell] == known()[cell].D_K for cell in last if not is_narrow(*cell))]


def bound_power() -> str:
    """The power of the bits of the graph over d_model, by least squares of the logarithms."""
    cells = [(rows[0]["m"], rows[0]["d_model"]) for _, rows in _cells()]

    def of(some: list[tuple[int, int]]) -> str:
        x = [math.log(capacity_scale(*cell)) for cell in some]
        bits = [math.log(math.lgamma(m + 1) / d_model) for m, d_model in some]
        return f"{linear_regression(x, bits).slope:.2f}"

    wide = of([cell for cell in cells if not is_narrow(*cell)])
    return f"{wide} over the nine cells and {of(cells)} over all twelve"


def _misfit(limit: int, wide: bool, tested: bool = True) -> str:
    """How far the cells lie from their power law at a step limit, by its place."""
    law, test = _law(limit, wide), lack_of_fit(_at(limit, wide))[0]
    return unexplained(law.scatter or 0.0, test.p_value if tested else None)


def misfits(tested: bool = True) -> str:
    """How far the wide cells, and all of them, lie from their power laws at the end."""
    noise = 100 * max(lack_of_fit(_at(-1, wide))[0].noise for wide in (True, False))
    far = " and ".join(_misfit(-1, wide, tested) for wide in (True, False))
    told = f"{far}, while seeds and whole-number $d_k$ explain {noise:.0f} %"
    return told + (" (reading App. A.2's interval as ±1.96 standard deviations)" * tested)


def powers() -> str:
    """The power over the wide cells at each step limit at which all of them have a threshold."""
    limits, rows = [row["max_steps"] for row in next(_cells())[1]], []
    cells = len(_at(-1, wide=True))
    for i, limit in enumerate(limits):
        if len(_at(i, wide=True)) == cells:
            rows.append([f"{limit:,}", power(True, i), _misfit(i, True)])
    return table(["step limit", "power", "scatter about it (lack of fit)"], rows)


def number(name: str, per: int = 1) -> str:
    """A count, with commas."""
    return f"{round(_kept()[name] / per):,}"


def given_up() -> str:
    """What the rule that gives runs up does to stored runs of each study."""
    rows = printed_by("given_up")["rows"]
    names = ("seeds", "below", "runs", "given_up", "wrong", "best_score")
    cells = [
        [
            f"`{row['study']}`",
            *(f"{row[name]:,}" for name in names),
            f"{100 * row['steps_saved']:.0f} %",
            f"{100 * row['seconds_saved']:.0f} %",
        ]
        for row in rows
    ]
    header = ["study", "seeds", "`give_up_below`", "runs", "given up", "wrong", "best score"]
    return table([*header, "steps saved", "time saved"], cells)


PIECES: dict[str, Callable[[], str]] = {
    "given up": given_up,
    "budget thresholds": thresholds,
    "budget gain": gain,
    "budget falls": falls,
    "budget lower": lower,
    "budget apart": apart,
    "budget power": partial(power, wide=False),
    "budget power-wide": partial(power, wide=True),
    "budget misfits": misfits,
    "budget scatters": partial(misfits, tested=False),
    "budget slope": partial(slope, wide=False),
    "budget slope-wide": partial(slope, wide=True),
    "constructions power": constructed_power,
    "known power": partial(known_power, wide=False),
    "known power-wide": partial(known_power, wide=True),
    "known longest": longest,
    "bound power": bound_power,
    "budget powers": powers,
    "budget runs": partial(number, "runs"),
    "budget rows": partial(number, "rows"),
    "budget steps": partial(number, "steps", 1_000_000),
}
