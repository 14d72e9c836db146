"""Whole pages of three kinds of study, and all that lies beside them, against approved copies.

A copy says what a page was when somebody last looked at it, not that it is right: other tests do.
After a change that is meant, ``pytest tests/analysis/pages --force-regen`` writes anew what
differs, a file of each page each time, and ``--regen-all`` all of it, with the last digits of this
processor; look at the diff, and at a page, before you commit it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from tests.analysis.pages.conftest import Made

APPROVED = Path(__file__).with_name("approved")
STYLE, SCRIPT, DATA = r"<style.*?</style>", r"<script.*?</script>", r'"data:[^"]*"'
PLACES = re.compile(r'\b(?:x|y|x1|x2|y1|y2|d|transform|height|viewBox)="[^"]*"')
NUMBER = re.compile(r"(?<![\w#.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
IN_PLACES = re.compile(r"-?\d+(?:\.\d+)?")


COPIED = ("thresholds", "transformer", "facts")
"""Pages with an approved copy: one of each kind of study."""


@pytest.mark.parametrize("name", COPIED)
def test_a_page_is_as_approved(
    name: str,
    made: Callable[[str], Made],
    file_regression: FileRegressionFixture,
    request: pytest.FixtureRequest,
) -> None:
    page, files, _ = made(name)
    shown = {"index.html": markup(page, STYLE, SCRIPT, DATA)}
    for file, content in files.items():
        shown[file] = markup(content.decode(), STYLE, SCRIPT)
    shown.pop("decisions.csv", None)  # of the search, whose tests are elsewhere
    if not request.config.getoption("regen_all"):
        assert {path.name for path in (APPROVED / name).iterdir()} == set(shown)
    for file, text in shown.items():
        file_regression.check(
            text, encoding="utf-8", fullpath=APPROVED / name / file, check_fn=same
        )


def markup(text: str, *left_out: str) -> str:
    """A text without these parts: on each line an element, a row of a table or a mark."""
    for part in left_out:
        text = re.sub(part, "", text, flags=re.DOTALL)
    text = re.sub(r"\s*\n\s*", "\n", text.replace("><", ">\n<"))
    marks = r'<use [^>]*[^/]>.*?</use>|<text.*?</text>|<svg [^>]*class="(?:[xy]t|pt)\b.*?</svg>'
    together = rf"<tr.*?</tr>|<g [^>]*>(?:(?!<g\b).)*?</g>|{marks}"
    return re.sub(together, lambda found: in_a_line(found[0]), text, flags=re.DOTALL)


def in_a_line(markup: str) -> str:
    """Elements side by side; where a text begins a line, as in a tip, a line's end is written."""
    return markup.replace(">\n<", "><").replace("\n", "\\n")


def same(obtained: Path, approved: Path) -> None:
    """Fail unless two texts agree: where a fraction ends may differ from machine to machine."""
    texts = obtained.read_text("utf-8"), approved.read_text("utf-8")
    for number, lines in enumerate(zip_longest(*(text.splitlines() for text in texts)), start=1):
        one, other = lines
        is_same = one == other or (
            one is not None
            and other is not None
            and approved.suffix != ".yaml"
            and alike(one, other)
        )
        if not is_same:
            where = f"{approved}:{number}"
            raise AssertionError(f"{where}\napproved: {other}\nobtained: {one}\nfrom {obtained}")


def alike(one: str, other: str) -> bool:
    """Whether two lines differ by rounding alone, since the last bits depend on the processor.

    Of a figure: places by one in their last digit. Of any text: fractions by one in the last digit
    and a hundredth, or by a ten-thousandth where there are many digits.
    """
    placed = [PLACES.findall(line) for line in (one, other)]
    if not all(
        IN_PLACES.sub("", a) == IN_PLACES.sub("", b)
        and all(
            is_near(x, y) for x, y in zip(IN_PLACES.findall(a), IN_PLACES.findall(b), strict=True)
        )
        for a, b in zip_longest(*placed, fillvalue="")
    ):
        return False
    one, other = PLACES.sub("", one), PLACES.sub("", other)
    if NUMBER.sub("", one) != NUMBER.sub("", other):
        return False
    numbers = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(a == b or ("." in a + b and is_near(a, b, 0.01)) for a, b in numbers)


def is_near(one: str, other: str, share: float = math.inf) -> bool:
    """Whether two numbers differ by one in the last digit, and by no more than a share of them."""
    away, size = abs(float(one) - float(other)), abs(float(other))
    if max(len(one), len(other)) > 7:
        return away <= max(1e-4 * size, 1e-12)
    digits = {len(number.partition(".")[2]) for number in (one, other)}
    is_last = len(digits) == 1 and away <= 1.01 * 10.0 ** -max(digits)
    return is_last and (share == math.inf or away <= share * size)
