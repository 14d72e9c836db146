"""Measured numbers that several pages quote, from what the commands printed of a finished store."""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from rgr_dist.analysis.laws.published import p_words
from rgr_dist.analysis.wording import with_range
from rgr_dist.paper import IMPLIED, capacity_scale
from tables.markdown import table

FOLDER = Path(__file__).parent.parent / "results"

VERBS = {
    "exponent": ("fit",),
    "every-head": ("thresholds",),
    "every-head-512": ("thresholds",),
    "variants": ("thresholds",),
    "variants-16-heads": ("thresholds",),
    "latent-widths": ("thresholds",),
    "constructions": ("thresholds",),
    "from-constructed": ("thresholds",),
}
"""``STUDY.VERB.json`` is what ``rgr VERB STUDY`` printed; of other studies both are kept."""

Record = dict[str, Any]


@cache
def printed(study: str, verb: str) -> dict[str, list[Record]]:
    """What ``rgr VERB STUDY --format json`` printed, its lists of rows by name."""
    text = (FOLDER / f"{study}.{verb}.json").read_text("utf-8")
    result: dict[str, list[Record]] = json.loads(text)["printed"]
    return result


def read(store: str, study: str) -> None:
    """Ask the commands again, of a store in which the study is finished.

    Raises:
        SystemExit: a command failed.
    """
    from rgr_dist.cli import call

    for verb in VERBS.get(study, ("thresholds", "fit")):
        command = [verb, study, "--format", "json"]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            status = call([*command, "--out", store])
        if status:
            raise SystemExit(status)
        kept = {"command": " ".join(["rgr", *command]), "printed": json.loads(out.getvalue())}
        path = FOLDER / f"{study}.{verb}.json"
        path.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


class Known(NamedTuple):
    """The smallest D_K of a cell of ``base-grid`` that any kept result passes at."""

    D_K: int
    is_other: bool
    """Not of a longer run of the same protocol, which comes first of equal ones."""
    source: str
    h: int

    @property
    def limited_by(self) -> str:
        """What limits a threshold that is larger."""
        return "optimisation" if self.is_other else "budget"


@cache
def known() -> dict[tuple[int, int], Known]:
    """By cell, of what its store knew, of ``budget`` and of constructed weights, trained or not."""
    found: dict[tuple[int, int], list[Known]] = {}

    def note(row: Record, one: Known) -> None:
        found.setdefault((row["m"], row["d_model"]), []).append(one)

    for row in printed("base-grid", "thresholds")["best"]:
        of, is_other = row["possible_source"], row["limited_by"] != "budget"
        note(row, Known(row["possible_D_K"], is_other, of, row["possible_h"]))
    for row in _longer():
        if row["D_K"] is not None:
            of = f"training at {row['max_steps']:,} steps"
            note(row, Known(row["D_K"], False, of, row["h_star"]))
    for study, of in MADE.items():
        for row in printed(study, "thresholds")["best"]:
            if row["D_K"] is not None:
                note(row, Known(row["D_K"], True, of, row["h_star"]))
    return {cell: min(widths) for cell, widths in found.items()}


def _longer() -> list[Record]:
    """What ``budget`` found of every cell at every step limit."""
    text = (FOLDER / "budget.training-time.json").read_text("utf-8")
    result: list[Record] = json.loads(text)["gains"]
    return result


MADE = {"constructions": "construction", "from-constructed": "constructed start"}
"""Studies of constructed weights, and what their weights are called."""


def from_constructed() -> str:
    """D_K* where training begins from constructed weights, beside what else is known."""
    last = {(row["m"], row["d_model"]): row for row in _longer() if row["max_steps"] == 640_000}
    made, trained = (
        {(row["m"], row["d_model"]): row for row in printed(study, "thresholds")["best"]}
        for study in ("constructions", "base-grid")
    )
    rows = []
    for row in printed("from-constructed", "thresholds")["best"]:
        cell = row["m"], row["d_model"]
        widths = [(one[cell]["D_K"], one[cell]["h_star"]) for one in (last, made)]
        short = trained[cell]["D_K_first"]
        told = [f"{D_K} ({h})" for D_K, h in [*widths, (row["D_K"], row["h_star"])]]
        rows.append([f"{cell}", short, *told])
    header = ["random weights, 20,000 steps", "640,000 steps (h)", "`ours`, exact at 30 draws (h)"]
    return table(["cell", *header, "from `ours`, 20,000 steps (h)"], rows)


def best(study: str) -> str:
    """The best head count of each cell, beside what the paper implies and what is known."""
    rows = []
    for row in sorted(printed(study, "thresholds")["best"], key=lambda r: (r["m"], r["d_model"])):
        D_K, h = IMPLIED[row["m"], row["d_model"]]
        least = known()[row["m"], row["d_model"]]
        is_lower = row["D_K"] > least.D_K
        rows.append(
            [
                row["m"],
                row["d_model"],
                f"{row['D_K']} [{row['D_K_low']}–{row['D_K_high']}]",
                row["D_K_first"],
                f"{row['h_star']} [{row['h_low']}–{row['h_high']}]",
                row["d_k"],
                f"{D_K} (h = {h})",
                f"{least.D_K} ({least.source})" if is_lower else f"{row['D_K']} (its own)",
                least.limited_by if is_lower else row["limited_by"],
            ]
        )
    header = ["m", "d_model", "D_K* [low–high]", "by ten seeds alone", "h* [low–high]", "d_k"]
    more = ["the paper, implied by its Table 1", "known weights pass from", "limited by"]
    return table([*header, *more], rows)


def constructed() -> str:
    """Constructed widths beside trained and trivial ones."""
    found, rows = printed("base-grid", "thresholds")["best"], []
    trained = {(row["m"], row["d_model"]): row for row in found}
    for row in printed("constructions", "thresholds")["best"]:
        m, d_model, D_K = row["m"], row["d_model"], row["D_K"]
        own = trained[m, d_model]
        widths = [f"{D_K} ({row['h_star']})", f"{own['D_K']} ({own['h_star']})"]
        rows.append([m, d_model, *widths, f"{D_K / own['D_K']:.2f}", m])
    header = ["m", "d_model", "constructed D_K (h)", "trained D_K* (h*)", "constructed/trained"]
    return table([*header, "trivial"], rows)


def _law(study: str, name: str) -> Record:
    return next(law for law in printed(study, "fit")["laws"] if law["name"] == name)


def power(study: str, name: str = "D_K_power") -> str:
    """``1.32 [1.19 to 1.44]``: the power of the capacity scale by which D_K* grows."""
    law = _law(study, name)
    return f"{law['exponent']:.2f} [{law['exponent_low']:.2f} to {law['exponent_high']:.2f}]"


def powers(study: str) -> str:
    """The power of the capacity scale by which D_K* grows, of each protocol and step limit."""
    rows: dict[tuple[float, int], list[str]] = {}
    laws = [law for law in printed(study, "fit")["laws"] if law["name"].startswith("D_K_power")]
    for law in sorted(laws, key=lambda law: "_wide" not in law["name"]):
        if law["max_steps"]:
            rate = float((law["protocol"] or "learning_rate = 0.001").partition(" = ")[2])
            low, high = law["exponent_low"], law["exponent_high"]
            told = f"{law['exponent']:.2f} [{low:.2f} to {high:.2f}], {100 * law['scatter']:.0f} %"
            missing = f", {law['n_censored']} by a bound" if law["n_censored"] else ""
            rows.setdefault((rate, law["max_steps"]), []).append(told + missing)
    header = ["learning rate", "step limit", "nine cells: power, scatter about it", "all twelve"]
    return table(
        header, [[f"{rate:g}", f"{T:,}", *told] for (rate, T), told in sorted(rows.items())]
    )


def beyond(study: str) -> str:
    """``0.12 to 0.26``: how much larger a power is over all cells than over the wide ones."""
    laws = [law for law in printed(study, "fit")["laws"] if law["max_steps"]]
    powers = {law["name"]: law["exponent"] for law in laws if law["name"].startswith("D_K_power")}
    more = [
        powers[name.replace("_wide", "")] - power
        for name, power in powers.items()
        if "_wide" in name
    ]
    return f"{min(more):.2f} to {max(more):.2f}"


def _over_every_head() -> list[Record]:
    """The best of every head count, by cell."""
    studies = ("every-head", "every-head-512")
    rows = [row for study in studies for row in printed(study, "thresholds")["best"]]
    return sorted(rows, key=lambda row: (row["m"], row["d_model"]))


def every_head() -> str:
    """D_K* over every head count, beside that over powers of two."""
    rows = []
    twos = {(row["m"], row["d_model"]): row for row in printed("base-grid", "thresholds")["best"]}
    for row in _over_every_head():
        two = twos[row["m"], row["d_model"]]
        rows.append(
            [
                f"({row['m']}, {row['d_model']})",
                f"{with_range(row['D_K'], row['D_K_low'], row['D_K_high'])}",
                with_range(row["h_star"], row["h_low"], row["h_high"]),
                f"{with_range(two['D_K'], two['D_K_low'], two['D_K_high'])}, h = {two['h_star']}",
                f"{100 * (1 - row['D_K'] / two['D_K']):.0f} %",
            ]
        )
    header = ["cell", "D_K* over every head count", "h*, and those not told apart from it"]
    return table([*header, "over powers of two (base-grid)", "lower by"], rows)


def lower() -> str:
    """``60 for 64 at (128, 16), …``: where another head count needs less than a power of two."""
    twos = {
        (row["m"], row["d_model"]): row["D_K"] for row in printed("base-grid", "thresholds")["best"]
    }
    told = [
        f"{row['D_K']} for {twos[cell]} at {cell}"
        for row in _over_every_head()
        if row["D_K"] < twos[cell := (row["m"], row["d_model"])]
    ]
    return ", ".join(told)


def misfit(study: str, tested: bool = True) -> str:
    """How far the cells lie from their power law, and how far noise alone would put them."""
    test = next(one for one in printed(study, "fit")["lack_of_fit"] if one["law"] == "D_K_power")
    far = unexplained(_law(study, "D_K_power")["scatter"], test["p_value"] if tested else None)
    return f"{far}, while seeds and whole-number $d_k$ explain {100 * test['noise']:.0f} %"


def unexplained(scatter: float, p_value: float | None) -> str:
    """``20 % ($p \\approx 10^{-31}$)``: the scatter about a law, and the p of its lack of fit.

    The test takes the power law that lies nearest to the cells by χ², so that it rejects every one.
    """
    told = f"{100 * scatter:.0f} %"
    return told + (f" ($p \\approx 10^{{{round(math.log10(p_value))}}}$)" if p_value else "")


def slope(study: str, name: str) -> str:
    """``1.40 [1.22, 1.57]``, by the paper's own estimator."""
    law = _law(study, name)
    digits = 3 if law["slope"] < 1 else 2
    low, high = (f"{law[key]:.{digits}f}" for key in ("slope_low", "slope_high"))
    return f"{law['slope']:.{digits}f} [{low}, {high}]"


def implied_slope() -> str:
    """``1.40 (R² 0.966)``: the slope and uncentred R² of the widths that Table 1 implies."""
    widths = {cell: D_K for cell, (D_K, _) in IMPLIED.items()}
    x = {cell: capacity_scale(*cell) for cell in widths}
    slope = sum(x[cell] * widths[cell] for cell in x) / sum(one**2 for one in x.values())
    missed = sum((widths[cell] - slope * x[cell]) ** 2 for cell in x)
    return f"{slope:.2f} (R² {1 - missed / sum(D_K**2 for D_K in widths.values()):.3f})"


def against_published(study: str, name: str, scale: str = "linear") -> str:
    """``p = 0.026``: the test of a published law, with the sampling error of theirs if known."""
    tests = printed(study, "fit")["published"]
    test = next(one for one in tests if (one["name"], one["scale"]) == (name, scale))
    told = p_words(test["p_value"])
    if name == "D_K" and scale == "linear":
        told += f", or {test['p_value_with_theirs']:.2g} with the sampling error of theirs"
    return told


PIECES: dict[str, Callable[[], str]] = {
    "base-grid best": partial(best, "base-grid"),
    "base-grid power": partial(power, "base-grid"),
    "base-grid power-wide": partial(power, "base-grid", "D_K_power_wide"),
    "base-grid misfit": partial(misfit, "base-grid"),
    "base-grid scatter": partial(misfit, "base-grid", tested=False),
    "constructions widths": constructed,
    "from-constructed widths": from_constructed,
    "exponent powers": partial(powers, "exponent"),
    "exponent beyond": partial(beyond, "exponent"),
    "every-head best": every_head,
    "every-head lower": lower,
    "base-grid slope": partial(slope, "base-grid", "D_K"),
    "base-grid slope-wide": partial(slope, "base-grid", "D_K_wide"),
    "base-grid slope-h": partial(slope, "base-grid", "h"),
    "base-grid implied": implied_slope,
    "base-grid tested": partial(against_published, "base-grid", "D_K"),
    "base-grid tested-wide": partial(against_published, "base-grid", "D_K_wide"),
    "base-grid tested-wide-log": partial(against_published, "base-grid", "D_K_wide", "log"),
    "base-grid tested-h": partial(against_published, "base-grid", "h"),
}
