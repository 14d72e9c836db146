"""Frozen embeddings beside trained ones, and beside those that several relations share."""

from __future__ import annotations

import re

from rgr_dist.analysis.embeddings import embeddings, finding
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.report import page_of, sections
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up


def results_of(widths: dict[int, list[int]], heads: dict[int, int]) -> StudyResults:
    """Three sizes with D_K by number of relations, 0 for frozen, at so many heads."""
    cells = [
        {"m": 64, "d_model": d_model, "training": {"embeddings": "trained", "relations": n}}
        if n
        else {"m": 64, "d_model": d_model}
        for n in widths
        for d_model in (16, 32, 64)
    ]
    study = parse_study({"name": "x", "cells": cells, "search": {"heads": [1, 2]}})
    rows = []
    for cell in study.cells:
        n = cell.training.relations if cell.training.embeddings == "trained" else 0
        D_K, h = widths[n][(16, 32, 64).index(cell.d_model)], heads[n]
        rows.append(made_up.threshold_row(cell, h, D_K // h))
        rows.append(made_up.threshold_row(cell, 3 - h, None, status="pruned", D_K_low=2 * D_K))
    return made_up.results_of(study, [], rows)


def test_trained_embeddings_are_told_by_their_widths_beside_the_frozen_ones() -> None:
    results = results_of({0: [40, 20, 12], 1: [8, 6, 4]}, {0: 2, 1: 1})
    assert re.findall(r"[0-9–]+", finding(results)) == ["4–8", "1", "12–40", "3"]


def test_shared_embeddings_are_told_by_where_several_heads_are_best() -> None:
    widths = {0: [40, 20, 12], 1: [4, 4, 4], 4: [6, 6, 6], 16: [12, 10, 8], 64: [16, 14, 12]}
    results = results_of(widths, {0: 2, 1: 1, 4: 1, 16: 2, 64: 2})
    assert "16" in finding(results)
    (ax,) = sections(results)[0].figures[0].draw(width=3.3).figure.axes
    lines = [line for line in ax.get_lines() if len(line.get_xdata()) == 4]
    assert sorted(tuple(map(float, line.get_ydata())) for line in lines) == sorted(
        tuple(float(widths[n][at]) for n in (1, 4, 16, 64)) for at in range(3)
    )
    levels = {float(line.get_ydata()[0]) for line in ax.get_lines() if line.get_linestyle() == "--"}
    assert levels == {40.0, 20.0, 12.0}
    assert "<svg" in page_of(results)


def test_every_cell_says_how_many_relations_share_its_embeddings() -> None:
    table = embeddings(results_of({0: [40, 20, 12], 8: [8, 6, 4]}, {0: 2, 8: 1}))
    assert table["relations"].tolist() == [0, 0, 0, 8, 8, 8]
    assert table["D_K"].tolist() == [40, 20, 12, 8, 6, 4]
