"""A study as an object: the same answers as the command line gives."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure as Canvas

import rgr_dist as rgr
from rgr_dist.cli import call
from rgr_dist.faults import UserError
from rgr_dist.study.errors import StudyError
from tests.store.made_up_runs import run_row


@pytest.fixture(scope="module")
def study(finished: Path) -> rgr.Study:
    return rgr.load(finished / "small.yaml", store=finished / "results")


def listed(finished: Path, capsys: pytest.CaptureFixture[str], verb: str) -> dict:
    ask = [str(finished / "small.yaml"), "--store", str(finished / "results"), "--format", "json"]
    assert call([verb, *ask]) == 0
    return json.loads(capsys.readouterr().out)


def test_its_tables_are_those_of_the_command_line(
    study: rgr.Study, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = listed(finished, capsys, "thresholds")
    for name, table in ("thresholds", study.thresholds()), ("best", study.best()):
        assert len(table) == len(told[name])
        shown = table.astype("object").where(table.notna(), None).to_dict("records")
        for row, expected in zip(shown, told[name], strict=True):
            assert row == expected
    runs = listed(finished, capsys, "runs")["runs"]
    pd.testing.assert_frame_equal(study.runs(), pd.DataFrame(runs), check_dtype=False)
    laws = listed(finished, capsys, "fit")
    assert study.fit().table["formula"].tolist() == [law["formula"] for law in laws["laws"]]


def test_curves_are_of_the_heads_and_the_cell_that_are_asked_for(
    study: rgr.Study, tmp_path: Path
) -> None:
    every = study.curves().table
    probes = study.runs().sort_values("seed").groupby(["cell_id", "h", "d_k"])["score"]
    for row in every.itertuples():  # an idle core may have trained more seeds than were needed
        scores = probes.get_group((row.cell_id, row.h, row.d_k)).head(row.n_seeds)
        assert len(scores) == row.n_seeds
        assert row.mean_score == pytest.approx(scores.mean())
    some = study.curves(h=[1, 4], cell="m=16,d_model=8")
    assert set(some.table["h"]) <= {1, 4}
    assert set(some.table["d_model"]) == {8}
    drawing = some.plot()
    assert drawing._repr_svg_().startswith("<svg")
    legend = [text.get_text() for text in drawing.legends[0].get_texts()]
    assert "$h$ = 1" in legend
    assert "h = 2" not in legend
    drawing.savefig(tmp_path / "curves.pdf")
    assert (tmp_path / "curves.pdf").read_bytes().startswith(b"%PDF")
    for h in (3, [3]):
        with pytest.raises(StudyError, match="h = 3: not in small; it has"):
            study.curves(h=h)
    for cell in ((16, 8), "16,8", "(16, 8)", {"m": 16, "d_model": 8}):
        assert study.curves(h=4, cell=cell).table.equals(study.curves([4], "m=16,d_model=8").table)
    with pytest.raises(StudyError, match="m=99"):
        study.curves(cell="m=99,d_model=8")
    for h in ("12", 2.0, ["1"]):
        with pytest.raises(StudyError, match=r"is no integer; give a head count"):
            study.curves(h=h)


def test_figures_are_those_of_the_report(study: rgr.Study) -> None:
    assert {"heads", "curves"} <= {*study.figures()}
    canvas = Canvas()
    assert study.figure("curves", canvas.subplots(1, len(study.cells))) is canvas
    assert study.figure("curves", width=5).get_figwidth() == 5
    with pytest.raises(StudyError, match="no figure 'laws'; its figures: "):
        study.figure("laws")


def test_it_shows_itself(study: rgr.Study) -> None:
    assert repr(study) == f"<study small: 2 cells, stored in {study.store.root}>"
    page = study._repr_html_()
    assert page.startswith("<p>&lt;study small")
    assert page.count("<tr") == 3
    assert (study.name, len(study.cells), study.study.search.seeds) == ("small", 2, 3)


def test_a_study_from_keywords_is_checked_as_a_file_is(
    study: rgr.Study, finished: Path, tmp_path: Path
) -> None:
    keys = {"name": "small", "cells": [{"m": 16, "d_model": 8}], "search": {"heads": [1, 2]}}
    made = rgr.Study(keys, store=tmp_path, training={"max_steps": 2000})
    assert made.cells[0].training.max_steps == 2000
    assert rgr.Study(**keys).study.search.heads == (1, 2)
    path = tmp_path / "again.yaml"
    path.write_text(made.to_yaml())
    assert rgr.load(path).study == made.study
    with pytest.raises(StudyError, match=r"again\.yaml: not the keys of a study; rgr\.load reads"):
        rgr.Study(str(path))
    with pytest.raises(StudyError, match=r"study: search\.head: unknown key.*heads"):
        rgr.Study(keys, search={"head": [1]})
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"cells": [{"m": np.int64(24), "d_model": 8}]}, {"cells": [{"m": 24, "d_model": 8}]}),
        (
            {"cells": ({"m": range(24, 26), "d_model": 8},)},
            {"cells": [{"m": [24, 25], "d_model": 8}]},
        ),
        ({"search": {"heads": np.arange(1, 5)}}, {"search": {"heads": [1, 2, 3, 4]}}),
        ({"training": {"max_steps": (500, 1000)}}, {"training": {"max_steps": [500, 1000]}}),
        ({"training": {"learning_rate": np.array([0.5])}}, {"training": {"learning_rate": [0.5]}}),
        ({"model": ("max", "softmax")}, {"model": ["max", "softmax"]}),
        (
            {"graph": {"family": "edges", "file": Path("my.csv")}},
            {"graph": {"family": "edges", "file": "my.csv"}},
        ),
    ],
)
def test_values_of_numpy_tuples_ranges_and_paths_are_plain_ones(
    given: dict, plain: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.csv").write_text("0,1\n1,0\n")
    keys = {"name": "x", "cells": [{"m": 24, "d_model": 8}]}
    assert rgr.Study(keys | given).study == rgr.Study(keys | plain).study


def test_it_explains_and_predicts_as_the_command_line_does(
    study: rgr.Study,
    finished: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ask = [str(finished / "small.yaml"), "--store", str(finished / "results"), "--format", "json"]
    assert call(["explain", *ask, "--cell", "(16, 8)", "--heads", "2"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = study.explain((16, 8), h=2)
    assert found.decisions["why"].tolist() == [row["why"] for row in told["decisions"]]
    assert found.ends["D_K"].tolist() == [row["D_K"] for row in told["heads"]]
    assert "<table" in found._repr_html_()
    assert study.predict(64, 16).empty, "two cells have no law"
    h = study.best()["h_star"].iloc[0]  # of numpy's type
    assert study.explain((16, 8), h=h).ends["h"].tolist() == [h]


def test_a_finished_study_is_returned_without_training(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = finished / "results"
    before = sorted((out / "runs").iterdir())
    for show, asked in enumerate(
        (finished / "small.yaml", rgr.load(finished / "small.yaml", store=out))
    ):
        done = rgr.run(asked, store=out, show=bool(show))
        assert done.best()["D_K"].notna().all()
        said = capsys.readouterr().out
        assert ("D_K*" in said) == bool(show), "the finding, as rgr run says it"
    assert sorted((out / "runs").iterdir()) == before
    for store in (rgr.Store(str(out)), out, str(out)):
        elsewhere = rgr.run(done, store=store, show=False)
        assert elsewhere.best().equals(done.best())
    own = rgr.load(finished / "small.yaml", store=tmp_path)
    assert rgr.run(own, store=out, show=False).store.root == done.store.root
    assert own.store.root == str(tmp_path)
    assert Path(done.report()).is_file()


def test_runs_that_were_stored_before_a_run_was_interrupted_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = {"mode": "grid", "heads": [1], "D_K": [5], "seeds": 2}
    study = rgr.Study(name="s", cells=[{"m": 64, "d_model": 16}], search=search, store=tmp_path)
    (cell,) = study.cells
    assert study.curves().table.empty

    def interrupted(*_: object) -> None:
        study.store.append([run_row(h=1, d_k=5, seed=seed, cell=cell) for seed in (0, 1)])
        raise KeyboardInterrupt

    monkeypatch.setattr("rgr_dist.running.run_study.run_study", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.run(show=False)
    assert len(study.runs()) == 2
    assert len(study.curves().table) == 1


@pytest.mark.parametrize("kind", [iter, np.array, pd.Series, tuple])
def test_overrides_may_come_in_any_sequence(kind: Any) -> None:
    three = rgr.load("quickstart", kind(["search.seeds=3", "search.target=0.9"])).study.search
    assert (three.seeds, three.target) == (3, 0.9)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda study: study.curves(h=True), "h: True is no integer; give a head count"),
        (lambda study: rgr.Study(name="a\x00b\ud800", cells=[{"m": 8, "d_model": 8}]), "name: "),
    ],
)
def test_arguments_of_a_wrong_kind_are_refused_in_one_printable_line(
    ask: Any, said: str, finished: Path
) -> None:
    with pytest.raises(StudyError) as refused:
        ask(rgr.load(finished / "small.yaml", store=finished / "results"))
    assert said in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"engine": "fsued"}, "--engine fsued: unknown; valid: auto, "),
        ({"engine": "fused"}, "--engine fused: has no kernels for model file; valid: auto, "),
        ({"gpus": 1, "engine": "fused"}, "--engine fused: trains on CPUs alone"),
        ({"gpus": -1}, "--gpus -1: give a share of a GPU"),
        ({"cpus": 0}, "--cpus 0: give at least 1"),
    ],
)
def test_what_no_worker_could_train_with_is_refused_before_anything_is_written(
    how: dict, said: str, tmp_path: Path
) -> None:
    cells, models = [{"m": 16, "d_model": 8}], ["max", {"zoo": "tied"}]
    study = rgr.Study(name="two", cells=cells, model=models, store=tmp_path / "results")
    with pytest.raises(UserError) as refused:
        study.run(show=False, **how)
    assert str(refused.value).startswith(said)
    assert not (tmp_path / "results").exists()


def test_a_message_is_one_line_that_keeps_what_it_quotes() -> None:
    assert str(UserError("--store 'a  b':\n  is no\tstore\n")) == "--store 'a  b': is no\\tstore"


def test_a_study_compared_with_itself_needs_the_same(
    study: rgr.Study, finished: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = rgr.compare(study, study)
    assert found.table["ratio"].tolist() == [1, 1]
    assert found.table["D_K_a"].tolist() == study.best()["D_K"].tolist()
    out = shutil.copytree(finished / "results", tmp_path / "other")
    ask = ["compare", str(finished / "small.yaml"), "--store", str(out)]
    assert call([*ask, "--store", str(finished / "results"), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["D_K_b"] for row in told["cells"]] == found.table["D_K_b"].tolist()
    assert call(ask) == 2
    assert "takes two studies" in capsys.readouterr().err


def test_a_comparison_is_drawn_where_it_is_asked_for(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, store = str(finished / "small.yaml"), str(finished / "results")
    both = ["compare", study, "--store", store, "--store", store]
    assert call([*both, "--figures", str(tmp_path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"]
    assert (tmp_path / "small-small-beside.pdf").read_bytes().startswith(b"%PDF")
