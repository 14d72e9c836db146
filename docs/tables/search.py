"""What a search costs and how good its answers are, from what the benchmarks printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tables.benchmarks import printed
from tables.markdown import table

STRATEGIES = {
    "exhaustive": "exhaustive grid",
    "adaptive": "`rgr run`",
    "certificates": "its certificates alone",
    "optuna": "Optuna",
}
RULES = {
    "grid": "exhaustive grid, ten seeds",
    "bisection": "bisection, ten seeds",
    "curtailed": "bisection, seeds spared",
    "probabilistic": "probabilistic bisection",
    "entropy": "expected entropy",
    "tpe": "Optuna (TPE), 60 trials",
    "today": "`base-grid`",
    "bare": "`base-grid`, neither confirmed nor with intervals",
}

Row = dict[str, Any]


def costs() -> str:
    """Training steps of each way to the same thresholds, a row for each cell and the study."""
    by_study: dict[str, dict[str, Row]] = {}
    for row in printed("search_cost")["rows"]:
        by_study.setdefault(row["study"], {})[row["strategy"]] = row
    rows = [
        [name.removeprefix("base-grid "), *(_cost(ways.get(way)) for way in STRATEGIES)]
        for name, ways in by_study.items()
    ]
    return table(["", *STRATEGIES.values()], rows)


def _cost(row: Row | None) -> str:
    if row is None:
        return "–"
    steps = f"{row['training_steps'] / 1e6:.3g} million"
    return steps if row["strategy"] == "exhaustive" else f"{steps} ({_percent(row)})"


def _percent(row: Row) -> str:
    return f"{100 * row['share_of_exhaustive']:.1f} %"


def study_cost() -> str:
    """Training steps of the whole base grid, and their share of the exhaustive grid's."""
    rows = printed("search_cost")["rows"]
    own = next(r for r in rows if r["study"] == "base-grid" and r["strategy"] == "adaptive")
    return _cost(own)


def of_rules() -> str:
    """Each rule over all curves: mean cost, and the least and the largest of its errors."""
    rows = []
    for rule, said in RULES.items():
        own = [row for row in printed("search_statistics")["rows"] if row["rule"] == rule]
        steps = sum(row["steps"] for row in own) / len(own) / 1e6
        trainings = sum(row["trainings"] for row in own) / len(own)
        cells = [said, f"{trainings:.0f}", f"{steps:.3g}"]
        cells += [_range(own, "bias", 1), _range(own, "rmse", 1)]
        cells += [_range(own, name, 0, 100) for name in ("below_target", "above_truth", "covers")]
        rows.append(cells)
    header = ["rule", "trainings", "million steps", "bias, %", "error, %"]
    return table([*header, "below target, %", "above the truth, %", "interval covers, %"], rows)


def _range(rows: list[Row], name: str, places: int, scale: float = 1.0) -> str:
    values = [scale * row[name] for row in rows if row[name] is not None]
    if not values:
        return "–"
    return " to ".join(f"{end:.{places}f}".replace("-", "−") for end in (min(values), max(values)))


def by_curve() -> str:
    """Million steps of each rule on each curve, and its error of D_K*."""
    rows = printed("search_statistics")["rows"]
    curves = list(dict.fromkeys(row["curve"] for row in rows))
    at = {(row["rule"], row["curve"]): row for row in rows}
    return table(
        ["rule", *curves],
        [[said, *(_at(at[rule, curve]) for curve in curves)] for rule, said in RULES.items()],
    )


def _at(row: Row) -> str:
    return f"{row['steps'] / 1e6:.2g}: {row['rmse']:.0f} ± {row['rmse_se']:.1g}"


def dips() -> str:
    """How often a pass below a fail is missed."""
    rows = printed("search_statistics")["rows"]
    missed = {row["rule"]: row["above_truth"] for row in rows if row["curve"] == "dips"}
    bisection, ours = (100 * missed[rule] for rule in ("curtailed", "today"))
    return f"{bisection:.3g} % of the draws, `base-grid` in {ours:.3g} %"


PIECES: dict[str, Callable[[], str]] = {
    "search cost": costs,
    "search cost of base-grid": study_cost,
    "search dips": dips,
    "search rules": of_rules,
    "search rules by curve": by_curve,
}
