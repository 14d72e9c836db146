"""Frozen embeddings beside trained ones, and beside those that several relations share."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rgr_dist.analysis.embeddings import embeddings, finding, geometry, of_rows
from rgr_dist.analysis.figures import style
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.report import page_of, sections
from rgr_dist.analysis.tables import best
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up
from tests.analysis.studies import made


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


def test_trained_and_frozen_embeddings_are_two_lines_through_their_widths() -> None:
    widths = {0: [40, 20, 12], 1: [8, 6, 4]}
    results = results_of(widths, {0: 2, 1: 1})
    (ax,) = sections(results)[0].figures[0].draw(width=3.3).figure.axes
    lines = {
        words.get_text(): (line.get_linestyle(), line.get_ydata().tolist())
        for words, line in zip(
            ax.texts, [one for one in ax.get_lines() if len(one.get_xdata()) == 3], strict=True
        )
    }
    assert lines == {"trained": ("-", widths[1][::-1]), "frozen": ("--", widths[0][::-1])}


def test_a_kind_of_rows_of_which_nothing_passes_has_an_arrow_at_its_bound() -> None:
    results = made("rows")
    figure = sections(results)[0].figures[0]
    axes, table = figure.canvas().axes, best(results)
    assert "arrow" in figure.caption
    for ax, (_, own) in zip(axes, table.groupby("max_steps"), strict=True):
        shown = own["D_K"].fillna(own["D_K_low"]).astype(float)
        marked = [
            float(line.get_ydata()[0])
            for line in ax.get_lines()
            if str(line.get_gid() or "").startswith(style.TIP)
        ]
        assert sorted(marked) == sorted(shown)


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


def test_how_rows_lie_by_hand() -> None:
    told = of_rows(np.array([[3.0, 0.0], [0.0, 4.0], [-6.0, 0.0]]))
    assert told["condition"] == pytest.approx(np.sqrt(45) / 4)
    assert told["participation"] == pytest.approx(61**2 / (45**2 + 16**2))
    lengths = np.linalg.eigvalsh(np.cov([[3.0, 0, -6], [0, 4, 0]]))
    assert told["centred"] == pytest.approx(lengths.sum() ** 2 / (lengths**2).sum())
    assert (told["cosine"], told["nearest"]) == pytest.approx((-1 / 3, 0.0))


def test_kinds_of_rows_stand_beside_each_other() -> None:
    results = made("rows")
    table = best(results)
    first, last = (
        table["D_K"][(table["m"] == 64) & (table["max_steps"] == T)] for T in (5000, 20_000)
    )
    told = finding(results)
    for name, *widths in zip(("gaussian", "binary"), first, last, strict=True):
        assert f"{widths[0]} to {widths[1]} ({name})" in told, "at 128 no width passes"
    rows = geometry(results.study)
    assert [*zip(rows["rows"], rows["m"], strict=True)] == [
        (name, m) for m in (64, 128) for name in ("gaussian", "binary")
    ]
    section = sections(results)[0]
    axes = section.figures[0].draw(width=6.9)
    assert (len(axes), len(section.tables[0].rows)) == (2, 4)
