"""A page from its sections: one HTML file that holds its style, script, figures and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup, escape

from rgr_dist.analysis.figures.style import COLOURS, Figure, as_svg
from rgr_dist.analysis.wording import MISSING, number

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows to read.

    Attributes:
        name: its id on the page.
        caption: what it lists, and how to read it.
        rows: columns by their heads; texts are shown as they are, numbers as ``shown`` says.
    """

    name: str
    caption: str
    rows: pd.DataFrame

    @property
    def texts(self) -> list[bool]:
        """Which columns hold words, which are aligned left."""
        return [any(map(_is_word, self.rows[head])) for head in self.rows]


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and not re.match(r"[\d≥–+−]", value)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a page with a heading of its own: words, figures, tables, in this order.

    Attributes:
        name: its id on the page.
        code: a text to show as it is, such as a study's YAML.
        folded: whether a reader unfolds it.
    """

    name: str
    title: str
    words: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    code: str = ""
    folded: bool = False


def render(
    title: str,
    finding: str,
    words: Sequence[str],
    sections: Sequence[Section],
    files: Sequence[str] = (),
    state: str | None = None,
) -> str:
    """The page as HTML.

    Args:
        title: what the page is about.
        finding: its heading, in a sentence.
        words: paragraphs below it; the figures of the first section follow.
        files: names of files that lie beside the page.
        state: how far a study is that still runs; such a page loads itself anew.
    """
    page = (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            finding=finding,
            words=words,
            sections=sections,
            files=files,
            state=state,
            colours=COLOURS,
        )
    )
    return page.replace("\0", "\N{REPLACEMENT CHARACTER}")  # HTML has no place for it


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=jinja2.select_autoescape(("j2",)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"math": math, "shown": shown}
    environment.filters["svg"] = lambda figure: Markup(as_svg(figure))
    return environment


def math(text: Any) -> Markup:
    """Our own words as HTML: ``D_K``, ``m``, ``h*`` and ``x^2`` as the field writes them."""
    marked = re.sub(r"\b([Dd])_(K|V|k|vo|qk|model)\b", r"<i>\1</i><sub>\2</sub>", str(escape(text)))
    marked = re.sub(r" ?\^ ?([−-]?\w+(?:\.\w+)?)", r"<sup>\1</sup>", marked)
    marked = re.sub(r"(?<![\w-])(m(?![\w-])|h(?=\*| [=·]| heads))(?![^<]*>)", r"<i>\1</i>", marked)
    return Markup(re.sub(r"\[[^\[\]]+[–0-9?]\]", r'<span class="whole">\g<0></span>', marked))


def shown(value: Any) -> Markup:
    """A value of a table: thousands apart, three digits of a real number, a dash for none."""
    if isinstance(value, str):
        return math(value)
    if value is None or pd.isna(value):
        return Markup(MISSING)
    if isinstance(value, bool):
        return Markup("yes" if value else "no")
    return Markup(number(value, "," if value == int(value) else ",.3g"))
