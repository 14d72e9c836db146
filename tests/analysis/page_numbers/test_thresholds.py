"""Cells, heads and scores on the page, against the rows."""

from __future__ import annotations

import math

from tests.analysis.page_numbers.by_hand import (
    FRESH,
    HEADS,
    SEEDS,
    Cell,
    Size,
    certificate,
    shown,
)
from tests.analysis.page_numbers.reading import agree, table, tiles, words

Cells = dict[Size, Cell]


def with_ends(middle: int, low: int | None, high: int | None) -> str:
    ends = "–".join("?" if end is None else str(end) for end in (low, high))
    return f"{middle} [{ends}]"


def D_K_words(cell: Cell, h: int) -> str:
    found = cell.heads[h]
    high = None if found.conservative is None else h * found.conservative
    return with_ends(found.passed.D_K, h * found.optimistic, high)


def bits(cell: Cell, D_K: int) -> float:
    """log₂ m! over the entries of queries and keys and the threshold."""
    m, d_model = cell.size
    return math.lgamma(m + 1) / math.log(2) / (2 * d_model * D_K + 1)


def test_the_store_has_what_can_go_wrong(cells: Cells) -> None:
    """Or the tests below would prove little."""
    assert len(cells) == 12
    probes = [probe for cell in cells.values() for probe in cell.probes]
    assert any(probe.diverged for probe in probes)
    assert any(probe.collapsed for probe in probes)
    assert any(not probe.is_whole for probe in probes)
    assert any(
        len(probe.fresh) == FRESH and probe.mean >= 0.99 > probe.fresh.mean() for probe in probes
    )
    assert any(len(cell.heads) < len(HEADS) for cell in cells.values())
    assert any(cell.low < cell.D_K for cell in cells.values())


def test_the_cells(page: str, cells: Cells) -> None:
    rows = table(page, "table-cells")
    assert [row["cell"] for row in rows] == [shown(size) for size in cells]
    for row, cell in zip(rows, cells.values(), strict=True):
        assert row["m′/dmodel"] == f"{cell.load:g}"
        assert agree(row["bits"], bits(cell, cell.D_K))
        assert row["DK*"] == with_ends(cell.D_K, cell.low, cell.high)
        assert row["h*"] == with_ends(cell.h, min(cell.kept), max(cell.kept))
        assert row["dk"] == str(cell.star.passed.d_k)
        assert row["confirmed"] == "yes"
        assert len(cell.star.passed.fresh) == FRESH
        assert row["certificate, in dk"] == certificate(cell.star)
        assert row["status"] == "found"


def test_the_threshold_of_every_head(page: str, cells: Cells) -> None:
    rows = table(page, "table-heads")
    assert len(rows) == len(cells) * len(HEADS)
    by_head = {(row["cell"], int(row["h"])): row for row in rows}
    for size, cell in cells.items():
        for h in HEADS:
            row = by_head[shown(size), h]
            if h in cell.heads and row["status"] == "found":
                assert row["DK"] == D_K_words(cell, h)
                assert row["dk"] == str(cell.heads[h].passed.d_k)
                assert row["mean"] == f"{cell.heads[h].passed.mean:.4f}"
                assert row["certificate, in dk"] == certificate(cell.heads[h])
                assert agree(row["bits"], bits(cell, cell.heads[h].passed.D_K))
            else:
                assert row["status"] == "pruned"
                assert row["dk"] == row["mean"] == "–"
                assert row["DK"] == f"≥ {cell.bound(h)}"


def test_the_heads_near_the_best(page: str, cells: Cells) -> None:
    rows = {(row["cell"], int(row["h"])): row for row in table(page, "table-pool")}
    expected = {(shown(size), h) for size, cell in cells.items() for h in cell.pool}
    assert set(rows) == expected
    for size, cell in cells.items():
        for h, p in cell.pool.items():
            row, own = rows[shown(size), h], cell.heads[h].passed
            gap = own.scores - cell.star.passed.scores
            assert row["DK"] == str(own.D_K)
            assert row["mean"] == f"{own.mean:.4f}"
            assert row["seeds in common"] == str(SEEDS)
            assert agree(row["mean difference"], gap.mean())
            told = "–" if p is None else f"{p:.3g}".replace("-", "−")
            assert row["p"] == told
            assert row["kept"] == ("yes" if h in cell.kept else "no")
            assert row["decided by"] == ("best" if p is None else "paired t-test")


def test_the_findings_in_words(page: str, cells: Cells) -> None:
    said = words(page, "summary")
    ends = f"from (m, dmodel) = {shown(min(cells))} to {shown(max(cells))},"
    assert f"For 12 cells of m items in dmodel dimensions, {ends}" in said
    assert "a mean test score of at least 0.99 over 10 seeds" in said
    by_width = sorted(cells.values(), key=lambda cell: cell.D_K)
    heads = [cell.h for cell in cells.values()]
    large = tiles(page)
    assert large["cells with a final threshold"] == "12 of 12"
    assert large["DK* across the cells"] == f"{by_width[0].D_K} – {by_width[-1].D_K}"
    assert large["h*, best number of heads"] == f"{min(heads)} – {max(heads)}"
