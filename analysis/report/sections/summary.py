"""What was asked and found, in three sentences and a few numbers."""

from __future__ import annotations

from analysis import budgets
from analysis.report import findings
from analysis.report.section import Section
from analysis.report.tables import Tables
from analysis.wording import clock


def section(tables: Tables) -> Section:
    """The head of the page."""
    study = tables.study
    words = [
        findings.asked(study, tables.cells),
        findings.found(tables.cells, study.has_budgets),
        findings.headline(tables.fits, tables.best),
        *budgets.sentences(tables.limits, tables.results),
        findings.unfinished(tables.cells),
    ]
    return Section(
        name="summary",
        title=f"Study {study.name}",
        template="summary",
        values={
            "sentences": [sentence for sentence in words if sentence],
            "tiles": _tiles(tables),
            "target": findings.target_words(study),
            "score": findings.score_words(study),
            "limit": " ".join(
                [
                    *([budgets.ONE_LIMIT] if tables.limits.empty else []),
                    *([findings.ONE_SEED] if study.search.seeds == 1 else []),
                ]
            ),
        },
    )


def _tiles(tables: Tables) -> list[tuple[str, str]]:
    cells, cost = tables.cells, tables.cost
    found = [row for row in cells if row["status"] == "found"]
    tiles = [(f"{len(found)} of {len(cells)}", "cells with a final threshold")]
    widths = [row["D_K"] for row in cells if row["D_K"] is not None]
    if widths:
        low, high = min(widths), max(widths)
        tiles.append(
            (f"{low:,}" if low == high else f"{low:,} – {high:,}", "D_K* across the cells")
        )
        heads = [row["h_star"] for row in cells if row["h_star"] is not None]
        low, high = min(heads), max(heads)
        tiles.append((f"{low}" if low == high else f"{low} – {high}", "h*, best number of heads"))
    tiles.append((f"{int(cost['runs'].sum()):,}", "training runs"))
    tiles.append((f"{int(cost['steps'].sum()) / 1e6:,.1f} M", "training steps"))
    tiles.append((clock(float(cost["seconds"].sum())), "processor time"))
    return tiles
