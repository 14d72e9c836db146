"""Tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table, its columns as wide as they come."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def plain(text: str) -> str:
    """A docstring's text as Markdown: literals in single backticks, one line, no emphasis."""
    pieces = re.split(r"(``.*?``)", " ".join(text.split()))
    return "".join(
        piece[1:-1] if piece.startswith("``") else piece.replace("*", r"\*") for piece in pieces
    )
