"""Commands that messages print: a shell reads the names that were given."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from rgr_dist.cli.options import as_typed


@pytest.mark.skipif(shutil.which("bash") is None, reason="pastes into bash")
@pytest.mark.parametrize("name", ["x y", "it's", "a\nb", "é'\x1b[T", "a\\\x07b'c", "\udcff\n", ""])
def test_a_printed_command_names_the_same_store(name: str) -> None:
    typed = as_typed("quickstart", name, ["search.seeds=3"])
    assert typed.isprintable()
    pasted = subprocess.run(["bash", "-c", rf"printf '%s\0' {typed}"], capture_output=True)
    words = ["quickstart", "--set", "search.seeds=3", "--store", name]
    assert pasted.stdout.split(b"\0") == [*map(os.fsencode, words), b""]
