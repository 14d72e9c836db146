"""What every report page shares: the templates, the cost, the protocol, tables as plain rows."""

from __future__ import annotations

from typing import Any

import jinja2
import pandas as pd

from analysis import wording
from analysis.load import StudyResults
from analysis.records import integer, real
from analysis.report.provenance import cost_words, origins, settings
from rgr_dist import paper


def render_page(template: str, results: StudyResults, cost: pd.DataFrame, **own: Any) -> str:
    """A page as HTML, with the cost, protocol and provenance of the study.

    Args:
        template: its file name.
        cost: the table of ``analysis.runs.cost``.
        own: what this template shows besides.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("analysis.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["duration"] = wording.duration
    study = results.study
    return environment.get_template(template).render(
        study=study,
        study_yaml=study.to_yaml(),
        degrees=any(cell.graph.degree != 1 for cell in study.cells),
        differs=study.differences if study.has_alike_cells else None,
        cost=by_size(cost),
        cost_words=cost_words(cost),
        settings=settings(study),
        origins=origins(results.runs, study),
        wording=wording,
        paper=paper,
        **own,
    )


def by_size(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows sorted by m, d_model and degree; ties keep their order."""
    return sorted(rows_of(table), key=lambda row: (row["m"], row["d_model"], row["degree"]))


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The table's rows with plain values: whole numbers as int, missing ones as None."""
    whole = [name for name in table if pd.api.types.is_integer_dtype(table[name].dtype)]
    whole += [name for name in ("d_k", "D_K", "D_K_low", "D_K_high", "n_seeds") if name in table]
    broken = [name for name in table if pd.api.types.is_float_dtype(table[name].dtype)]
    rows = table.astype("object").to_dict("records")
    for row in rows:
        row |= {name: None for name, value in row.items() if pd.isna(value)}
        row |= {name: real(row[name]) for name in broken if row[name] is not None}
        row |= {name: integer(row[name]) for name in whole if row[name] is not None}
    return [{str(name): value for name, value in row.items()} for row in rows]
