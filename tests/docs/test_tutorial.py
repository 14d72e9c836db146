"""The tutorial as a reader goes through it: every command in order, and what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rgr_dist.cli import call
from tests.docs.pages import FENCE, ROOT, Block

PAGE = ROOT / "docs/tutorial.md"


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
    assert checked == 7
    assert {path.name for path in tmp_path.iterdir()} >= {"denser-heads.pdf", "denser.yaml"}
