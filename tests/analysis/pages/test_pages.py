"""Whole pages, and all that lies beside them, against approved copies.

A copy says what a page was when somebody last looked at it, not that it is right: other tests do.
After a change that is meant, ``pytest tests/analysis/pages --regen-all`` writes the copies anew;
look at their diff, and at a page, before you commit them.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path

import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from tests.analysis.pages.made_up_studies import PAGES

APPROVED = Path(__file__).with_name("approved")
STYLE, SCRIPT, DATA = r"<style.*?</style>", r"<script.*?</script>", r'"data:[^"]*"'
NUMBER = re.compile(r"(?<![\w#])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_as_approved(
    name: str, tmp_path: Path, file_regression: FileRegressionFixture
) -> None:
    page, files = PAGES[name](tmp_path)
    shown = {"index.html": markup(page, STYLE, SCRIPT, DATA)}
    for file, content in files.items():
        is_enough = name != "thresholds"  # of how figures look as files, one page's are enough
        if not (is_enough and file.endswith(".svg")):
            shown[file] = markup(content.decode(), *([STYLE, SCRIPT] if is_enough else []))
    shown.pop("decisions.csv", None)  # of the search, whose tests are elsewhere
    for file, text in shown.items():
        file_regression.check(text, fullpath=APPROVED / name / file, check_fn=same)
    assert {path.name for path in (APPROVED / name).iterdir()} == set(shown)


def markup(text: str, *left_out: str) -> str:
    """A text without these parts, an element on each line."""
    for part in left_out:
        text = re.sub(part, "", text, flags=re.DOTALL)
    return re.sub(r"\s*\n\s*", "\n", text.replace("><", ">\n<"))


def same(obtained: Path, approved: Path) -> None:
    """Fail unless two texts agree: where a fraction ends may differ from machine to machine."""
    texts = obtained.read_text("utf-8"), approved.read_text("utf-8")
    for number, lines in enumerate(zip_longest(*(text.splitlines() for text in texts)), start=1):
        one, other = lines
        if one != other and (one is None or other is None or not alike(one, other)):
            where = f"{approved}:{number}"
            raise AssertionError(f"{where}\napproved: {other}\nobtained: {one}\nfrom {obtained}")


def alike(one: str, other: str) -> bool:
    """Whether two lines differ by no more than rounding in their fractions.

    That is one in the last digit, or a ten-thousandth where there are many digits: what an
    optimizer finds depends a little on the processor.
    """
    if NUMBER.sub("", one) != NUMBER.sub("", other):
        return False
    numbers = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(a == b or is_near(a, b) for a, b in numbers)


def is_near(one: str, other: str) -> bool:
    """Whether two fractions differ by rounding alone."""
    away, size = abs(float(one) - float(other)), abs(float(other))
    if "." not in one or "." not in other:
        return False
    if min(len(one), len(other)) > 6:
        return away <= max(1e-4 * size, 1e-12)
    digits = {len(number.partition(".")[2]) for number in (one, other)}
    return len(digits) == 1 and away <= 1.01 * 10.0 ** -max(digits)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("D_K 24", "D_K 25", False),
        ("x 12.3 y", "x 12.4 y", True),
        ("x 12.3 y", "x 12.5 y", False),
        ("0.12345678", "0.12345999", True),
        ("0.12345678", "0.12365999", False),
        ("0.12", "0.123", False),
        ("1.23456e-08", "1.23458e-08", True),
        ("1.23456e-08", "1.23658e-08", False),
        ("mean 0.99", "mean of 0.99", False),
        ("M12.5", "L12.5", False),
    ],
)
def test_lines_that_differ_by_rounding_are_alike(one: str, other: str, expected: bool) -> None:
    assert alike(one, other) == expected
