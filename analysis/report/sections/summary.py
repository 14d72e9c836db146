"""What was asked and found, in a few sentences and a few numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rgr_dist.analysis.budgets import step_limits
from rgr_dist.analysis.facts import tables as facts
from rgr_dist.analysis.findings import caveat, finding
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Section
from rgr_dist.analysis.phases import finding as phases_finding
from rgr_dist.analysis.phases import is_of_phases, one_head_finding
from rgr_dist.analysis.runs import cost_of
from rgr_dist.analysis.thresholds.rows import cells_of
from rgr_dist.analysis.wording import clock, plural, span


def findings(results: StudyResults) -> list[str]:
    """What the study found, in sentences; the first is its title."""
    study = results.study
    if is_of_phases(study):
        return [phases_finding(results)]
    if study.record.finds == "D_V":
        fails = facts.wider_fails(results) if study.search.total else set()
        found = facts.headline(facts.rows_of_facts(results), study, len(fails))
        return [found, *_misses(results, fails)]
    if study.record.algorithm == "one-head":
        return [one_head_finding(results)]
    of_D_K = study.record.finds == "D_K"
    return [finding(results), *filter(None, [caveat(results)] if of_D_K else [])]


def _misses(results: StudyResults, fails: set[str]) -> list[str]:
    """In how many cells of a fixed total a wider split misses the target, but not for certain."""
    if not results.study.search.total or results.study.search.seeds == 1:
        return []
    n, cells = len(facts.wider_fails(results, "mean_score") - fails), len(results.study.cells)
    of = f"In {n} of {plural(cells, 'cell')} the mean of a wider split misses the target again"
    return [f"{of}, though its 95 % interval reaches it."] if n else []


def section(results: StudyResults) -> Section:
    """The head of the page."""
    study = results.study
    digests = dict.fromkeys(getattr(cell.graph, "digest", "") for cell in study.cells)
    names = (Path(study.files.get(one, {}).get("file", "a list")).name for one in digests)
    values: dict[str, Any] = {"cells": cells_of(results), "edge_lists": ", ".join(names)}
    one_limit = step_limits.limits(results).empty
    if study.record.finds == "D_K":
        values |= {"one_limit": one_limit}
    steps = span([cell.training.max_steps for cell in study.cells])
    is_trained = study.record.algorithm is None
    values["within"] = f", within {steps} steps" if one_limit and is_trained else ""
    return Section(
        name="summary",
        title=f"Study {study.name}",
        template="summary",
        words=findings(results),
        values=values
        | {"one": True, "study": study, "finds": study.record.finds, "tiles": _tiles(results)},
    )


def _tiles(results: StudyResults) -> list[tuple[str, str]]:
    study, cells = results.study, cells_of(results)
    axis, tiles = study.search.sizes, []
    if is_of_phases(study):
        tiles.append((plural(study.search.seeds, "seed"), "at each size and head count"))
    elif study.record.finds_thresholds:
        found = [row for row in cells if row["status"] == "found"]
        tiles.append((f"{len(found)} of {len(cells)}", "cells with a final threshold"))
        widths = [row[axis.total] for row in cells if row[axis.total] is not None]
        arms = [row[axis.best_arm] for row in cells if row[axis.best_arm] is not None]
        if widths:
            tiles.append((span(widths, " – "), f"{axis.total}* across the cells"))
        if widths and axis.has_rivals:
            tiles.append((span(arms, " – "), "h*, best number of heads"))
    else:
        tiles.append((plural(study.search.seeds, "seed"), "at each split"))
    tiles.append((clock(float(cost_of(results)["seconds"].sum())), "processor time"))
    return tiles
