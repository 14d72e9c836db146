"""The command line, run as its user runs it: real Ray, real training, small cells."""

from __future__ import annotations

import io
import json
import math
import os
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from rgr_dist.analysis.tables import BEST, THRESHOLD
from rgr_dist.cli import call
from tests.small_study import RGR, Refused, Rgr, rgr, write_study


def test_run_finds_thresholds_with_certificates_and_writes_a_report(finished: Path) -> None:
    listing = json.loads(rgr("thresholds", "small.yaml", "--format", "json", cwd=finished).stdout)
    assert set(listing) == {"thresholds", "best"}
    assert list(listing["thresholds"][0]) == THRESHOLD
    assert list(listing["best"][0]) == BEST
    assert len(listing["thresholds"]) == 6
    found = [row for row in listing["thresholds"] if row["status"] == "found"]
    assert {row["d_model"] for row in found} == {8, 16}
    for row in found:
        certificate = row["certificate"]
        assert certificate["pass"]["d_k"] == row["d_k"]
        assert certificate["pass"]["mean_score"] >= 0.99
        assert certificate["fail"]["d_k"] == row["d_k"] - 1
        assert certificate["fail"]["mean_score"] < 0.99
    kept = finished / "results/studies/small"
    assert (kept / "report/index.html").read_text().count("<svg")
    assert pd.read_parquet(kept / "thresholds.parquet")["d_k"].notna().sum() == len(found)
    assert pd.read_parquet(kept / "best.parquet")["D_K"].tolist() == [
        row["D_K"] for row in listing["best"]
    ]


def test_a_study_to_begin_with_is_valid_with_every_comment_taken_out(
    tmp_path: Path, refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["init", "mine"]) == 0
    text = (tmp_path / "mine.yaml").read_text()
    assert call(["plan", "mine.yaml"]) == 0
    for key in re.findall(r"^# (\w+: {.*})$", text, flags=re.M):
        (tmp_path / "other.yaml").write_text(text + key)
        assert call(["plan", "other.yaml"]) == 0, key
    (tmp_path / "other.yaml").unlink()
    capsys.readouterr()
    refused("mine.yaml: File exists", "init", "mine")
    assert call(["init", "2024"]) == 0
    assert call(["plan", "2024.yaml"]) == 0
    (tmp_path / "2024.yaml").unlink()
    capsys.readouterr()
    refused("name: ", "init", "a/b")


def test_figures_are_written_as_files(
    finished: Path, tmp_path: Path, refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    study, store = str(finished / "small.yaml"), str(finished / "results")
    refused("no figure 'laws'", "figures", study, "--store", store, "--figure", "laws")
    refused("file: File exists", "figures", study, "--store", store, "--to", "file")
    assert call(["figures", study, "--store", store, "--to", "drawn", "--figure", "heads"]) == 0
    (drawn,) = (tmp_path / "drawn").iterdir()
    assert capsys.readouterr().out == "drawn/small-heads.pdf\n"
    assert drawn.name == "small-heads.pdf"
    assert drawn.read_bytes().startswith(b"%PDF")


def test_the_runs_folder_is_the_export(finished: Path) -> None:
    runs = pd.read_parquet(finished / "results/runs")
    assert runs["run_id"].is_unique
    assert runs["score"].between(0, 1).all()
    assert (runs["D_K"] == runs["h"] * runs["d_k"]).all()
    assert set(runs["stop_reason"]) <= {"converged", "max_steps"}


@pytest.mark.slow
def test_adding_a_cell_trains_only_that_cell(finished: Path, rgr_here: Rgr) -> None:
    before = pd.read_parquet(finished / "results/runs")
    cells = [{"m": 16, "d_model": [8, 16]}, {"m": 12, "d_model": 16}]
    write_study(finished, "wider.yaml", name="wider", cells=cells)
    done = rgr_here("run", "wider.yaml", cwd=finished)
    assert done.returncode == 0, done.stderr
    after = pd.read_parquet(finished / "results/runs")
    new = after[~after["run_id"].isin(before["run_id"])]
    assert set(new["m"]) == {12}
    assert len(after) == len(before) + len(new)


def test_thresholds_of_one_cell_are_one_table_as_csv(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["thresholds", str(finished / "small.yaml"), "--store", str(finished / "results")]
    capsys.readouterr()
    assert call([*asked, "--format", "json"]) == 0
    every = json.loads(capsys.readouterr().out)
    best = every["best"][0]
    sizes = best["m"], best["d_model"]
    for cell in ("{},{}", "({}, {})", "m={},d_model={}"):
        assert call([*asked, "--format", "csv", "--cell", cell.format(*sizes)]) == 0
        table = pd.read_csv(io.StringIO(capsys.readouterr().out))
        of_cell = [r for r in every["thresholds"] if (r["m"], r["d_model"]) == sizes]
        assert table["h"].tolist() == [row["h"] for row in of_cell]


@pytest.mark.parametrize("verb", ["plan", "thresholds", "fit"])
def test_listings_in_every_format(
    verb: str, finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    shown = {}
    for how in ("table", "json", "csv"):
        assert call([verb, "small.yaml", "--format", how]) == 0
        shown[how] = capsys.readouterr().out
    sections = json.loads(shown["json"])
    lists = {name: rows for name, rows in sections.items() if isinstance(rows, list)}
    table = pd.read_csv(io.StringIO(shown["csv"]))
    if verb == "thresholds":  # CSV is one table
        lists.pop("best")
    assert len(table) == sum(map(len, lists.values()))
    assert len(shown["table"].splitlines()) > len(table)
    assert not shown["csv"].count("{")
    if verb == "thresholds":
        certificates = [row["certificate"] for row in lists["thresholds"]]
        passes = [None if one is None else one["pass"]["d_k"] for one in certificates]
        assert table["certificate.pass.d_k"][: len(passes)].tolist() == pytest.approx(
            [math.nan if d_k is None else d_k for d_k in passes], nan_ok=True
        )
    if verb == "plan":
        assert sections["runs_left"] == sections["steps_left"] == 0


def test_a_report_of_no_run_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, out = write_study(tmp_path), tmp_path / "results"
    assert call(["report", str(study), "--store", str(out)]) == 2
    assert f"there is no store; rgr run {study} --store " in capsys.readouterr().err
    assert not out.exists()


def test_a_study_without_a_run_in_a_store_of_others_has_a_page_that_says_so(
    finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    write_study(finished, "none.yaml", name="none", cells=[{"m": 20, "d_model": 16}])
    assert call(["report", "none.yaml"]) == 0
    told = capsys.readouterr()
    assert "holds no run of none.yaml" in told.err
    assert "No threshold yet" in Path(told.out.strip()).read_text()


def test_what_is_not_there_is_refused_before_runs_are_missed(
    tmp_path: Path, refused: Refused
) -> None:
    write_study(tmp_path)
    write_study(tmp_path, "other.yaml", name="other", cells=[{"m": 40, "d_model": 8}])
    (tmp_path / "results/runs").mkdir(parents=True)
    (tmp_path / "results/runs/part-1.parquet").write_bytes(b"damaged")
    refused("there is no store", "compare", "small.yaml", "--store", "results", "--store", "no")
    refused("no figure 'nope'", "figures", "small.yaml", "--figure", "nope")
    refused("m=99: not in small", "thresholds", "small.yaml", "--cell", "m=99")


def test_bad_arguments_end_in_one_line_and_write_nothing(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "file").write_text("in the way")
    write_study(tmp_path)
    refused("--store file/below", "run", "small.yaml", "--store", "file/below")
    refused("--store no://where", "run", "small.yaml", "--store", "no://where")
    refused("missing.yaml: cannot be read", "run", "missing.yaml")
    refused("--cpus", "run", "small.yaml", "--cpus", "0")
    refused("ray job submit", "run", "small.yaml", "--address", "ray://host:10001")
    refused("--set search", "run", "small.yaml", "--set", "search")
    refused("No such command 'fly'", "fly")
    refused("--store : cannot be opened", "run", "small.yaml", "--store", "")


def test_a_study_of_two_cells_has_no_law_and_says_so(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ["fit", str(finished / "small.yaml"), "--store", str(finished / "results")]
    assert call([*ask, "--at", "m=100,d_model=20", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"laws": [], "predictions": []}
    assert call(ask) == 0
    assert "no law yet" in capsys.readouterr().out


@pytest.mark.parametrize(
    "at", ["m=100", "m=1,d_model=20", "m=9,d_model=2,edges=99", "m=a,d_model=2"]
)
def test_sizes_that_no_cell_has_are_refused(finished: Path, refused: Refused, at: str) -> None:
    study = [str(finished / "small.yaml"), "--store", str(finished / "results")]
    refused(f"--at {at}: give m", "fit", *study, "--at", at)


def test_what_could_command_a_terminal_is_escaped_and_what_is_long_is_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(["run", "\x1b[31mred\x07.yaml"]) == 2
    told = capsys.readouterr().err
    assert "\x1b" not in told
    assert r"\x1b[31mred\x07.yaml: cannot be read" in told
    assert call(["run", "quickstart", "--set", "a" * 100_000]) == 2
    told = capsys.readouterr().err
    assert len(told) <= 501
    assert told.startswith("rgr: --set aaa")
    assert told.endswith("not of the form key.subkey=value\n")


def test_output_that_has_no_sign_for_a_letter_shows_a_question_mark(finished: Path) -> None:
    done = subprocess.run(
        [*RGR, "thresholds", "small.yaml"],
        cwd=finished,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b" ? 1.000 | " in done.stdout


def test_two_studies_of_one_name_in_one_store_are_told_apart_by_their_files(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = shutil.copytree(finished / "results", tmp_path / "results")
    text = (finished / "small.yaml").read_text()
    other = tmp_path / "other.yaml"
    other.write_text(text.replace("seeds: ", "confirm_seeds: 1\n  seeds: ", 1))
    files = [str(finished / "small.yaml"), str(other)]
    assert call(["compare", *files, "--store", str(store), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["found"]
    assert all(file in found for file in files)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_nobody_reads_on_ends_the_command_in_silence(unbuffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(
        [*RGR, "studies"], stdout=writer, stderr=subprocess.PIPE, text=True, env=environment
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk is full by name")
def test_output_that_takes_no_more_is_told_in_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*RGR, "studies"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "No space left on device" in done.stderr


def test_head_counts_given_to_run_are_answered_with_the_key_of_the_study(
    refused: Refused,
) -> None:
    refused("--set search.heads", "run", "quickstart", "--heads", "4")


@pytest.mark.parametrize("address", ["nowhere", "..:1"])
def test_a_cluster_that_is_not_there_is_told_in_one_line(address: str, tmp_path: Path) -> None:
    write_study(tmp_path)
    ended = rgr("run", "small.yaml", "--address", address, cwd=tmp_path)  # no Ray in that process
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"rgr: --address {address}")
    assert not (tmp_path / "results/runs").exists()
