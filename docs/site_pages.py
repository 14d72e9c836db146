"""MkDocs hook: pages from outside docs/, links among them, and math as MathML.

The site's first page is README.md. Math is set when the site is built, so that a page needs no
script and no font for it; on GitHub the same ``$...$`` is set by GitHub.
"""

from __future__ import annotations

import base64
import html
import json
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "deploy/README.md": "deploy.md",
}
"""Pages from outside docs/, by their place in the repository."""
FILES = ("LICENSE", "cluster.yaml", "deploy/kuberay.yaml", "deploy/onprem.yaml")
"""Files that pages link to, which the site keeps at the same place."""
NOTEBOOKS = {"docs/notebook.ipynb": "notebook.md"}
"""Notebooks, and the pages that show them."""

LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")
MATH = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside docs/."""
    for source, place in {**PAGES, **{name: name for name in FILES}}.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    for source, place in NOTEBOOKS.items():
        files.append(File.generated(config, place, content=notebook_page(ROOT / source)))
    return files


def notebook_page(path: Path) -> str:
    """A notebook as Markdown: its text, its code and what it shows; its file to download."""
    parts = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [_shown(output) for output in cell["outputs"]]
    title, _, rest = "\n\n".join(parts).partition("\n")
    download = f'<p><a href="{path.name}" download>This page as a notebook</a></p>'
    return f"{title}\n\n{download}\n{rest}\n"


def _shown(output: dict[str, Any]) -> str:
    """What a cell shows, as HTML in one block: the richest form that it has."""
    data = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
    if "image/svg+xml" in data:
        packed = base64.b64encode(data["image/svg+xml"].encode()).decode()
        shown = f'<img alt="" src="data:image/svg+xml;base64,{packed}">'
    elif "text/html" in data:
        shown = re.sub(r"<style scoped>.*?</style>", "", data["text/html"], flags=re.DOTALL)
        shown = re.sub(r"\n\s*\n", "\n", shown)  # an empty line would end the block
    else:
        text = data.get("text/plain", "".join(output.get("text", "")))
        shown = f"<pre>{html.escape(text)}</pre>"
    return f'<div class="output">{shown}</div>'


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Point links at the places that pages and files have in the site."""
    sources = {place: source for source, place in PAGES.items()}
    place = page.file.src_uri
    folder = posixpath.dirname(sources.get(place, f"docs/{place}"))

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[1]))
        return {**PAGES, **NOTEBOOKS}.get(target, target.removeprefix("docs/"))

    return LINK.sub(moved, markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Set math as MathML."""

    def set_math(match: re.Match[str]) -> str:
        display = "block" if match[1] == "div" else "inline"
        return str(convert(html.unescape(match[2]).strip(), display=display))

    return MATH.sub(set_math, content)
