"""Where the numbers come from: the study's settings, what trained its runs, how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Section, Table
from rgr_dist.analysis.runs import asked
from rgr_dist.analysis.wording import MISSING, plural, span
from rgr_dist.paper import SEEDS, TABLE_2_MAX_STEPS
from rgr_dist.study.address import PROTOCOL
from rgr_dist.study.construction import Construction
from rgr_dist.study.families import Gaussian
from rgr_dist.study.search import Search
from rgr_dist.study.study import Study
from rgr_dist.study.training import Context, Training

CONFIRMED = (
    " The threshold of the best head count must pass once more, on {} fresh seeds, and so must "
    "every threshold that keep_heads or keep_within: none asks for. The paper has no such test."
)
SEARCH = (
    "The paper trains a coarse grid of widths. Here the search trains every d_k next to a "
    "threshold, so that a threshold is exact to one d_k: it passes, and d_k − 1 was trained and "
    "fails. A probe, the runs of one (cell, h, d_k), stops once no remaining seed can change its "
    "verdict."
)


FEW = 6
"""The most cells to name where a setting differs; more are counted, if their names show it."""


def protocol(results: StudyResults) -> Section:
    """Every setting, after those that differ from the paper's."""
    study = results.study
    apart, words, shown = differences(study), [], []
    if study.search.mode == "threshold":
        fresh = study.search.confirm_seeds
        words.append(SEARCH + (CONFIRMED.format(fresh) if fresh else ""))
    if apart:
        heads = "setting", "here", "the paper"
        shown.append(_listed("table-paper", "What differs from the paper.", heads, apart))
    else:
        words.append("No setting of training or of judging differs from the paper.")
    shown.append(_listed("table-settings", "Every setting.", ("setting", "value"), settings(study)))
    return Section(name="protocol", title="Protocol", words=words, shown=shown)


def provenance(results: StudyResults) -> Section:
    """What trained the runs: engines, versions, revisions, processors, seeds and dates."""
    rows = origins(results.runs, results.study)
    table = _listed("table-origins", "What trained the runs.", ("what", "value"), rows)
    return Section(name="provenance", title="Provenance", shown=(table,))


def _listed(name: str, caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of texts that get no markup, since they are not ours."""
    columns = [Column(head, head, text=True, names=True) for head in heads]
    listed = [dict(zip(heads, row, strict=True)) for row in rows]
    return Table(name=name, caption=caption, columns=columns, rows=listed, cell=None)


def repeat(results: StudyResults) -> Section:
    """How to repeat the study: the commands that train it again and explain a threshold."""
    study = results.study
    file = shlex.quote(f"{study.name}.yaml")
    cell = study.name_of(study.cells[0])
    commands = [
        (f"rgr plan {file}", "what it will cost"),
        (f"rgr run {file}", "trains what is missing, and writes this page"),
        (f"rgr thresholds {file}", "the threshold of every cell and head count"),
        (f"rgr fit {file}", "the laws"),
        (f"rgr explain {file} --cell {shlex.quote(cell)}", "every decision behind a threshold"),
    ]
    if not study.record.finds_thresholds:
        commands = commands[:2]
    return Section(
        name="repeat",
        title="How to repeat it",
        template="repeat",
        values={"commands": commands, "study_yaml": study.to_yaml(), "file": f"{study.name}.yaml"},
    )


def settings(study: Study, most: float = FEW) -> list[tuple[str, str]]:
    """Every setting that the model uses, as (name, value), with the cells that have each value.

    Args:
        most: the most cells to name for a value; more are counted, if each name shows the value.
    """
    values: dict[str, dict[str, list[str]]] = {}
    for cell in study.cells:
        unused = {"m", "d_model", *cell.record.unused_keys}
        if cell.record.algorithm is None:
            unused |= {f"construction.{name}" for name in Construction.model_fields}
        for name, value in _flat(cell.model_dump(mode="json")):
            if name not in unused:
                values.setdefault(name, {}).setdefault(_text(value), []).append(study.name_of(cell))
    rows = [("training protocol version", str(PROTOCOL))]
    for name, cells in values.items():
        if len(cells) == 1:
            rows.append((name, next(iter(cells))))
            continue
        common = max(cells, key=lambda text: len(cells[text]))
        others = {text: _who(name, of, most) for text, of in cells.items() if text != common}
        told = ", ".join(f"{text} ({who})" for text, who in others.items())
        rows.append((name, f"{common}, but {told}"))
    search = study.search.model_dump(mode="json")
    return rows + [(f"search.{name}", _text(value)) for name, value in _flat(search)]


def differences(study: Study) -> list[tuple[str, str, str]]:
    """What differs from the paper in training and judging: setting, its value here, the paper's.

    The paper's values are those of App. A.1 and Table 2, or of the model's own section; a setting
    that it leaves open cannot differ. Graphs, sizes and the search, except for its target and
    seeds, are what a study asks, not how.
    """
    ours: dict[str, dict[str, dict[str, list[str]]]] = {}  # setting, theirs, ours: cells
    for cell in study.cells:
        training = Training(**cell.record.training)
        limit = TABLE_2_MAX_STEPS.get((cell.m, cell.d_model))
        if limit is not None and cell.model == "max":
            training = training.model_copy(update={"max_steps": limit})
        usual = {"training": training, "context": Context(), "embedding": Gaussian()}
        papers = dict(_flat({name: part.model_dump(mode="json") for name, part in usual.items()}))
        for name, value in _flat(cell.model_dump(mode="json")):
            judged = name.startswith(("training.", "context.", "embedding."))
            if judged and name not in cell.record.unused_keys and value != papers.get(name):
                told = ours.setdefault(name, {}).setdefault(_text(papers.get(name)), {})
                told.setdefault(_text(value), []).append(study.name_of(cell))
    rows = [
        (name, ", ".join(_with_cells(name, *each, study) for each in values.items()), theirs)
        for name, by_theirs in ours.items()
        for theirs, values in by_theirs.items()
    ]
    search = study.search
    of_search = (
        ("search.target", search.target, study.cells[0].record.target or Search().target),
        ("search.seeds", search.seeds, SEEDS.get(study.record.name, Search().seeds)),
        ("search.confirm_seeds", search.confirm_seeds, 0),
    )
    if study.record.finds == "D_K":
        rows += [(name, _text(own), _text(paper)) for name, own, paper in of_search if own != paper]
    return rows


def _with_cells(name: str, value: str, cells: list[str], study: Study) -> str:
    """A value with the cells that have it, unless all do."""
    return value if len(cells) == len(study.cells) else f"{value} ({_who(name, cells)})"


def _who(setting: str, cells: list[str], most: float = FEW) -> str:
    tell_it = all(f",{setting.split('.')[-1]}=" in cell for cell in cells)
    return f"{len(cells)} cells" if tell_it and len(cells) > most else "; ".join(cells)


def origins(runs: pd.DataFrame, study: Study) -> list[tuple[str, str]]:
    """What trained the study's runs: engines, versions, revisions, processors, seeds and dates."""
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
    rows.append(("seeds", span([seeds[0], seeds[-1]]) if seeds else MISSING))
    finished = pd.to_datetime(ours["finished_at"], utc=True).dropna()
    if len(finished):
        first, last = (f"{end:%Y-%m-%d %H:%M} UTC" for end in (finished.min(), finished.max()))
        rows.append(("runs ended", first if first == last else f"{first} to {last}"))
    return rows


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
    if value is None or value == []:
        return "none"
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value}"
