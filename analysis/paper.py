"""The published figures, cited, and our cells set beside them.

Source: M. Adler, "A Capacity-Based Rationale for Multi-Head Attention", arXiv:2509.22840v3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.records import integer
from rgr_dist.study.study import Cell, Search, Study, Training

TITLE = "A Capacity-Based Rationale for Multi-Head Attention"
AUTHOR = "Micah Adler"
URL = "https://arxiv.org/abs/2509.22840"

TARGET = 0.99
"""Mean test micro-F1 that passes (Sec. 6)."""

TABLE_1_D_K_OF_A_HEAD = {
    (64, 16): 5, (64, 32): 6, (64, 64): 5,
    (128, 16): 11, (128, 32): 21, (128, 64): 7,
    (256, 16): 6, (256, 32): 16, (256, 64): 24,
    (512, 16): 7, (512, 32): 9, (512, 64): 14,
}  # fmt: skip
"""Table 1: d_k at D_K*, by (m, d_model)."""

IMPLIED = {
    (64, 16): (20, 4), (64, 32): (6, 1), (64, 64): (5, 1),
    (128, 16): (88, 8), (128, 32): (21, 1), (128, 64): (7, 1),
    (256, 16): (192, 32), (256, 32): (64, 4), (256, 64): (24, 1),
    (512, 16): (448, 64), (512, 32): (144, 16), (512, 64): (56, 4),
}  # fmt: skip
"""(D_K*, h*) by (m, d_model): inferred, not published.

Fig. 8's values are not available as text. These are Table 1's d_k times the power-of-two head count
that the scaling law makes most likely.
"""

TABLE_2_MAX_STEPS = {
    (64, 16): 20_000, (64, 32): 20_000, (64, 64): 20_000,
    (128, 16): 20_000, (128, 32): 20_000, (128, 64): 20_000,
    (256, 16): 30_000, (256, 32): 20_000, (256, 64): 20_000,
    (512, 16): 80_000, (512, 32): 20_000, (512, 64): 20_000,
    (1024, 128): 80_000, (2048, 256): 80_000, (4096, 512): 200_000,
}  # fmt: skip
"""Table 2: training step cutoff, contexts, by (m, d_model)."""


@dataclass(frozen=True)
class PublishedLaw:
    """A fitted line as printed in the paper; ``place`` says where, r2 is None where not given.

    ``cells`` are those of the paper that it was fitted to.
    """

    slope: float
    intercept: float
    r2: float | None
    place: str
    cells: str = "all cells"


LAWS = {
    "D_K": PublishedLaw(1.19, 0.0, 0.944, "Sec. 6.1, Fig. 3"),
    "D_K_wide": PublishedLaw(0.966, 0.0, 0.992, "Sec. 6.1", "all but d_model = 16, m > 64"),
    "h": PublishedLaw(1.65, -6.64, 0.824, "Sec. 6.1, Fig. 10"),
}
"""Published counterparts of the laws of ``analysis.laws``, by name; permutation graphs."""

DENSE_LAW = PublishedLaw(0.46, 0.0, None, "App. A.3, Eq. 32, Fig. 12", "degrees up to 16")
"""D_K* of r-regular graphs at m = 128, d_model = 32, on r m log₂(m) / d_model."""

LARGEST_DEGREE = 16
"""The largest degree in that fit."""


def is_narrow(m: int, d_model: int) -> bool:
    """Whether the paper leaves the cell out of its second fit: d_model = 16 and m > 64."""
    return d_model == 16 and m > 64


def laws_for(study: Study) -> dict[str, PublishedLaw]:
    """The published laws that a study's cells can be held against, by name of ours.

    They are of max over heads: those of Sec. 6.1 on permutations, that of App. A.3 on regular
    graphs up to degree 16. Cells that are all wide are held against the fit of the wide ones, and
    thresholds on a grid of widths, which are as coarse as the grid, against none.
    """
    if any(cell.model != "max" for cell in study.cells) or study.search.mode == "grid":
        return {}
    families = {cell.graph.family for cell in study.cells}
    if families == {"regular"}:
        beyond = any(cell.graph.degree > LARGEST_DEGREE for cell in study.cells)
        return {"D_K_sparse" if beyond else "D_K": DENSE_LAW}
    if families != {"permutation"}:
        return {}
    if not any(is_narrow(cell.m, cell.d_model) for cell in study.cells):
        return LAWS | {"D_K": LAWS["D_K_wide"]}
    return LAWS


COMPARISON_KINDS = {
    "cell_id": "object", "m": "Int64", "d_model": "Int64", "D_K": "Int64", "paper_D_K": "Int64",
    "difference": "Int64", "step": "Int64", "h_star": "Int64", "paper_h": "Int64", "d_k": "Int64",
    "paper_d_k": "Int64", "agrees": "boolean",
}  # fmt: skip


def is_papers(cell: Cell, search: Search) -> bool:
    """Whether a cell is one of the paper's base grid, trained, tested and judged as there.

    That is: max over heads on a permutation, the contexts and training of App. A.1 with the step
    limits of Table 2, mean F1 of at least 0.99 over 10 seeds. Thresholds on a grid of widths are as
    coarse as the grid, and are not held against the paper's.
    """
    place = (cell.m, cell.d_model)
    if place not in IMPLIED or search.mode == "grid":
        return False
    if (search.target, search.seeds) != (Search().target, Search().seeds):
        return False
    training = Training(max_steps=TABLE_2_MAX_STEPS[place])
    return cell == Cell(m=cell.m, d_model=cell.d_model, training=training)


def compare(best: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Our D_K*, h* and d_k beside the paper's, for each cell that is set as there.

    ``step`` is what one step of
    d_k costs in D_K, the larger of both head counts; ``agrees`` says whether the difference of D_K*
    is within it, null where our cell has no threshold.

    Returns:
        ``cell_id, m, d_model, D_K, paper_D_K, difference, step, h_star, paper_h, d_k, paper_d_k,
        agrees``; paper_D_K and paper_h are inferred (``IMPLIED``), difference is ours minus theirs.
    """
    shared = {cell.cell_id for cell in study.cells if is_papers(cell, study.search)}
    rows = []
    for row in best.astype("object").to_dict("records"):
        place = (int(row["m"]), int(row["d_model"]))
        if row["cell_id"] not in shared:
            continue
        paper_D_K, paper_h = IMPLIED[place]
        D_K, h_star = integer(row["D_K"]), integer(row["h_star"])
        beside: dict[str, Any] = {
            "cell_id": row["cell_id"],
            "m": place[0],
            "d_model": place[1],
            "paper_D_K": paper_D_K,
            "paper_h": paper_h,
            "paper_d_k": TABLE_1_D_K_OF_A_HEAD[place],
        }
        if D_K is not None and h_star is not None:
            step = max(h_star, paper_h)
            beside |= {"D_K": D_K, "h_star": h_star, "d_k": integer(row["d_k"]), "step": step}
            beside |= {"difference": D_K - paper_D_K, "agrees": abs(D_K - paper_D_K) <= step}
        rows.append(beside)
    frame = pd.DataFrame(rows, columns=list(COMPARISON_KINDS), dtype="object")
    return frame.astype({name: kind for name, kind in COMPARISON_KINDS.items() if kind != "object"})
