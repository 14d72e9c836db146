"""Writes what stands between markers in README.md and docs/*.md: tables and numbers.

    python docs/write.py                        # write them anew
    python docs/write.py --plans                # first ask rgr plan of every shipped study again
    python docs/write.py --results STORE STUDY  # first read a study's again from a store
    python docs/write.py --pictures STORE       # first draw law.svg and report.webp anew
    python docs/write.py --ranks                # first ask rgr bounds --cp again; minutes
    python docs/write.py --notebook             # first execute notebook.ipynb anew

A block stands between ``<!-- written: NAME -->`` and ``<!-- / -->``, a number within a sentence
between ``<!-- =NAME -->`` and ``<!-- / -->``. NAME is a key of ``PIECES``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from tables import (
    columns,
    coverage,
    engines,
    facts,
    growth,
    keys,
    layers,
    notebook,
    phases,
    pictures,
    results,
    search,
    startup,
    studies,
    training_time,
    winners,
)

ROOT = Path(__file__).parent.parent

PIECES: dict[str, Callable[[], str]] = {
    **keys.PIECES,
    **columns.PIECES,
    **studies.PIECES,
    **results.PIECES,
    **search.PIECES,
    **startup.PIECES,
    **engines.PIECES,
    **growth.PIECES,
    **training_time.PIECES,
    **coverage.PIECES,
    **facts.PIECES,
    **winners.PIECES,
    **phases.PIECES,
    **layers.PIECES,
}
"""The text of each piece, by its name."""

MARKED = re.compile(r"<!-- (?P<kind>written: |=)(?P<name>[^>]+?) -->.*?<!-- / -->", re.DOTALL)


def pages() -> list[Path]:
    """README.md and every page of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def rewritten(text: str) -> str:
    """A page with every marked piece written anew.

    Raises:
        KeyError: a marker names no piece.
    """

    def write(match: re.Match[str]) -> str:
        kind, name = match["kind"], match["name"]
        piece = PIECES[name]()
        around = piece if kind == "=" else f"\n\n{piece}\n\n"
        return f"<!-- {kind}{name} -->{around}<!-- / -->"

    return MARKED.sub(write, text)


def main(arguments: list[str]) -> None:
    """Write the pages."""
    if arguments == ["--plans"]:
        studies.PLANS.write_text(studies.planned(), "utf-8")
    elif arguments == ["--ranks"]:
        facts.read_ranks()
    elif len(arguments) == 3 and arguments[0] == "--results":
        _, store, study = arguments
        if study == training_time.STUDY:
            training_time.read(store)
        elif study in coverage.STUDIES:
            coverage.read(store, study)
        elif study in facts.STUDIES:
            facts.read(store, study)
        elif study == winners.STUDY:
            winners.read(store)
        elif study == phases.STUDY:
            phases.read(store)
        else:
            results.read(store, study)
    elif len(arguments) == 2 and arguments[0] == "--pictures":
        pictures.take(arguments[1])
    elif arguments == ["--notebook"]:
        notebook.write()
    elif arguments:
        raise SystemExit(__doc__)
    for drawn in (phases, layers):
        drawn.FIGURE.write_bytes(drawn.figure())
    for page in pages():
        page.write_text(rewritten(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
