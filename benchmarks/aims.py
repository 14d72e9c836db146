"""The project's aims in speed, measured in one run and printed as one table by ``make bench``.

    python benchmarks/aims.py [STUDY …] [--keep FOLDER] [--format table|json|csv]

It runs the benchmarks that measure the aims, each in a process of its own, one after another:
``throughput.py --threads 2``, ``step_parts.py``, ``facts_throughput.py``, ``scale.py`` with 5,000
probes, and ``whole_studies.py`` with all its studies or those named. The folder keeps what each of
them printed, as JSON. For a rate, ``measured`` has every shape's median over rounds that alternate
with JAX's, and ``spread`` is the largest share by which the rate of ``fused`` varied: a ratio that
is closer to its aim than that decides little. Each study and the driver are timed once.
``reached`` counts the shapes whose measured value reaches the aim.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How

HERE = Path(__file__).parent
MODELS = ("max", "softmax", "value", "transformer")
PARTS: dict[str, list[str]] = {
    "throughput": ["--threads", "2", *(word for name in MODELS for word in ("--models", name))],
    "step_parts": [],
    "facts_throughput": [],
    "scale": ["--probes", "5000"],
    "whole_studies": [],
}
"""The benchmarks with their options, in the order in which they run."""
TIMES_JAX = {"softmax": 3.0, "value": 3.0, "transformer": 3.0, "max": None, "facts": None}
"""How many times as fast as JAX each model should train on one core; None if there is no aim."""
TRANSFORMER_SHARE, SMALLEST_SHARE = 0.5, 0.45
"""Least share of a core's peak, for the transformer and for ``max`` at the smallest shape."""
SMALLEST = (64, 16, 4, 20)
"""m, d_model, h and D_K of that shape."""
MINUTES = {"gpt2-small": 6.0, "base-grid": 100 / 60, "budget": 20.0, "diagonal": 60.0}
"""Most minutes that a study should take on two cores."""
UTILISED = {"quickstart": 0.85, "base-grid": 0.95}
"""Least share of their time that a study's workers should train."""
PROBES_PER_SECOND = 100.0

Row = dict[str, Any]


def aim_rows(results: dict[str, Any]) -> Iterator[Row]:
    """A row for each aim, with what was measured.

    Args:
        results: what each benchmark printed as JSON, by its name.
    """
    rates = [row for row in results["throughput"]["rows"] if row["threads"] == 1]
    fused = [row for row in rates if row["engine"] == "fused"]
    facts = [row for row in results["facts_throughput"]["rows"] if row["engine"] == "fused"]
    for model, times in TIMES_JAX.items():
        rows = facts if model == "facts" else [row for row in fused if row["model"] == model]
        yield compared(f"{model}, times JAX", rows, "vs_jax", times)
    transformers = [row for row in fused if row["model"] == "transformer"]
    yield compared("transformer, share of peak", transformers, "share_of_peak", TRANSFORMER_SHARE)
    smallest = [
        row
        for row in fused
        if row["model"] == "max" and tuple(row[n] for n in ("m", "d_model", "h", "D_K")) == SMALLEST
    ]
    yield compared("smallest max, share of peak", smallest, "share_of_peak", SMALLEST_SHARE)
    studies = {row["study"]: row for row in results["whole_studies"]["studies"]}
    for name, minutes in MINUTES.items():
        if name in studies:
            took = studies[name]["seconds"] / 60
            yield once(f"{name}, minutes", took, f"at most {minutes:.3g}", took <= minutes)
    for name, share in UTILISED.items():
        if name in studies:
            busy = studies[name]["utilisation"]
            yield once(f"{name}, workers utilised", busy, f"at least {share}", busy >= share)
    pace = results["scale"]["driver"][-1]["probes_per_second"]
    aim = f"at least {PROBES_PER_SECOND:.0f}"
    yield once("one driver, probes a second", pace, aim, pace >= PROBES_PER_SECOND)


def compared(what: str, rows: list[Row], column: str, least: float | None) -> Row:
    """The row of a rate: its values in the order of the shapes, except any without a peer."""
    values = [row[column] for row in rows if row[column] is not None]
    row: Row = {
        "what": what,
        "aim": None if least is None else f"at least {least:g}",
        "measured": ", ".join(f"{value:.2g}" for value in values),
        "spread": max((row["spread"] for row in rows), default=None),
    }
    if least is None or not values:
        return row | {"reached": None}
    return row | {"reached": f"{sum(value >= least for value in values)} of {len(values)}"}


def once(what: str, value: float, aim: str, reached: bool) -> Row:
    """The row of something timed once."""
    row: Row = {"what": what, "aim": aim, "measured": f"{value:.3g}", "spread": None}
    return row | {"reached": "yes" if reached else "no"}


def machine() -> dict[str, Any]:
    """The machine that ran the benchmarks."""
    told = Path("/proc/cpuinfo")
    words = told.read_text() if told.exists() else ""
    name = re.search(r"^model name\s*: (.*)$", words, re.MULTILINE)
    return {
        "processor": name[1].strip() if name else platform.machine(),
        "cores": os.cpu_count(),
        "avx512": "avx512f" in words,
        "load": round(os.getloadavg()[0], 2),
    }


def main(
    studies: Annotated[list[str] | None, typer.Argument(help="five studies by default")] = None,
    keep: Annotated[Path, typer.Option(help="folder of what each printed")] = Path("results-bench"),
    how: How = Format.TABLE,
) -> None:
    """Measure every aim; print the table at the end."""
    messages, facts, results = Console(stderr=True), machine(), {}
    keep.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    for name, options in PARTS.items():
        named = (studies or []) if name == "whole_studies" else []
        messages.rule(f"{name}, after {(time.monotonic() - began) / 60:.0f} minutes")
        command = [sys.executable, str(HERE / f"{name}.py"), *named, *options, "--format", "json"]
        printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        Path(keep, f"{name}.json").write_text(printed)
        results[name] = json.loads(printed)
        if how is Format.TABLE:
            print_listing(results[name], how)
    facts["minutes"] = round((time.monotonic() - began) / 60)
    aims = list(aim_rows(results))
    Path(keep, "aims.json").write_text(json.dumps({"aims": aims, **facts}, indent=2))
    print_listing({"aims": aims}, how, facts=facts)


if __name__ == "__main__":
    typer.run(main)
