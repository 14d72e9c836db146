"""What ``import rgr_dist`` gives, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rgr_dist


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60
    )


def test_every_public_name_is_there_and_no_other() -> None:
    assert all(getattr(rgr_dist, name) is not None for name in rgr_dist.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'thresholds'"):
        rgr_dist.thresholds  # noqa: B018


def test_importing_it_imports_no_library(tmp_path: Path) -> None:
    heavy = ("numpy", "pandas", "pydantic", "ray", "torch", "numba", "search", "analysis")
    done = python(
        f"import sys, rgr_dist; print([m for m in {heavy} if m in sys.modules])", tmp_path
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("name", ["search.py", "analysis.py", "search/__init__.py"])
def test_a_file_that_hides_one_of_our_packages_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("found = True")
    done = python("import rgr_dist", tmp_path)
    assert done.returncode == 1
    package = name.split("/")[0].removesuffix(".py")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {tmp_path / name} hides the package '{package}'")
    assert python(f"import {package}; import sys; assert {package}.found", tmp_path).returncode == 0
