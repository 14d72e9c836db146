"""Every block of code in README.md and docs/ is run: commands and scripts on small studies.

Those of the README are run each time, and every study is loaded; the rest is ``slow``.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from safetensors.numpy import save_file

from rgr_dist import find_threshold
from rgr_dist.cli import call
from rgr_dist.study.study_file import load_study
from rgr_dist.study.yaml_document import shipped_studies
from tests.docs.pages import PAGES, README, ROOT, Block, blocks, printed
from tests.docs.small import small_command, small_script, write_small

HOW_TO = ROOT / "docs/how-to.md"
COMMANDS = [page for page in PAGES if page.name not in ("tutorial.md", "own-layer.md")]
"""Pages whose commands may run in any order; those of the others do in ``test_tutorial.py``."""
PROBE = r"ProbeResult\(value=(\d+), mean_score=([\d.]+).*?\)"


def study_called(page: Path, name: str) -> str:
    return next(block.text for block in blocks("yaml", page) if f"name: {name}\n" in block.text)


def study_called_mine(page: Path) -> str:
    return study_called(page, "mine")


@pytest.fixture(scope="module")
def mine(_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the README's own study, which has been run."""
    folder = tmp_path_factory.mktemp("mine")
    write_small(folder, study_called_mine(README))
    with chdir(folder):
        assert call(["run", "mine.yaml", "--cpus", "1"]) == 0
    return folder


@pytest.mark.parametrize("block", blocks("yaml"), ids=lambda block: block.name)
def test_studies_are_valid(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole one as it stands, a part of one within the smallest that there is."""
    monkeypatch.chdir(tmp_path)
    edges = [f"{item},{(item + 1) % 32}" for item in range(32)]
    (tmp_path / "my-edges.csv").write_text("\n".join(["source,target", *edges]))
    first = (ROOT / "rgr_dist/models/first_layer.py").read_text()
    for name in ("mine.py", "my_layer.py"):
        (tmp_path / name).write_text(first)
    (tmp_path / "soft_max.py").write_text(first.replace("temperature", "beta"))
    table = "source: gpt2-weights/" in block.text
    if table:
        rows = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
        (tmp_path / "gpt2-weights").mkdir()
        save_file({"wte.weight": rows}, tmp_path / "gpt2-weights/model.safetensors")
        counts = [f"{token},{40 - token}" for token in range(39)]
        (tmp_path / "counts.csv").write_text("\n".join(["token,count", *counts]))
    cells = [{"m": 16, "d_model": 8} if table else {"m": 128, "d_model": 32}]
    document: dict[str, Any] = {"name": "part", "cells": cells, **yaml.safe_load(block.text)}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(document))
    study = load_study("study.yaml")
    assert study.name == document["name"]
    assert study.cells


def test_the_readmes_commands_run(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = [command for block in blocks("sh", README) for command in block.commands]
    told = [command[1:] for command in told if "mine.yaml" in command and command[1] != "run"]
    assert {"plan", "thresholds", "report", "explain"} <= {command[0] for command in told}
    with chdir(mine):
        for command in told:
            assert call(small_command(command)) == 0, capsys.readouterr().err
    assert (mine / "results/studies/mine/report/index.html").exists()


@pytest.fixture(scope="module")
def everything(_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every study that a page names, two of them run, and in other stores too."""
    folder = tmp_path_factory.mktemp("everything")
    for text in (study_called_mine(README), study_called(HOW_TO, "slower")):
        write_small(folder, text)
    for name in (
        *("base-grid", "softmax", "quickstart", "constructions", "three-curves", "budget"),
        *(name for name in shipped_studies() if name.startswith("facts")),
    ):
        write_small(folder, name)
    np.save(folder / "vectors.npy", np.random.default_rng(0).normal(size=(64, 16)))
    (folder / "facts.csv").write_text("key,query,value\nParis,in,France\nRome,in,Italy\n")
    with chdir(folder):
        for name in ("base-grid", "softmax", "mine", "quickstart"):
            assert call(["run", f"{name}.yaml"]) == 0
    for copy in ("old", "new"):
        shutil.copytree(folder / "results", folder / copy)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", [p for p in COMMANDS if blocks("sh", p)], ids=lambda p: p.name)
def test_the_commands_of_a_page_run(
    page: Path, everything: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (command for block in blocks("sh", page) for command in block.commands):
        if command[0] != "rgr" or command[1] == "watch" or "BUCKET" in " ".join(command):
            continue  # another program, a page that is served until interrupted, no such bucket
        with chdir(everything):
            assert call(small_command(command[1:])) == 0, (command, capsys.readouterr().err)


def script(page: Path) -> str:
    """The blocks of a page, one after another."""
    return "\n\n".join(block.text for block in blocks("python", page))


SCRIPTS = [
    pytest.param(page, marks=[pytest.mark.slow], id=page.name) for page in PAGES if script(page)
]


@pytest.mark.parametrize("page", SCRIPTS)
@pytest.mark.timeout(1200)  # a minute on a quiet machine
def test_the_script_of_a_page_runs_and_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    write_small(tmp_path, "quickstart")
    text = small_script(script(page))
    if "transformers" in text:  # which the project does not need
        pytest.importorskip("transformers")
    (tmp_path / "page.py").write_text(text)
    alone = {"RAY_ADDRESS": "local", "RAY_AUTH_TOKEN": secrets.token_hex(32), "MPLBACKEND": "agg"}
    alone["RAY_AIR_NEW_OUTPUT"] = "0"  # where a Tuner prints nothing if told so
    done = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        env={**os.environ, **alone},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = printed(page)
    assert not told or shape(told) == shape(done.stdout)
    for name in re.findall(r"save(?:fig)?\(\"(.+?)\"\)", text):
        assert (tmp_path / name).stat().st_size > 1_000
    shown = [block for block in blocks("python", page) if "found.passed" in block.text]
    found = re.findall(rf"^\d+ {PROBE} {PROBE}$", done.stdout, re.MULTILINE)
    for block, (*passed, failed, poor) in zip(shown, found, strict=True):
        assert_certified(block.text, (passed[0], passed[1]), (failed, poor))


@pytest.mark.usefixtures("_ray")
def test_the_seed_that_raises_is_the_one_that_a_page_shows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = ROOT / "docs/own-trainable.md"
    (block,) = (block for block in blocks("python", page) if "MemoryError" in block.text)
    (shown,) = (line for line in printed(page).splitlines() if line.startswith("Threshold(open"))
    names = {"find_threshold": find_threshold, "train": None}  # the first value raises
    exec(block.text.rpartition("\nprint")[0], names)
    assert capsys.readouterr().out.splitlines()[-1] == shown


def shape(text: str) -> list[str]:
    """The lines without their numbers, which another processor may round otherwise."""
    return re.sub(r"\d+(\.\d+)?", "#", text).strip().splitlines()


def assert_certified(script: str, passed: tuple[str, str], failed: tuple[str, str]) -> None:
    """The certificate that a script prints, two values with their scores, is for its target."""
    good, poor = float(passed[1]), float(failed[1])
    target = float(re.search(r"target=([\d.]+)", script)[1])
    assert int(failed[0]) == int(passed[0]) - 1
    if 'mode="min"' in script:
        good, poor, target = -good, -poor, -target
    assert poor < target <= good
