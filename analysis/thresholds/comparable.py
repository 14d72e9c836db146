"""Our cells compared with the paper's: which are comparable, and by how much they differ."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.records import integer
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.paper import (
    DENSE_LAW,
    DENSE_SIZE,
    IMPLIED,
    LARGEST_DEGREE,
    LAWS,
    TABLE_1_D_K_OF_A_HEAD,
    TABLE_2_MAX_STEPS,
    PublishedLaw,
    is_narrow,
)
from rgr_dist.study.cell import Cell
from rgr_dist.study.search import Search
from rgr_dist.study.study import Study
from rgr_dist.study.training import Training


def laws_for(study: Study) -> dict[str, PublishedLaw]:
    """The published laws to compare a study's fits with, by the name of our law.

    The paper fits max over heads alone: permutations in Sec. 6.1, regular graphs up to degree 16
    in App. A.3. A study without narrow cells is compared with the fit that leaves them out, and a
    grid study with none, since its thresholds are as coarse as its widths.
    """
    if study.search.mode == "grid":
        return {}
    if not any(has_papers_protocol(cell, study.search) for cell in study.cells):
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


COMPARISON_KINDS: dict[str, Any] = {
    "cell_id": "object", "m": "Int64", "d_model": "Int64", "D_K": "Int64", "paper_D_K": "Int64",
    "difference": "Int64", "step": "Int64", "h_star": "Int64", "paper_h": "Int64", "d_k": "Int64",
    "paper_d_k": "Int64", "agrees": "boolean",
}  # fmt: skip


def has_papers_protocol(cell: Cell, search: Search) -> bool:
    """Whether a cell is trained, tested and judged like those of the paper's fits of D_K*.

    That is: max over heads on a permutation, or on a regular graph of 128 items at d_model = 32,
    contexts and training as in App. A.1 with the step limits of Table 2, mean F1 of at least 0.99
    over 10 seeds. Runs that cannot pass may have been given up.
    """
    if (search.target, search.seeds) != (Search().target, Search().seeds):
        return False
    size = (cell.m, cell.d_model)
    if cell.graph.family != "permutation" and size != DENSE_SIZE:
        return False
    limit = TABLE_2_MAX_STEPS.get(size, Training().max_steps)
    training = Training(max_steps=limit, give_up_below=cell.training.give_up_below)
    # Not validated: the paper's contexts may be longer than the cell has items.
    papers = Cell.model_construct(
        m=cell.m, d_model=cell.d_model, graph=cell.graph, training=training
    )
    return cell == papers


def is_papers(cell: Cell, search: Search) -> bool:
    """Whether a cell belongs to the paper's base grid, and has its protocol.

    A grid study's thresholds are as coarse as its widths and are not compared.
    """
    if (cell.m, cell.d_model) not in IMPLIED or search.mode == "grid":
        return False
    return cell.graph.family == "permutation" and has_papers_protocol(cell, search)


def compare(best: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Our D_K*, h* and d_k next to the paper's, for each cell of its base grid and protocol.

    ``step`` is what one step of d_k costs in D_K: the larger of the two head counts. ``agrees``
    says whether D_K* differs by at most that. Our columns are null where there is no threshold, or
    while the cell's search is open.

    Args:
        best: the table of ``rgr_dist.analysis.thresholds.best_heads.best_of``.

    Returns:
        ``cell_id, m, d_model, D_K, paper_D_K, difference, step, h_star, paper_h, d_k, paper_d_k,
        agrees``; paper_D_K and paper_h are inferred (``IMPLIED``); difference is ours minus
        the paper's.
    """
    shared = {cell.cell_id for cell in study.cells if is_papers(cell, study.search)}
    rows = []
    for row in best.astype("object").to_dict("records"):
        size = (int(row["m"]), int(row["d_model"]))
        if row["cell_id"] not in shared:
            continue
        paper_D_K, paper_h = IMPLIED[size]
        D_K, h_star = integer(row["D_K"]), integer(row["h_star"])
        beside: dict[str, Any] = {
            "cell_id": row["cell_id"],
            "m": size[0],
            "d_model": size[1],
            "paper_D_K": paper_D_K,
            "paper_h": paper_h,
            "paper_d_k": TABLE_1_D_K_OF_A_HEAD[size],
        }
        if D_K is not None and h_star is not None and row["status"] != "open":
            step = max(h_star, paper_h)
            beside |= {"D_K": D_K, "h_star": h_star, "d_k": integer(row["d_k"]), "step": step}
            beside |= {"difference": D_K - paper_D_K, "agrees": abs(D_K - paper_D_K) <= step}
        rows.append(beside)
    frame = pd.DataFrame(rows, columns=list(COMPARISON_KINDS), dtype="object")
    return frame.astype(COMPARISON_KINDS)


@per_study
def comparison_of(results: StudyResults) -> pd.DataFrame:
    """A study's cells next to the paper's: ``compare`` applied to its best thresholds."""
    return compare(best_of(results), results.study)
