"""``rgr run`` of a finished study: quick, and its report is written only if it would change."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from rgr_dist.analysis.load import open_results
from rgr_dist.analysis.report.report_cache import written_before
from rgr_dist.cli import call
from rgr_dist.store.store import Store
from rgr_dist.study.study_file import load_study

HOME = Path("results/studies/small")
PAGE = HOME / "report/index.html"
FILES = ("report/index.html", "report/thresholds.csv", "laws.json")

Told = pytest.CaptureFixture[str]


@pytest.fixture
def _here(finished: Path) -> Iterator[None]:
    """The folder of the finished study, its report written."""
    with chdir(finished):
        assert is_current() or run()
        yield


def run() -> bool:
    """Run the study again; whether its page was written."""
    before = PAGE.stat().st_ino if PAGE.exists() else None
    assert call(["run", "small.yaml"]) == 0
    return PAGE.stat().st_ino != before


def is_current(*overrides: str) -> bool:
    """Whether the report would be written the same again."""
    store = Store("results")
    return (
        written_before(open_results(load_study("small.yaml", overrides), store), store) is not None
    )


@pytest.mark.usefixtures("_here")
def test_an_unchanged_study_keeps_its_report_and_says_so(capsys: Told) -> None:
    capsys.readouterr()
    assert not run()
    told = capsys.readouterr().out
    assert f"nothing was left to train\nreport, unchanged:\n{PAGE.absolute()}\n" in told
    assert "D_K*" in told, "the table of results is there all the same"
    assert "; thresholds within " in told
    again = "next: rgr thresholds small.yaml, or rgr explain small.yaml --cell m=16,d_model=8\n"
    assert told.endswith(again)


@pytest.mark.usefixtures("_here")
def test_it_loads_nothing_that_trains_fits_or_draws() -> None:
    heavy = ("ray", "torch", "numba", "scipy.optimize", "jinja2")
    code = (
        "import sys; from rgr_dist.cli import call; status = call(['run', 'small.yaml']); "
        f"sys.exit(status or [m for m in {heavy} if m in sys.modules] or 0)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("_here")
def test_a_report_that_is_not_there_or_would_change_is_written_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not is_current("search.keep_heads=[1]"), "another search"
    with monkeypatch.context() as edited:
        edited.setattr("rgr_dist.analysis.report.report_cache._sources", lambda: "edited")
        assert not is_current(), "another version of ours"
    stamp = HOME / "written.json"
    kept = stamp.read_text()
    for text in ("{}", "", None):
        stamp.unlink() if text is None else stamp.write_text(text)
        assert not is_current(), "no one knows what it was written from"
        stamp.write_text(kept)
    assert is_current()
    whole = {name: (HOME / name).read_bytes() for name in FILES}
    for name in FILES:
        (HOME / name).unlink()
    assert run()
    assert {name: (HOME / name).read_bytes() for name in FILES} == whole
    assert is_current()
