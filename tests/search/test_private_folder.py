"""A temporary folder is its owner's, and does not outlive its process for long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rgr_dist.search.tune.private_folder import private_folder

KILLED = """
import os, sys
from rgr_dist.search.tune.private_folder import private_folder
with private_folder(sys.argv[1]) as folder:
    (folder / "file").touch()
    os._exit(0)
"""


def test_it_is_the_owners_alone_and_goes_at_the_end(tmp_path: Path) -> None:
    with private_folder(str(tmp_path)) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert list(tmp_path.iterdir()) == [folder]
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_goes_and_nothing_else(tmp_path: Path) -> None:
    somebodys = tmp_path / "rgr-results"
    somebodys.mkdir()
    with private_folder(str(tmp_path)) as in_use:
        subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=True)
        (left,) = set(tmp_path.iterdir()) - {in_use, somebodys}
        assert list(left.iterdir()) == [left / "file"]
        with private_folder(str(tmp_path)) as another:
            assert set(tmp_path.iterdir()) == {in_use, another, somebodys}
