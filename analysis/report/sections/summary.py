"""What was asked and found, in three sentences and a few numbers."""

from __future__ import annotations

from rgr_dist.analysis.budgets import section as budgets
from rgr_dist.analysis.budgets.step_limits import limits
from rgr_dist.analysis.facts import section as facts
from rgr_dist.analysis.laws import conclusions
from rgr_dist.analysis.laws.fits import fits_of
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Section
from rgr_dist.analysis.runs import cost_of
from rgr_dist.analysis.splits import section as accuracy
from rgr_dist.analysis.thresholds import findings
from rgr_dist.analysis.thresholds.best import best_of
from rgr_dist.analysis.thresholds.rows import cells_of
from rgr_dist.analysis.wording import clock


def section(results: StudyResults) -> Section:
    """The head of the page."""
    study = results.study
    if not study.record.finds_thresholds:
        return accuracy.summary(results)
    if not study.record.finds_D_K:
        return facts.summary(results)
    words = [
        findings.asked(study, cells_of(results)),
        conclusions.headline(fits_of(results), best_of(results)),
        *budgets.sentences(results),
        findings.unfinished(cells_of(results)),
    ]
    return Section(
        name="summary",
        title=f"Study {study.name}",
        template="summary",
        values={
            "sentences": [sentence for sentence in words if sentence],
            "tiles": _tiles(results),
            "target": findings.target_words(study),
            "score": findings.score_words(study),
            "limit": " ".join(
                [
                    *([budgets.ONE_LIMIT] if limits(results).empty else []),
                    *([findings.ONE_SEED] if study.search.seeds == 1 else []),
                ]
            ),
        },
    )


def _tiles(results: StudyResults) -> list[tuple[str, str]]:
    cells, cost = cells_of(results), cost_of(results)
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
