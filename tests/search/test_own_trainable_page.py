"""The page on own trainables does what it says, block after block."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "own-trainable.md").read_text()


def shape(text: str) -> list[str]:
    """The lines without their numbers, which another processor may round otherwise."""
    return re.sub(r"\d+(\.\d+)?", "#", text).strip().splitlines()


@pytest.mark.slow
@pytest.mark.timeout(1200)  # a minute on a quiet machine
def test_the_pages_blocks_run_and_print_what_it_shows(tmp_path: Path) -> None:
    script = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    (tmp_path / "page.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        env={
            **os.environ, "RAY_ADDRESS": "local", "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "MPLBACKEND": "Agg",
        },
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = "".join(re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL))
    assert shape(shown) == shape(done.stdout)
    assert (tmp_path / "widths.png").stat().st_size > 5_000
