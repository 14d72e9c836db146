"""The README and the tutorials as a reader goes through them: each command, and what it prints."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rgr_dist.cli import call
from tests.docs.pages import README, ROOT, blocks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
ALONE = {"RAY_ADDRESS": "local", "MPLBACKEND": "agg", "RAY_AIR_NEW_OUTPUT": "0"}


def gone_through(page: Path, capsys: pytest.CaptureFixture[str]) -> int:
    """Type every command of a page in order; how many lines it shows of what they print."""
    shown, printed, study = 0, "", {}
    for block in blocks(page, "sh", "yaml", "text"):
        if block.language == "yaml":  # a later one has the keys that change
            study |= yaml.safe_load(block.text)
            Path(f"{study['name']}.yaml").write_text(yaml.safe_dump(study))
        elif block.language == "sh":
            capsys.readouterr()
            for words in block.commands:
                if words[0] == "rgr":
                    assert call(words[1:]) == 0, capsys.readouterr().err
            printed = capsys.readouterr().out
        else:
            told = [line.split() for line in printed.splitlines()]
            for line in block.text.splitlines():
                assert line.split() in told, printed
                shown += 1
    return shown


def scripts(page: Path, folder: Path) -> str:
    """What the scripts of a page print, each run alone."""
    printed = ""
    for number, block in enumerate(blocks(page, "python")):
        (folder / f"script_{number}.py").write_text(block.text)
        done = subprocess.run(
            [sys.executable, f"script_{number}.py"],
            cwd=folder,
            env={**os.environ, **ALONE, "RAY_AUTH_TOKEN": secrets.token_hex(32)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        printed += done.stdout
    return printed


@pytest.mark.ci
@pytest.mark.usefixtures("_ray")
def test_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert gone_through(README, capsys) > 1
    assert scripts(README, tmp_path).splitlines()[-1].startswith("10 ")


@pytest.mark.ci
@pytest.mark.usefixtures("_ray")
def test_the_tutorial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert gone_through(ROOT / "docs/tutorial.md", capsys) > 5


@pytest.mark.usefixtures("_ray")
def test_a_layer_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a file to its thresholds beside the paper's."""
    page = ROOT / "docs/own-layer.md"
    monkeypatch.chdir(tmp_path)
    layer, _ = blocks(page, "python")
    study = yaml.safe_load(blocks(page, "yaml")[0].text)
    Path("soft.yaml").write_text(yaml.safe_dump(study))
    commands = [words for block in blocks(page, "sh") for words in block.commands]
    assert call(commands[0][1:]) == 0  # writes a layer to change
    Path("soft_max.py").write_text(layer.text)
    for words in commands[1:]:
        assert call(words[1:]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert call(["thresholds", "soft.yaml", "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    layers = {(row["m"], row["model"]) for row in printed["thresholds"]}
    assert layers == {(m, model) for m in (32, 64) for model in ("max", "soft_max(beta=5.0)")}
