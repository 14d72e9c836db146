"""What studies and benchmarks found for lines of the paper that had none (paper.md, theory.md)."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from rgr_dist.study.cell import Cell
from rgr_dist.theory.bounds import counting_bound, graph_bits, margin_bits
from rgr_dist.theory.draws import problem_of
from tables.markdown import table
from tables.results import FOLDER, Record
from tables.results import printed as printed_by_verbs

STUDIES = ("contexts", "softmax-contexts", "binary")
"""``STUDY.best.json`` has the best of each cell, as ``rgr thresholds STUDY`` prints it."""
PROTOCOL = {"length": 16.0, "positive_rate": 0.5, "max_steps": 20_000.0}
"""Where the paper's protocol stands among the cells of ``contexts``."""
SIZES = [(64, 16), (64, 32), (128, 16), (128, 32)]
LENGTHS, RATES = (4, 8, 16, 32, 64), (0.1, 0.25, 0.5, 0.75, 1)
EDGES_SEEN = 16 * 20_000


def read(store: str, study: str) -> None:
    """Keep the best of each cell, of a store in which the study is finished.

    Raises:
        SystemExit: the command failed.
    """
    from rgr_dist.cli import call

    command = ["thresholds", study, "--format", "json"]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = call([*command, "--out", store])
    if status:
        raise SystemExit(status)
    rows = [json.dumps(row) for row in json.loads(out.getvalue())["best"]]
    kept = ",\n  ".join(rows)
    text = f'{{\n "command": "rgr {" ".join(command)}",\n "best": [\n  {kept}\n ]\n}}\n'
    (FOLDER / f"{study}.best.json").write_text(text, "utf-8")


@cache
def printed(name: str) -> Record:
    """A file of results."""
    result: Record = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return result


def _contexts(size: tuple[int, int], study: str = "contexts", **keys: float) -> str:
    """``18 [14–20] (2)`` of a cell of a study, with its keys beside the protocol's."""
    wanted = {**PROTOCOL, **keys}
    for row in printed(f"{study}.best")["best"]:
        named = {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", row["cell"])}
        own = {**PROTOCOL, **named}
        if (row["m"], row["d_model"]) == size and all(own[key] == wanted[key] for key in wanted):
            return _found(row)
    raise KeyError(f"{size}, {keys}")


def _found(row: Record) -> str:
    """``18 [14–20] (2)``."""
    if row["D_K"] is None:
        return "none"
    high = row["D_K_high"] if row["D_K_high"] is not None else "…"
    return f"{row['D_K']} [{row['D_K_low']}–{high}] ({row['h_star']})"


def lengths() -> str:
    """D_K* at every length, within as many contexts and with as many edges seen."""
    rows = []
    for size in SIZES:
        rows.append([size, "20,000 contexts", *(_contexts(size, length=one) for one in LENGTHS)])
        alike = (_contexts(size, length=one, max_steps=EDGES_SEEN / one) for one in LENGTHS)
        rows.append([size, "as many edges", *alike])
    return table(["cell", "trained on", *(f"ℓ = {length}" for length in LENGTHS)], rows)


def softmax_lengths() -> str:
    """D_K* under softmax at every length."""
    rows = [
        [size, *(_contexts(size, "softmax-contexts", length=one) for one in LENGTHS)]
        for size in SIZES[:2]
    ]
    return table(["cell", *(f"ℓ = {length}" for length in LENGTHS)], rows)


def rates() -> str:
    """D_K* at every rate."""
    rows = [[size, *(_contexts(size, positive_rate=rate) for rate in RATES)] for size in SIZES]
    return table(["cell", *(f"ρ = {rate}" for rate in RATES)], rows)


def binary() -> str:
    """Thresholds on binary rows beside those on Gaussian ones, by ten seeds alone."""
    found = printed_by_verbs("base-grid", "thresholds")["best"]
    gaussian = {(row["m"], row["d_model"]): row["D_K_first"] for row in found}
    rows = []
    for row in sorted(printed("binary.best")["best"], key=lambda r: (r["m"], r["d_model"])):
        beside = gaussian[row["m"], row["d_model"]]
        ratio = "–" if row["D_K"] is None else f"{row['D_K'] / beside:.2f}"
        share = math.log2(row["m"]) / row["d_model"]
        rows.append([row["m"], row["d_model"], f"{share:.2f}", _found(row), beside, ratio])
    header = ["m", "d_model", "share of ones", "binary: D_K* (h*)", "Gaussian: D_K*"]
    return table([*header, "binary/Gaussian"], rows)


def context_lengths(shown: str) -> str:
    """Shares of sources that Algorithm 2 gets right, by length."""
    rows = printed("context_lengths")["rows"]
    every = sorted({row["length"] for row in rows})
    sizes = dict.fromkeys((r["m"], r["d_model"], r["h"], r["d_k"], r["other_logit"]) for r in rows)
    lines = []
    for m, d_model, h, d_k, spread in sizes:
        at = {r["length"]: r for r in rows if (r["m"], r["d_model"], r["d_k"]) == (m, d_model, d_k)}
        shares = (f"{at[one][shown]:.2f}" for one in every)
        lines.append([f"({m}, {d_model})", h, d_k, f"{spread:.2f}", *shares])
    header = ["cell", "h", "d_k", "other heads' logits"]
    return table([*header, *(f"ℓ = {one}" for one in every)], lines)


def absent() -> str:
    """``0.01 to 0.97``: for what share of sources without their target no edge is found."""
    shares = [row["absent_right"] for row in printed("context_lengths")["rows"]]
    return f"{min(shares):.2f} to {max(shares):.2f}"


def skewed() -> str:
    """Trained thresholds of graphs with one large degree, beside Algorithm 5."""
    rows = [
        [
            f"({row['m']}, {row['d_model']})",
            row["delta"],
            _found(row),
            row["heads_of_5"],
            row["heads_of_B10"],
            f"{row['f1_of_5']:.2f}",
        ]
        for row in printed("skewed_graphs")["rows"]
    ]
    header = ["cell", "Δ", "trained: D_K* (h*)", "Algorithm 5: heads", "equitable"]
    return table([*header, "F1 at best, d_k → ∞"], rows)


def cost() -> str:
    """Seconds that Algorithm 1 takes, m down and d_model across."""
    rows = [row for row in printed("construction_cost")["rows"] if row["algorithm"] == "1"]
    at = {(row["m"], row["d_model"]): row for row in rows}
    widths = sorted({d_model for _, d_model in at})
    lines = [
        [f"{m:,}", at[m, widths[0]]["d_k"], *(f"{at[m, d]['seconds']:.2g}" for d in widths)]
        for m in sorted({m for m, _ in at})
    ]
    return table(["m", "d_k", *(f"d_model = {d}" for d in widths)], lines)


def power(name: str) -> str:
    """``0.99 [0.95, 1.03]``."""
    value, low, high = printed("construction_cost")[name]
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def margins() -> str:
    """The bound at the largest margin that the embedding allows, and at that of Algorithm 1."""
    found = printed_by_verbs("base-grid", "thresholds")["best"]
    trained = {(row["m"], row["d_model"]): row["D_K"] for row in found}
    rows = []
    for m, d_model in sorted(trained):
        cell = Cell.model_validate({"m": m, "d_model": d_model})
        norms = [np.linalg.norm(problem_of(cell, seed).X, 2) for seed in range(10)]
        ends = (float(np.mean(norms)) ** 2 / (m - 2), 1 / (2 * m))
        rows.append([m, d_model, *_at_margins(m, d_model, (0.5, *ends)), trained[m, d_model]])
    header = ["m", "d_model", "D_K at γ = 1/2", "largest γ", "D_K there", "γ of Algorithm 1"]
    return table([*header, "D_K there", "trained D_K*"], rows)


def _at_margins(m: int, d_model: int, at: Sequence[float]) -> list[str]:
    bits = graph_bits(m, m, "permutations")
    bound = [f"{counting_bound(bits, d_model, margin_bits(margin)):.1f}" for margin in at]
    return [bound[0], f"{at[1]:.3f}", bound[1], f"{at[2]:.4f}", bound[2]]


PIECES: dict[str, Callable[[], str]] = {
    "contexts lengths": lengths,
    "contexts rates": rates,
    "softmax-contexts": softmax_lengths,
    "binary thresholds": binary,
    "algorithm-2 present": partial(context_lengths, "present_right"),
    "algorithm-2 absent": partial(context_lengths, "absent_right"),
    "algorithm-2 absent-range": absent,
    "skewed thresholds": skewed,
    "construction cost": cost,
    "construction cost power-m": partial(power, "power_m_of_1"),
    "construction cost power-d": partial(power, "power_d_model_of_1"),
    "margins": margins,
}
