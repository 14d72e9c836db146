"""How a study was measured: what differs from the paper, what trained it, what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.runs import asked, cost_of
from rgr_dist.analysis.wording import MISSING, duration, plural
from rgr_dist.paper import SEEDS, TABLE_2_MAX_STEPS
from rgr_dist.study.families import Gaussian
from rgr_dist.study.search import Search
from rgr_dist.study.study import Study
from rgr_dist.study.training import Context, Training

FEW = 3
"""The most cells to name where a setting differs; more are counted."""


def differences(study: Study) -> pd.DataFrame:
    """What differs from the paper in training and judging: ``setting, here, the paper``.

    The paper's values are those of App. A.1 and Table 2, or of the model's own section; a setting
    that it leaves open cannot differ. Graphs, sizes and the search, except for its target and
    seeds, are what a study asks, not how.
    """
    ours: dict[tuple[str, str], dict[str, list[str]]] = {}  # (setting, theirs): ours: cells
    for cell in study.cells:
        training = Training(**cell.record.defaults)
        limit = TABLE_2_MAX_STEPS.get((cell.m, cell.d_model))
        if limit is not None and cell.model == "max":
            training = training.model_copy(update={"max_steps": limit})
        usual = {"training": training, "context": Context(), "embedding": Gaussian()}
        papers = _flat({name: part.model_dump(mode="json") for name, part in usual.items()})
        for name, value in _flat(cell.model_dump(mode="json")).items():
            judged = name.startswith(("training.", "context.", "embedding."))
            if judged and not name.endswith(".digest") and value != papers.get(name):
                told = ours.setdefault((name, _text(papers.get(name))), {})
                told.setdefault(_text(value), []).append(study.name_of(cell))
    rows = [
        (name, ", ".join(_with_cells(*each, study) for each in values.items()), theirs)
        for (name, theirs), values in ours.items()
    ]
    search, own = study.search, Search()
    of_search = (
        ("search.target", search.target, study.cells[0].record.target or own.target),
        ("search.seeds", search.seeds, SEEDS.get(study.record.name, 10)),
        ("search.confirm_seeds", search.confirm_seeds, 0),
    )
    if study.record.finds == "D_K":
        rows += [(name, _text(here), _text(paper)) for name, here, paper in of_search
                 if here != paper]  # fmt: skip
    return pd.DataFrame(rows, columns=["setting", "here", "the paper"])


def _with_cells(value: str, cells: list[str], study: Study) -> str:
    """A value with the cells that have it, unless all do."""
    if len(cells) == len(study.cells):
        return value
    return f"{value} ({'; '.join(cells) if len(cells) <= FEW else plural(len(cells), 'cell')})"


def cost(results: StudyResults) -> str:
    """Runs, training steps and processor time, in a sentence."""
    total = cost_of(results)[["runs", "failed", "steps", "seconds"]].sum()
    runs, failed = plural(int(total["runs"]), "run"), int(total["failed"])
    lost = f", {failed:,} of them failed" if failed else ""
    steps, seconds = plural(int(total["steps"]), "training step"), duration(total["seconds"])
    return f"{runs}{lost}: {steps} in {seconds} of processor time."


def origins(results: StudyResults) -> str:
    """What trained the runs: engines, versions, revisions, processors, in a sentence."""
    ours = asked(results.runs, results.study)
    told = [
        f"{title} {_counted(ours[column])}"
        for title, column in (
            ("engine", "engine"),
            ("versions", "versions"),
            ("revision", "git_revision"),
            ("processor", "device"),
        )
    ]
    return f"Trained by {'; '.join(told)}."


def _counted(column: pd.Series[Any]) -> str:
    counts = column.dropna().astype(str).value_counts()
    if len(counts) < 2:
        return str(counts.index[0]) if len(counts) else MISSING
    return ", ".join(f"{name} ({plural(int(n), 'run')})" for name, n in counts.items())


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        inner = isinstance(value, dict)
        flat |= _flat(value, f"{prefix}{name}.") if inner else {f"{prefix}{name}": value}
    return flat


def _text(value: Any) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value}"
