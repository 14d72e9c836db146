"""What a search shows: its sentence, its line in a terminal, its figure."""

from __future__ import annotations

import sys

import matplotlib as mpl
import pytest

from rgr_dist.search.tune.progress import CLEARED, ProgressLine
from rgr_dist.search.tune.score_file import ScoreFile
from rgr_dist.search.tune.setting_search import SettingSearch
from tests.search.driven import ask, found, rising

mpl.use("Agg")


def told(live: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: live, raising=False)
    search = SettingSearch(ask(over={"depth": [1, 2]}), ScoreFile(None, {}))
    line = ProgressLine(search)
    with line:
        for _ in range(4):
            probe = search.portfolio.ask()
            line.show(1)
            line.show(1)
            search.take_in(probe, float(probe.value >= 20))
            search.portfolio.release(probe)
    return capsys.readouterr().err


def test_a_line_says_what_was_found_and_what_shows_it() -> None:
    result = found(rising({1: 40, 2: 1, 3: 90}), over={"depth": [1, 2, 3]}, cost=lambda v, s: v)
    assert repr(result).splitlines() == [
        "3 thresholds (* the best)",
        "  depth=1: width = 40: accuracy 1 (2 seeds) ≥ 0.9; at 39: 0 (1 seed); cost 40",
        "* depth=2: width = 1: accuracy 1 (2 seeds) ≥ 0.9; cost 1",
        "  depth=3: censored: no pass up to the largest width allowed, 64",
    ]
    assert repr(result[0]).startswith("Threshold(depth=1: width = 40: accuracy 1 (2 seeds)")
    assert [row["width"] for row in result.rows()] == [40, 1, None]
    assert [row["is_best"] for row in result.rows()] == [False, True, False]


def test_a_line_for_each_bracket_where_it_is_piped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = told(False, capsys, monkeypatch).splitlines()
    assert lines[0] == "depth=1, width: 64 values; 1 more settings are open"
    assert lines[1].startswith("depth=1, width: passes at 33; 1 more")
    assert len(lines) == len(set(lines))


def test_one_line_in_a_terminal_with_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = told(True, capsys, monkeypatch)
    assert "\n" not in text
    assert "0 trained, 1 run\r" in text
    assert "3 trained, 1 run; about 1 min left" in text
    assert text.endswith(CLEARED)


def test_a_line_that_was_not_shown_is_not_cleared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with ProgressLine(SettingSearch(ask(), ScoreFile(None, {}))):
        pass
    assert capsys.readouterr().err == ""


# ----- Figures


def test_a_figure_has_every_score_and_hollow_means_where_seeds_are_spared() -> None:
    one = found(rising({0: 20}), seeds=5)[0]
    ax = one.plot()
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("width", "accuracy", one.because)
    dots = [line for line in ax.lines if line.get_marker() == "."]
    assert sum(len(line.get_xdata()) for line in dots) == sum(map(len, one.scores.values()))
    hollow = {
        line.get_xdata()[0]
        for line in ax.lines
        if line.get_markerfacecolor() == "white" and len(line.get_xdata())
    }
    assert hollow == {value for value, scores in one.scores.items() if len(scores) < 5}
    assert hollow
    several = found(rising({1: 40, 2: 99}), over={"depth": [1, 2]}).plot()
    labels = [text.get_text() for text in several.get_legend().get_texts()]
    assert labels[:2] == ["depth=1: width = 40", "depth=2: censored"]
    assert labels[2:] == ["mean of fewer than 2 seeds", "target 0.9"]
    mpl.pyplot.close("all")


def test_without_matplotlib_plot_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    one = found(rising({0: 20}))[0]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        one.plot()
