"""What ``import rgr_dist`` gives, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import rgr_dist
from rgr_dist.cli import call


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60
    )


def test_every_public_name_is_there_and_no_other() -> None:
    assert all(getattr(rgr_dist, name) is not None for name in rgr_dist.__all__)
    assert dir(rgr_dist) == sorted(rgr_dist.__all__)
    assert rgr_dist.__version__ == version("rgr-dist")
    assert "quickstart" in rgr_dist.studies()
    with pytest.raises(AttributeError, match="has no attribute 'thresholds'"):
        rgr_dist.thresholds  # noqa: B018


def test_code_that_is_not_installed_is_source(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def version(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr("importlib.metadata.version", version)
    assert rgr_dist.__version__ == "source"
    assert call(["--version"]) == 0
    assert capsys.readouterr().out == "rgr source\n"


def test_importing_it_imports_no_library(tmp_path: Path) -> None:
    heavy = ("numpy", "pandas", "pydantic", "ray", "torch", "numba")
    done = python(
        f"import sys, rgr_dist; print([m for m in {heavy} if m in sys.modules])", tmp_path
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("name", ["search.py", "analysis.py", "search/__init__.py"])
def test_a_file_of_the_user_with_the_name_of_a_room_meets_none_of_ours(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("found = True")
    package = name.split("/")[0].removesuffix(".py")
    check = f"import {package}, rgr_dist.{package} as ours; print({package}.found, ours.__name__)"
    done = python(check, tmp_path)
    assert done.stdout.split() == ["True", f"rgr_dist.{package}"], done.stderr
