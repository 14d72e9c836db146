"""What pages say, in words, tables and figures, is as somebody has read it."""

from __future__ import annotations

import csv
import html
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from xml.etree import ElementTree

import pandas as pd
import pytest

from rgr_dist.analysis.compare import Side, compare, sentence, sides_by
from rgr_dist.analysis.figures.beside import beside
from rgr_dist.analysis.figures.style import Figure, as_svg
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.report import files, headline
from tests.analysis.studies import KINDS, made, page_of_kind
from tests.golden import golden

BESIDE: dict[str, Callable[[], list[Side]]] = {
    "thresholds and twelve": lambda: [side("thresholds"), side("twelve")],
    "transformer and itself": lambda: [side("transformer")] * 2,
    "layers by model": lambda: sides_by(made("layers"), "model"),
    "step limits by max_steps": lambda: sides_by(made("step limits"), "max_steps"),
}
SVG = "{http://www.w3.org/2000/svg}"


def told(kind: str) -> list[str]:
    """A study's page as text, a line for each paragraph, row and figure; then the files beside."""
    page, results = page_of_kind(kind), made(kind)
    main = page[page.index("<main>") : page.index("</main>")]
    main = re.sub(r"<svg .*?</svg>", lambda found: f"<p>{drawn(found[0])}</p>", main, flags=re.S)
    main = re.sub(r"<pre.*?</pre>", lambda found: " ".join(found[0].split()), main, flags=re.S)
    main = re.sub(r'<(section|figure|table) id="([\w-]+)"', r"#\2 <\1", main)
    main = re.sub(r"</(p|pre|h1|h2|tr|figcaption|summary)>", "\n", main)
    main = re.sub(r"</t[hd]><t[hd]\b", " | <", main)
    text = html.unescape(re.sub(r"<[^>]*>", "", main))
    text = re.sub(r"[\d.]+e−\d+", "≈ 0", text)  # how near a fit comes depends on the machine
    lines = [headline(results), *map(str.strip, text.splitlines()), *tables_beside(results)]
    return [*filter(None, lines)]


def drawn(svg: str) -> str:
    """The texts of a figure in their order, how many marks it has, the first and the last; its
    size, how often each colour and kind of dashes is used, and the sum of all coordinates."""
    tree = ElementTree.fromstring(svg)
    texts = ["".join(one.itertext()).strip() for one in tree.iter(f"{SVG}text")]
    tips = [html.escape(str(one.text)) for one in tree.iter(f"{SVG}title")]
    marks = [f"{len(tips)} marks: {tips[0]} … {tips[-1]}"] if tips else []
    size = " × ".join(f"{float(one):.0f}" for one in tree.attrib["viewBox"].split()[2:])
    inks = Counter(re.findall(r"(?<=var\(--)[^)]+|(?:dasharray|width): [\d.,]+", svg))
    used = (f"{ink} {count}" for ink, count in sorted(inks.items()))
    places = [one.get(key, "") for one in tree.iter() for key in ("d", "x", "y", "dy")]
    total = sum(map(float, re.findall(r"-?[\d.]+", " ".join(places))))
    return " ".join([*map(html.escape, texts), *marks, f"{size}:", *used, f"Σ {total:.4g}"])


def side(kind: str) -> Side:
    return Side(kind, made(kind), made(kind).study.cells)


def compared(name: str) -> list[str]:
    """What is said of studies, or of parts of one, beside each other; the table and the figure."""
    table = compare(BESIDE[name]())
    figure = Figure("beside", "", partial(beside, table))
    return [sentence(table), *rows_of("compared", table.to_csv(index=False)), drawn(as_svg(figure))]


def tables_beside(results: StudyResults) -> Iterator[str]:
    """What is in each table beside the page."""
    for name, content in files(results).items():
        if name.endswith(".csv"):
            yield from rows_of(name, content.decode())


def rows_of(name: str, text: str) -> Iterator[str]:
    """Of a table in CSV: how many rows, its columns, its first row, and the sums of numbers."""
    head, *rows = csv.reader(io.StringIO(text))
    first = map(rounded, rows[0] if rows else [""] * len(head))
    own = (f"{key} {value}".strip() for key, value in zip(head, first, strict=True))
    yield f"<{name}: {len(rows)}> " + ", ".join(own)
    numbers = pd.read_csv(io.StringIO(text)).select_dtypes("number")
    sums = numbers.loc[:, numbers.nunique(dropna=False) > 1].sum()
    if len(sums):
        yield "sums: " + ", ".join(f"{key} {value:.4g}" for key, value in sums.items())


def rounded(value: str) -> str:
    """Real numbers to four digits: the last ones differ between machines."""
    return re.sub(r"\d+\.\d+(e-\d+)?", lambda found: f"{float(found[0]):.4g}", value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_says_what_somebody_has_read(kind: str) -> None:
    assert told(kind) == golden(kind)


@pytest.mark.parametrize("name", BESIDE)
def test_studies_are_compared_as_somebody_has_read(name: str) -> None:
    assert compared(name) == golden(name)
