"""No page or shipped result calls a threshold one of capacity where a smaller width is known."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RESULTS = sorted((ROOT / "docs" / "results").glob("*.json"))
WORDING = sorted(path for kind in ("*.j2", "*.py") for path in (ROOT / "analysis").rglob(kind))
"""Where a report has its sentences from."""
WORDS = {"proved", "optimisation", "budget", "unknown", None}
WORD = re.compile(r"\bcapacity|\bsurviv(es?|ed)\b|\bvanish", re.IGNORECASE)
"""What says that a threshold is one of what weights can hold, and not of how they were found."""
OTHER = re.compile(
    r'capacity[ _]scale|capacity-based|`capacity`|"survives"|capacity follows d_|= CAPACITY',
    re.IGNORECASE,
)
"""The law's abscissa, titles and a statement of others; words that these pages used to have."""
DENIED = re.compile(
    rf"\b(no threshold|not|nor|never|cannot)\b[^.,:;]*({WORD.pattern})", re.IGNORECASE
)
"""A denial in the same clause: that of another clause excuses nothing."""
SUBJECT = re.compile(
    r"threshold|D_K\^?\*|limit|\bpass|\(\d+, \d+\)|several heads|\bgain\b", re.IGNORECASE
)
"""What a claim about thresholds names; a definition does not."""
CELL = re.compile(r"\((\d+), (\d+)\)")

OF_OTHERS = ("contexts", "softmax", "binary", "skewed", "facts", "growth")
"""Results of other contexts, models, embeddings or graphs than ``base-grid``, or of no passes."""

OF_ANOTHER = re.compile(r"(?:^|,)model=(?!max(?:,|$))")
"""The name of a cell that is another layer's, in a study of several."""

Cell = tuple[int, int]


def rows_in(value: Any) -> Iterator[dict[str, Any]]:
    """Every record of a JSON file, at any depth."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value:
        if isinstance(one, dict | list):
            yield from rows_in(one)


@cache
def shipped() -> list[tuple[str, dict[str, Any]]]:
    read = ((path.name, json.loads(path.read_text("utf-8"))) for path in RESULTS)
    return [(name, row) for name, document in read for row in rows_in(document)]


@cache
def trained() -> dict[Cell, int]:
    """D_K* of the cells of ``base-grid``."""
    best = json.loads((ROOT / "docs/results/base-grid.thresholds.json").read_text("utf-8"))
    return {(row["m"], row["d_model"]): row["D_K"] for row in best["printed"]["best"]}


@cache
def known() -> dict[tuple[Cell, int | None], int]:
    """The smallest D_K that any shipped result passes at, by cell and by cell and heads."""
    found: dict[tuple[Cell, int | None], int] = {}

    def note(cell: Cell, h: int | None, D_K: float | None) -> None:
        for heads in {h, None} if D_K else ():
            found[cell, heads] = min(found.get((cell, heads), 10**9), int(D_K or 0))

    for name, row in shipped():
        if name.startswith(OF_OTHERS) or OF_ANOTHER.search(str(row.get("cell", ""))):
            continue
        if (
            row.get("model", "max") == "max"
            and {"m", "d_model", "D_K"} <= {*row}
            and row.get("status", "found") == "found"
        ):
            cell = row["m"], row["d_model"]
            note(cell, row.get("h", row.get("h_star")), row["D_K"])
            note(cell, 1, row.get("D_K_one"))
            note(cell, row.get("possible_h"), row.get("possible_D_K"))
    return found


def refuted(text: str) -> list[Cell]:
    """The cells whose threshold a text calls one of capacity, though less is known to pass.

    Or says that the gain of several heads survives there, or vanishes.
    """
    sentences = re.split(r"(?<=[.;!?])\s|\n\n|\|\n", OTHER.sub("", text))
    named = [one for one in sentences if WORD.search(one) and SUBJECT.search(one)]
    claims = [one for one in named if not DENIED.search(one)]
    widths, least = trained(), known()
    cells_of = [[(int(m), int(d)) for m, d in CELL.findall(one)] or [*widths] for one in claims]
    return [cell for cells in cells_of for cell in cells if least[cell, None] < widths[cell]]


@pytest.mark.parametrize("path", [*PAGES, *WORDING, *RESULTS], ids=lambda path: path.name)
def test_no_text_calls_a_threshold_one_of_capacity_where_less_is_known_to_pass(path: Path) -> None:
    assert not refuted(path.read_text("utf-8"))


def test_such_a_text_would_be_found() -> None:
    assert refuted("At (512, 64) one head passes at no width: a limit of capacity.") == [(512, 64)]
    assert len(refuted("Thresholds of the base grid are the layer's capacity.")) > 9
    assert refuted("At (512, 64) one head does not pass, so that the limit is its capacity.")
    assert not refuted("At (512, 64) the threshold is not one of capacity.")
    assert refuted("At (512, 64) the advantage of several heads survives.") == [(512, 64)]
    assert refuted("With more steps the gain vanishes at (256, 64).") == [(256, 64)]


def test_the_base_grid_of_the_pages_has_the_least_known_width_and_what_limits_it_follows() -> None:
    text = (ROOT / "docs/figures.md").read_text("utf-8")
    (block,) = re.findall(r"written: base-grid best -->(.*?)<!-- / -->", text, re.DOTALL)
    rows = [line.strip("| ").split(" | ") for line in block.strip().splitlines()[2:]]
    least, widths, stored = known(), trained(), {}
    for name, row in shipped():
        if name == "base-grid.thresholds.json" and "h_star" in row:
            stored[row["m"], row["d_model"]] = row["limited_by"]
    for m, d_model, *_, possible, limit in rows:
        cell = int(m), int(d_model)
        assert int(possible.split()[0]) == least[cell, None], cell
        is_lower = least[cell, None] < widths[cell]
        assert (limit in ("budget", "optimisation")) == is_lower, cell
        assert limit != "budget" or "steps" in possible, cell
        assert (stored[cell] == "unknown") == (not is_lower), cell
    assert len(rows) == len(widths)


def test_no_shipped_row_is_proved_or_has_another_word_where_weights_are_known() -> None:
    least = known()
    assert least[(512, 64), None] == 30
    for name, row in shipped():
        limit = row.get("limited_by")
        assert limit in WORDS, name
        if limit == "proved":
            cell, h = (row["m"], row["d_model"]), row.get("h", 1)
            assert (cell, h) not in least, (name, cell, h)
        if limit == "unknown" and row.get("possible_D_K") and row["D_K"]:
            assert row["possible_D_K"] >= row["D_K"], (name, row)
