"""Two studies, or the parts of one, cell by cell."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from rgr_dist.analysis.compare import Side, compare, sentence, sides_by
from rgr_dist.analysis.figures.beside import beside
from rgr_dist.analysis.tables import best
from rgr_dist.study.errors import StudyError
from tests.analysis.studies import made


def side(kind: str) -> Side:
    results = made(kind)
    return Side(kind, results, results.study.cells)


def test_the_ratio_of_each_shared_cell_and_their_geometric_mean() -> None:
    a, b = side("thresholds"), side("twelve")
    table = compare([a, b])
    assert len(table) == 5
    ours = best(a.results).set_index(["m", "d_model"])["D_K"]
    theirs = best(b.results).set_index(["m", "d_model"])["D_K"]
    ratios = [theirs[size] / ours[size] for size in ours.index]
    assert table["ratio"].tolist() == pytest.approx(ratios)
    assert (table["ratio_low"] <= table["ratio"]).all()
    assert (table["ratio"] <= table["ratio_high"]).all()
    logs = [math.log(ratio) for ratio in ratios]
    low, high = stats.t.interval(0.95, 4, sum(logs) / 5, stats.sem(logs))
    told = sentence(table)
    for end in (sum(logs) / 5, low, high):
        assert f"{math.exp(end):.3g}"[:4] in told


def test_a_study_beside_itself_needs_the_same() -> None:
    table = compare([side("thresholds"), side("thresholds")])
    assert (table["ratio"] == 1).all()
    ax = beside(table)
    marks = [line for line in ax.get_lines() if line.get_gid()]
    assert sorted(line.get_xdata()[0] for line in marks) == sorted(table["D_K_a"])
    assert all(line.get_xdata()[0] == line.get_ydata()[0] for line in marks)


def test_the_parts_of_a_study_by_a_key() -> None:
    results = made("layers")
    sides = sides_by(results, "model")
    assert [one.name for one in sides] == ["max", "multi_query"]
    table = compare(sides)
    assert table["m"].tolist() == [64, 64, 128, 128]
    assert {*table["second"]} == {"multi_query"}
    limits = sides_by(made("step limits"), "max_steps")
    assert [one.name for one in limits] == ["5000", "20000", "80000"]
    table = compare(limits)
    assert len(table) == 4
    assert (table["ratio"] < 1).all(), "longer training needs less"
    with pytest.raises(StudyError, match="do not differ"):
        sides_by(results, "nope")


def test_accuracies_are_compared_split_by_split() -> None:
    table = compare([side("transformer"), side("transformer")])
    assert len(table) == 2 * 3 * 3
    assert (table["difference"] == 0).all()


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(StudyError, match="two of accuracy"):
        compare([side("thresholds"), side("transformer")])
    with pytest.raises(StudyError, match="no cell in common"):
        compare([side("dense"), side("one cell")])
    open_ = compare([side("empty"), side("thresholds")])
    assert open_["ratio"].isna().all()
    assert "not known" in sentence(open_)
