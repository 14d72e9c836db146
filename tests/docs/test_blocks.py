"""Every block of code in the README is run on small studies, and the scripts of two pages."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
import yaml

from rgr_dist import find_threshold
from rgr_dist.cli import call
from rgr_dist.study.study_file import parse_study
from tests.docs.pages import README, ROOT, Block, blocks, printed
from tests.docs.small import small_command, small_script, write_small

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


@pytest.mark.parametrize("block", blocks("yaml", README), ids=lambda block: block.name)
def test_studies_are_valid(block: Block) -> None:
    document = yaml.safe_load(block.text)
    assert parse_study(document).name == document["name"]


def test_the_readmes_commands_run(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = [command for block in blocks("sh", README) for command in block.commands]
    told = [command[1:] for command in told if "mine.yaml" in command and command[1] != "run"]
    assert {"plan", "thresholds", "explain"} <= {command[0] for command in told}
    with chdir(mine):
        for command in told:
            assert call(small_command(command)) == 0, capsys.readouterr().err
    assert (mine / "results/studies/mine/report/index.html").exists()


def script(page: Path) -> str:
    """The blocks of a page, one after another."""
    return "\n\n".join(block.text for block in blocks("python", page))


SCRIPTS = [
    pytest.param(page, marks=[pytest.mark.slow], id=page.name)
    for page in (README, ROOT / "docs/own-trainable.md")
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
