"""The notebook of the documentation: executed, its outputs kept, and they tell of no machine."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from tables import notebook
from tests.docs.pages import ROOT

CELLS: list[dict[str, Any]] = json.loads(notebook.PATH.read_text("utf-8"))["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]


def kinds(cell: dict[str, Any]) -> list[tuple[str, frozenset[str]]]:
    """What a cell shows: the kind of each output, and its forms."""
    return [(out["output_type"], frozenset(out.get("data", ()))) for out in cell["outputs"]]


def test_every_cell_was_executed_in_order_and_shows_something() -> None:
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
    shown = {kind for cell in CODE for kind, _ in kinds(cell)}
    assert shown == {"display_data", "execute_result", "stream"}, "no error"
    streams = {out["name"] for cell in CODE for out in cell["outputs"] if "name" in out}
    assert streams == {"stdout"}, "nothing on standard error"
    assert all(cell["outputs"] for cell in CODE)
    assert any("image/svg+xml" in forms for cell in CODE for _, forms in kinds(cell))


def test_it_tells_of_no_machine() -> None:
    text = notebook.PATH.read_text("utf-8")
    assert not re.search(r"(?<![\w.<])/(home|root|tmp|usr|work|Users|var)/", text)
    assert socket.gethostname() not in text


@pytest.mark.slow
@pytest.mark.timeout(2 * notebook.TIMEOUT)
def test_it_runs_and_shows_what_it_showed(tmp_path: Path) -> None:
    pytest.importorskip("nbclient", reason="needs the extra docs")
    import nbformat

    again = notebook.execute(nbformat.read(notebook.PATH, as_version=4), tmp_path)
    now = [cell for cell in again.cells if cell["cell_type"] == "code"]
    assert [kinds(cell) for cell in now] == [kinds(cell) for cell in CODE]


def test_the_site_has_its_page() -> None:
    assert " notebook.md\n" in (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "(docs/notebook.ipynb)" in (ROOT / "README.md").read_text("utf-8")
