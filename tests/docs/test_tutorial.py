"""The tutorials as a reader goes through them: every command in order, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from rgr_dist.cli import call
from tests.docs.pages import FENCE, ROOT, Block

PAGE = ROOT / "docs/tutorial.md"
OWN_LAYER = ROOT / "docs/own-layer.md"


@pytest.mark.slow  # trains a study whole: a minute
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("_ray")
def test_the_tutorial_finds_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    study, printed, checked = {}, "", 0
    for number, (language, text) in enumerate(FENCE.findall(PAGE.read_text("utf-8"))):
        if language == "yaml":  # the second has the key that changes
            study |= yaml.safe_load(text)
            Path("denser.yaml").write_text(yaml.safe_dump(study))
        elif language == "sh":
            commands = Block(PAGE, number, language, text).commands
            capsys.readouterr()
            assert all(call(words[1:]) == 0 for words in commands if words[0] == "rgr")
            printed = capsys.readouterr().out
        else:
            for line in text.splitlines():
                assert line.split() in [told.split() for told in printed.splitlines()]
                checked += 1
    assert checked == 6
    assert {path.name for path in tmp_path.iterdir()} >= {"denser-heads.pdf", "denser.yaml"}


@pytest.mark.slow  # trains two studies whole, one of them compiled first: a minute
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("_ray")
def test_a_layer_of_ones_own_goes_from_a_file_to_a_report_beside_the_papers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, (language, text) in enumerate(FENCE.findall(OWN_LAYER.read_text("utf-8"))):
        if language == "python" and "class SoftMax" in text:
            Path("soft_max.py").write_text(text)
        elif language == "yaml" and "name" in (study := yaml.safe_load(text)):
            Path(f"{study['name']}.yaml").write_text(text)
        elif language == "sh":
            for words in Block(OWN_LAYER, number, language, text).commands:
                assert call(words[1:]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert call(["thresholds", "soft.yaml", "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    layers = [(row["m"], row["model"], row["cached"]) for row in printed["layers"]]
    assert [layer[:2] for layer in layers] == [
        (m, model) for model in ("max", "soft_max(beta=5.0)") for m in (32, 64)
    ]
    assert all(cached for *_, cached in layers)
    page = Path("results/studies/soft/report/index.html").read_text("utf-8")
    assert "What each layer needs" in page
    assert "soft_max(beta=5.0)" in page
