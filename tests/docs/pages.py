"""README.md and the pages of docs/, and what is in them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "deploy").glob("*.md"))

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code in a page."""

    page: Path
    language: str
    text: str

    @property
    def commands(self) -> list[list[str]]:
        """The lines of a shell block, split into arguments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        split = [shlex.split(line, comments=True) for line in lines]
        return [arguments for arguments in split if arguments]


def blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in some languages, in order; all if none is named."""
    found = [Block(page, kind, text) for kind, text in FENCE.findall(page.read_text("utf-8"))]
    return [block for block in found if not languages or block.language in languages]


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text("utf-8"))


def anchors(page: Path) -> set[str]:
    """The addresses of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in words}
