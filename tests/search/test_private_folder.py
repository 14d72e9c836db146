"""A temporary folder is its owner's, and goes at the end."""

from __future__ import annotations

from pathlib import Path

from rgr_dist.search.tune.connect import private_folder


def test_it_is_the_owners_alone_and_goes_at_the_end(tmp_path: Path) -> None:
    with private_folder(str(tmp_path)) as folder:
        assert Path(folder).stat().st_mode & 0o777 == 0o700
        assert list(tmp_path.iterdir()) == [Path(folder)]
    assert not list(tmp_path.iterdir())
