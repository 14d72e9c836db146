"""What stands on a page: its tables, the texts of its points, its sentences, its tiles."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from rgr_dist.analysis.page.render import body_of
from rgr_dist.analysis.page.section import Section

Record = dict[str, str]


def flat(text: str) -> str:
    """Our words as the page's text has them: ``DK`` for a D with a subscript, ``x2`` for x^2."""
    return re.sub(r" ?\^ ?(?=[−\w.-])", "", re.sub(r"\b([Dd])_(K|k|model)\b", r"\1\2", text))


def table(page: str, name: str) -> list[Record]:
    """The rows of a table by their headers; a header that comes again has a number after it."""
    found = re.search(rf'<table id="{name}".*?</table>', page, flags=re.S)
    assert found is not None, name
    root = ET.fromstring(found[0])
    texts = ["".join(cell.itertext()) for cell in root.iterfind("./thead/tr/th")]
    heads = [
        text if text not in texts[:i] else f"{text} {texts[:i].count(text) + 1}"
        for i, text in enumerate(texts)
    ]
    rows = root.findall("./tbody/tr")
    return [dict(zip(heads, ("".join(c.itertext()) for c in row), strict=True)) for row in rows]


def words(page: str, section: str) -> str:
    """The paragraphs and lists of a section, a line each."""
    start = '<main id="main">' if section == "summary" else f'<section id="{section}"'
    part = page[page.index(start) :]
    part = part[: part.index("</header>" if section == "summary" else "</section>")]
    part = re.sub(r"<figure.*?</figure>|<table.*?</table>", "", part, flags=re.S)
    lines = re.findall(r"<(?:h1|p|li|summary)\b[^>]*>(.*?)</(?:h1|p|li|summary)>", part, flags=re.S)
    return "\n".join(html.unescape(re.sub(r"<[^>]+>", "", line)) for line in lines)


def paragraphs(section: Section) -> list[str]:
    """The paragraphs of a section by itself."""
    found = re.findall(r"<p>(.*?)</p>", body_of(section), flags=re.S)
    return [html.unescape(re.sub(r"<[^>]+>", "", text)) for text in found]


def tiles(page: str) -> dict[str, str]:
    """The numbers in large type, by what they are."""
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page)
    return {html.unescape(re.sub(r"<[^>]+>", "", name)): html.unescape(v) for name, v in found}


def numbers(text: str) -> list[str]:
    """Every number in a text, as written."""
    plain = text.replace("−", "-").replace(",", "")
    return re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", plain)


def agree(shown: str, value: float, slack: float = 0.02) -> bool:
    """Whether a number is rounded to what is shown.

    Args:
        slack: by how many units of the last digit it may miss half a unit.
    """
    text = shown.replace("−", "-").replace(",", "").replace(" %", "")
    decimals = len(text.partition(".")[2])
    return abs(float(text) - value) <= (0.5 + slack) * 10.0**-decimals


def all_agree(texts: Sequence[str], values: Sequence[float]) -> bool:
    """Whether so many numbers are rounded to what is shown, in that order."""
    return len(texts) == len(values) and all(map(agree, texts, values))
