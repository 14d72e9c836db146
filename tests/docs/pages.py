"""README.md and the pages of docs/, and what is in them."""

from __future__ import annotations

import itertools
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from rgr_dist.cli import app

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
OTHERS = [ROOT / "CONTRIBUTING.md", ROOT / "deploy/README.md"]
"""Pages whose commands are for developers and clusters."""

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code in a page; they are numbered from 0."""

    page: Path
    number: int
    language: str
    text: str

    @property
    def name(self) -> str:
        """``search.md-0``."""
        return f"{self.page.name}-{self.number}"

    @property
    def commands(self) -> list[list[str]]:
        """The lines of a shell block, split into arguments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        split = [shlex.split(line, comments=True) for line in lines]
        return [arguments for arguments in split if arguments]


def blocks(language: str, *pages: Path) -> list[Block]:
    """The blocks in a language, of every page if none is named."""
    return [
        Block(page, number, kind, text)
        for page in pages or PAGES
        for number, (kind, text) in enumerate(FENCE.findall(page.read_text("utf-8")))
        if kind == language
    ]


def printed(page: Path) -> str:
    """What a page shows that its scripts print: the blocks of text that follow one of Python."""
    fences = FENCE.findall(page.read_text("utf-8"))
    kinds = ("python", "text")
    return "".join(b[1] for a, b in itertools.pairwise(fences) if (a[0], b[0]) == kinds)


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text("utf-8"))


def anchors(page: Path) -> set[str]:
    """The addresses of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in words}


def verbs() -> set[str]:
    """What the command line can do."""
    return {
        (command.name or command.callback.__name__).replace("_", "-")
        for command in app.registered_commands
        if command.callback is not None
    }
