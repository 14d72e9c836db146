"""What the page sets beside the paper, what the study cost, and where its runs come from."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

import numpy as np

from rgr_dist.paper import IMPLIED, TABLE_1_D_K_OF_A_HEAD
from tests.analysis.page_numbers.by_hand import Cell, Size, shown
from tests.analysis.page_numbers.reading import agree, flat, numbers, table, words

Cells = Mapping[Size, Cell]


def difference(value: float) -> str:
    text = f"{value:+.0f}" if value == int(value) else f"{value:+.3g}"
    return "0" if value == 0 else text.replace("-", "−")


def test_cell_by_cell(page: str, cells: Cells) -> None:
    rows = table(page, "table-agreement-cells")
    assert [row["cell"] for row in rows] == [shown(size) for size in cells]
    for row, (size, cell) in zip(rows, cells.items(), strict=True):
        D_K, h = IMPLIED[size]
        d_k, own = TABLE_1_D_K_OF_A_HEAD[size], cell.star.passed.d_k
        says = {True: "agrees", False: "differs"}
        step = max(h, cell.h)
        assert (row["DK*, the paper"], row["here"]) == (str(D_K), str(cell.D_K))
        assert row["verdict"] == says[abs(cell.D_K - D_K) <= step]
        assert (row["h*, the paper"], row["here 2"]) == (str(h), str(cell.h))
        assert row["verdict 2"] == says[min(cell.kept) <= h <= max(cell.kept)]
        assert (row["dk*, the paper"], row["here 3"]) == (str(d_k), str(own))
        assert row["verdict 3"] == says[abs(own - d_k) <= 1]


def test_the_whole_grid(page: str, cells: Cells) -> None:
    rows = {row["what"]: row for row in table(page, "table-agreement")}
    widths = [cell.star.passed.d_k for cell in cells.values()]
    for what, theirs, own in (
        ("smallest", 5, min(widths)),
        ("largest", 24, max(widths)),
        ("median", 11, statistics.median(widths)),
    ):
        row = rows[f"{what} dk* on the base grid"]
        assert (row["the paper"], row["here"]) == (str(theirs), f"{own:g}")
        assert row["difference"] == difference(own - theirs)
        assert row["verdict"] == ("agrees" if abs(own - theirs) <= 1 else "differs")
    laws = {(row["of"], row["n"]): row for row in table(page, "table-laws")[3:]}
    for (of, n), which, slope, r2 in (
        (("DK*", "12"), ", all cells", 1.19, 0.944),
        (("DK*", "9"), ", all but dmodel = 16, m > 64", 0.966, 0.992),
        (("h*", "12"), ", all cells", 1.65, 0.824),
    ):
        own = laws[of, n]  # recomputed in test_laws
        at = [row for what, row in rows.items() if flat(of) in what and what.endswith(which)]
        told = {row["the paper"]: row for row in at}
        assert told[f"{slope:g}"]["here"] == numbers(own["fit"])[0]
        assert float(told[f"{r2:g}"]["here"]) == float(own["R²"])
        agrees = abs(float(own["R²"]) - r2) <= 0.05
        assert told[f"{r2:g}"]["verdict"] == ("agrees" if agrees else "differs")
        assert agree(told[f"{slope:g}"]["difference"], float(numbers(own["fit"])[0]) - slope, 50)
    cellwise = table(page, "table-agreement-cells")
    of_widths, of_heads, verdicts = (
        [row[name] for row in of]
        for of, name in ((cellwise, "verdict"), (cellwise, "verdict 2"), (rows.values(), "verdict"))
    )
    assert len(of_widths) == 12
    assert (
        f"DK* agrees in {of_widths.count('agrees')} of 12 cells with what the paper’s Table 1 "
        f"implies, h* in {of_heads.count('agrees')}. Of {len(verdicts)} other numbers of the paper "
        f"that this study measures, {verdicts.count('agrees')} agree."
    ) in words(page, "agreement")


def test_where_the_papers_numbers_do_not_fit_together(page: str) -> None:
    """Σ x D_K* of all cells less that of the wide ones, by the two slopes, and by Table 1."""
    said = words(page, "agreement")
    widths = list(TABLE_1_D_K_OF_A_HEAD.values())
    assert (
        f"The text gives a median dk* of 11 on the base grid (Sec. 6.1); the twelve values of its "
        f"Table 1, from {min(widths)} to {max(widths)}, have a median of "
        f"{statistics.median(widths):g}."
    ) in said
    scale = {(m, d): m * math.log2(m) / d for m, d in TABLE_1_D_K_OF_A_HEAD}
    narrow = {size: x for size, x in scale.items() if size[1] == 16 and size[0] > 64}
    every = sum(x**2 for x in scale.values())
    wide = every - sum(x**2 for x in narrow.values())
    needed = [(1.19 + e) * every - (0.966 - e / 10) * wide for e in (-0.005, 0.005)]
    each = [
        np.array([h * TABLE_1_D_K_OF_A_HEAD[size] * x for h in (1, 2, 4, 8, 16, 32, 64)])
        for size, x in narrow.items()
    ]
    sums = np.add.outer(np.add.outer(each[0], each[1]), each[2]).ravel()
    assert not ((needed[0] <= sums) & (sums <= needed[1])).any()
    nearest = sums[np.abs(sums - np.mean(needed)).argmin()]
    assert (
        f"they fix Σ x DK* of the three narrow cells at {needed[0]:,.0f} to {needed[1]:,.0f}, and "
        f"of the {len(sums)} ways to give these cells the paper's head counts, 1 to 64, none gives "
        f"that; the nearest is {nearest:,.0f}."
    ) in said
