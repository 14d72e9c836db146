"""The figure of the shares of passing seeds."""

from __future__ import annotations

from rgr_dist.analysis.report.contents import figures, sections
from tests.analysis import made_up


def test_a_curve_is_drawn_among_the_widths_that_were_tried_and_no_further() -> None:
    results = made_up.search_all(made_up.study_of([(64, 16), (128, 32)]))
    (figure,) = figures(sections(results), ["shares"])
    curves = [
        (line, [point.x for point in panel.points if point.h == line.h])
        for panel in figure.panels
        for line in panel.lines
        if line.look == "head"
    ]
    assert curves
    for line, tried in curves:
        at = [x for x, _ in line.points]
        assert min(at) >= min(tried) * (1 - 1e-9)
        assert max(at) <= max(tried) * (1 + 1e-9)


def test_no_two_marks_of_the_shares_hide_each_other() -> None:
    results = made_up.search_all(made_up.study_of([(64, 16), (128, 32)]))
    (figure,) = figures(sections(results), ["shares"])
    places = [
        (panel.cell, point.x, point.y, point.dodge)
        for panel in figure.panels
        for point in panel.points
    ]
    assert len(places) == len(set(places))
    assert len(places) > len({place[:3] for place in places})  # some would
