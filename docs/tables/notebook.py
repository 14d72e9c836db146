"""The notebook of the documentation: executed by a program, its outputs kept."""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent.parent / "notebook.ipynb"
TIMEOUT = 1200
"""Seconds that a cell may take."""


def execute(notebook: Any, folder: str | Path) -> Any:
    """Execute every cell in a fresh kernel that works in a folder; returns the notebook.

    What tqdm and Ray log where there is no ipywidgets is left out: it is of this machine.

    Raises:
        CellExecutionError: a cell raised.
    """
    from nbclient import NotebookClient

    alone = {"RAY_ADDRESS": "local", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    NotebookClient(
        notebook,
        timeout=TIMEOUT,
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    ).execute(env={**os.environ, **alone})
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        outputs[:] = [out for out in outputs if "ipywidgets" not in out.get("text", "")]
    return notebook


def write() -> None:
    """Execute the notebook in an empty folder; keep its outputs, without terminal colours."""
    import nbformat

    notebook = nbformat.read(PATH, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        execute(notebook, folder)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = re.sub(r"\x1b\[[\d;]*m", "", output["text"])
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.write(notebook, PATH)
