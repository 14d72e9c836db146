"""What the README tells its reader to type works as it says."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rgr_dist.cli import app, call
from rgr_dist.study.from_yaml import load_study
from rgr_dist.study.shipped import shipped_studies

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands(first: str) -> list[list[str]]:
    """The lines of shell blocks that start with a word, split into arguments."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith(f"{first} ")]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the README's own study in ``mine.yaml``."""
    monkeypatch.chdir(tmp_path)
    study = next(block for block in blocks("yaml") if "name: mine" in block)
    (tmp_path / "mine.yaml").write_text(study)
    return tmp_path


def test_the_readmes_study_is_valid(mine: Path) -> None:
    study = load_study("mine.yaml")
    assert len(study.cells) == 5
    assert study.cells[-1].training.max_steps == 80_000


def test_the_readmes_commands_run(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verbs = {
        (command.name or command.callback.__name__).replace("_", "-")
        for command in app.registered_commands
    }
    theory = {"construct", "bounds", "geometry", "all-pairs"}  # told in docs/theory.md
    told_there = re.findall(r"^rgr ([\w-]+)", (ROOT / "docs/theory.md").read_text(), re.MULTILINE)
    assert theory <= set(told_there)
    told = [arguments for arguments in commands("rgr") if "mine.yaml" in arguments]
    of_base_grid = {"predict"}  # whose laws take more cells than can be trained here
    assert of_base_grid <= {arguments[1] for arguments in commands("rgr")}
    assert verbs - theory - of_base_grid == {arguments[1] for arguments in told}
    for arguments in told:
        if arguments[1] == "run":  # for real, but on the smallest cells there are
            small = [{"m": 16, "d_model": 16}, {"m": 12, "d_model": 12}]
            document = yaml.safe_load((mine / "mine.yaml").read_text())
            document |= {"cells": small, "context": {"length": 8}}
            document["search"] |= {"seeds": 2, "heads": [1, 2]}
            document["training"] = {"max_steps": 1000, "learning_rate": 0.01}
            (mine / "mine.yaml").write_text(yaml.safe_dump(document))
        arguments = ["m=16,d_model=16" if "d_model" in word else word for word in arguments]
        arguments += ["--trials", "2"] if arguments[1] == "tune" else []
        assert call(arguments[1:]) == 0, capsys.readouterr().err
    assert "report" in capsys.readouterr().out
    assert (mine / "results/studies/mine/report/index.html").exists()


def test_what_the_readme_names_is_there() -> None:
    for _, name, *_ in commands("make"):
        assert re.search(rf"^{name}:", (ROOT / "Makefile").read_text(), re.MULTILINE), name
    for target in re.findall(r"\]\(([\w./-]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target
    for name in shipped_studies():
        assert f"`{name}`" in README
    assert not re.search(r"@\w+@", README), "a figure was to be filled in"


@pytest.mark.parametrize("number", [0, 1])
def test_the_readmes_own_searches_find_a_certified_threshold(number: int, tmp_path: Path) -> None:
    script = blocks("python")[number]
    (tmp_path / "mine.py").write_text(script)
    alone = {"RAY_ADDRESS": "local", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    done = subprocess.run(
        [sys.executable, "mine.py"],
        cwd=tmp_path,
        env={**os.environ, **alone},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    probes = re.findall(r"ProbeResult\(value=(\d+), mean_score=([\d.]+)", done.stdout)
    (passed, good), (failed, poor) = ((int(value), float(mean)) for value, mean in probes)
    assert failed == passed - 1
    assert poor < float(re.search(r"target=([\d.]+)", script)[1]) <= good
    assert len([line for line in script.splitlines() if line]) <= 25
