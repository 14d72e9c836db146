"""A page from its sections: one HTML file that holds its style, script, figures and tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from rgr_dist import paper
from rgr_dist.analysis import wording
from rgr_dist.analysis.drawing import colours, svg
from rgr_dist.analysis.drawing.panel import POWER, SIZES
from rgr_dist.analysis.page.section import Section


def render(
    title: str,
    sections: Sequence[Section],
    files: Mapping[str, bytes],
) -> str:
    """The page as HTML.

    Args:
        title: of the document.
        sections: in order. The first is the head, which the contents do not list; below its title
            it shows the second section, if that has a figure.
        files: the files that lie next to the page, by name.
    """
    environment = _environment()
    heads = sorted({h for each in sections for figure in each.figures for h in figure.heads})
    head, *rest = sections
    leads = bool(rest and rest[0].figures)
    parts = [(each, body_of(each, is_lead=leads and each is rest[0])) for each in rest]
    page = environment.get_template("page.html.j2").render(
        title=title,
        head=body_of(head, lead=parts[0] if leads else None),
        lead=leads,
        sections=parts,
        style=Markup(_source("page.css")),
        marks=Markup(svg.head_rules(heads)),
        colours={theme: colours.variables(heads, theme) for theme in ("light", "dark")},
        shapes=svg.shapes(),
        script=Markup(_source("page.js")),
        files=[*files],
    )
    return page.replace("\0", "\N{REPLACEMENT CHARACTER}")  # HTML has no place for it


def body_of(
    section: Section, is_lead: bool = False, lead: tuple[Section, Markup] | None = None
) -> Markup:
    """A section as HTML, without its heading.

    Args:
        is_lead: whether the section stands below the page's title, its figures first.
        lead: for the head, the section that stands there, with its HTML.
    """
    template = _environment().get_template(f"sections/{section.template}.html.j2")
    values = {"section": section, "paper": paper, "is_lead": is_lead, "lead": lead}
    return Markup(template.render(values | dict(section.values)))


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rgr_dist.analysis.page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"math": math, "prose": prose, "sentence": sentence}
    environment.filters["breakable"] = breakable
    for name in ("duration", "number", "plural", "span", "three_digits"):
        environment.filters[name] = getattr(wording, name)
    environment.globals["panel"] = svg.page_panel
    environment.globals["legend_mark"] = svg.legend_mark
    return environment


def math(text: Any) -> Markup:
    """Our own words as HTML: ``D_K``, ``m``, ``h*`` and ``x^2`` as the field writes them."""
    marked = re.sub(r"\b([Dd])_(K|V|k|vo|qk|model)\b", r"<i>\1</i><sub>\2</sub>", str(escape(text)))
    marked = re.sub(POWER, r"<sup>\1</sup>", marked)
    return Markup(re.sub(SIZES, r"<i>\1</i>", marked))


def sentence(text: Any) -> Markup:
    """``math`` in which no interval, ``[12–13]``, is broken over two lines."""
    interval = r"\[[^\[\] ]+–[^\[\] ]+\]"
    return Markup(re.sub(interval, r'<span class="whole">\g<0></span>', str(math(text))))


def breakable(text: Any) -> Markup:
    """The text of a table's cell: a word may break after a full stop, comma, ``_`` or ``=`` in it.

    Numbers, ``20,000`` and ``0.99``, are not broken.
    """
    within = r"(?<=\w)(?:[_=]|[.,](?=[^\W\d]))(?=\w)"
    return Markup(re.sub(within, r"\g<0><wbr/>", str(escape(text))))


def prose(text: Any) -> Markup:
    """A paragraph of our own words as one line of HTML, however many lines its template has."""
    return Markup(" ").join(sentence(text).split())


@cache
def _source(name: str) -> str:
    """A template file without its comments and indentation, which would only take up room."""
    lines = (Path(__file__).parent / "templates" / name).read_text("utf-8").splitlines()
    return "\n".join(line.lstrip() for line in lines if not line.lstrip().startswith("// "))
