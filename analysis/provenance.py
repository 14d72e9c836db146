"""How the numbers came about: every setting of the study, what was spent, and on what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.wording import MISSING, plural
from rgr_dist.study.study import PROTOCOL, Study

COST_KINDS = {
    "cell_id": "object", "m": "Int64", "d_model": "Int64", "degree": "Int64", "probes": "int64",
    "runs": "int64", "failed": "int64", "at_limit": "int64", "spared": "int64", "steps": "int64",
    "seconds": "float64",
}  # fmt: skip


def settings(study: Study) -> list[tuple[str, str]]:
    """Every setting that the model uses as (name, value); where cells differ, which has what."""
    values: dict[str, dict[str, list[str]]] = {}
    for cell in study.cells:
        for name, value in _flat(cell.model_dump(mode="json")):
            if name not in {"m", "d_model", *cell.record.unused_keys}:
                values.setdefault(name, {}).setdefault(_text(value), []).append(study.name_of(cell))
    rows = [("training protocol version", str(PROTOCOL))]
    for name, cells in values.items():
        if len(cells) == 1:
            rows.append((name, next(iter(cells))))
            continue
        common = max(cells, key=lambda text: len(cells[text]))
        others = [f"{text} ({'; '.join(who)})" for text, who in cells.items() if text != common]
        rows.append((name, f"{common}, but {', '.join(others)}"))
    search = study.search.model_dump(mode="json")
    return rows + [(f"search.{name}", _text(value)) for name, value in _flat(search)]


def asked(runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The runs of the study's cells, heads and seeds, those of retests and failed ones included."""
    cells = [cell.cell_id for cell in study.trained_cells]
    ours = runs["cell_id"].isin(cells) & runs["h"].map(study.search.lists)
    return runs[ours & (runs["seed"] < study.search.seeds + study.search.extra_seeds)]


def cost(runs: pd.DataFrame, study: Study) -> pd.DataFrame:
    """What each cell of the study took, in the study's order.

    Returns:
        ``cell_id, m, d_model, degree, probes, runs, failed, at_limit, spared, steps, seconds``:
        runs, steps and seconds are of retests and their extra seeds too, where the study has them;
        failed counts runs that could not be trained, at_limit those that used up their steps,
        spared the seeds of its probes that did not run; steps are contexts, seconds wall time of
        one core or device, shared out among the runs that trained together.
    """
    ours = asked(runs, study)
    rows = []
    for cell in study.cells:
        longer = study.longer(cell)
        names = {cell.cell_id, *([] if longer is None else [longer.cell_id])}
        own = ours[ours["cell_id"].isin(names)]
        good = own[own["stop_reason"] != "failed"]
        plain = good[(good["cell_id"] == cell.cell_id) & (good["seed"] < study.search.seeds)]
        probes = plain.groupby(["h", "d_k"])["seed"].nunique()
        rows.append(
            {
                "cell_id": cell.cell_id,
                "m": cell.m,
                "d_model": cell.d_model,
                "degree": cell.graph.degree,
                "probes": len(probes),
                "runs": len(own),
                "failed": len(own) - len(good),
                "at_limit": int((own["stop_reason"] == "max_steps").sum()),
                "spared": int((study.search.seeds - probes).sum()),
                "steps": int(own["steps"].sum()),
                "seconds": float(own["seconds"].sum()),
            }
        )
    frame = pd.DataFrame(rows, columns=list(COST_KINDS), dtype="object")
    return frame.astype({name: kind for name, kind in COST_KINDS.items() if kind != "object"})


def cost_words(costs: pd.DataFrame) -> str:
    """What the whole study took, in a sentence or two."""
    total = costs[["probes", "runs", "failed", "spared", "steps", "seconds"]].sum()
    if not total["runs"]:
        return "Nothing has been trained yet."
    steps, seconds = int(total["steps"]), float(total["seconds"])
    rate = f", {steps / seconds:,.0f} steps per second" if seconds > 0 else ""
    text = (
        f"{plural(int(total['runs']), 'run')} of {plural(int(total['probes']), 'probe')}: "
        f"{plural(steps, 'training step')} in {duration(seconds)} of processor time{rate}. "
        f"{plural(int(total['spared']), 'seed')} of these probes did not run: "
        "no verdict needed them yet."
    )
    return text + (f" {plural(int(total['failed']), 'run')} failed." if total["failed"] else "")


def origins(runs: pd.DataFrame, study: Study) -> list[tuple[str, str]]:
    """Engines, versions, revisions and processors behind the study's runs, with their counts."""
    ours = asked(runs, study)
    rows = [
        (title, _counted(ours[column]))
        for title, column in (
            ("engine", "engine"),
            ("versions", "versions"),
            ("source revision", "git_revision"),
            ("processor", "device"),
            ("stop reason", "stop_reason"),
        )
    ]
    seeds = sorted({int(seed) for seed in ours["seed"]})
    rows.append(("seeds", f"{seeds[0]} to {seeds[-1]}" if seeds else MISSING))
    finished = pd.to_datetime(ours["finished_at"], utc=True).dropna()
    if len(finished):
        first, last = (f"{end:%Y-%m-%d %H:%M} UTC" for end in (finished.min(), finished.max()))
        rows.append(("runs ended", first if first == last else f"{first} to {last}"))
    return rows


def duration(seconds: float) -> str:
    """``12.3 s``, ``4 min 05 s``, ``3 h 07 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60:,} h {minutes % 60:02d} min"


def _counted(column: pd.Series[Any]) -> str:
    counts = column.dropna().astype(str).value_counts()
    if counts.empty:
        return MISSING
    if len(counts) == 1:
        return str(counts.index[0])
    return "; ".join(f"{name} ({plural(int(n), 'run')})" for name, n in counts.items())


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in values.items():
        inner = isinstance(value, dict)
        rows += _flat(value, f"{prefix}{name}.") if inner else [(f"{prefix}{name}", value)]
    return rows


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value}"
