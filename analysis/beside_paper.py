"""The paper's cells beside ours: what it prints, and what is measured here. No verdict."""

from __future__ import annotations

import pandas as pd

from rgr_dist.analysis.growth import main_cells, papers_line
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.tables import best
from rgr_dist.analysis.wording import number, with_limits
from rgr_dist.paper import (
    DENSE_LAW,
    DENSE_SIZE,
    LAWS,
    TABLE_1_D_K_OF_A_HEAD,
    TABLE_2_MAX_STEPS,
    PublishedLaw,
    is_narrow,
)


def beside_paper(results: StudyResults) -> pd.DataFrame:
    """A row for each cell of the paper's Table 1 that the study has, model max on a permutation.

    Of several step limits, that of the paper's Table 2 if there is one, else the largest.

    Returns:
        ``m, d_model``; ``paper_d_k`` as printed; ``d_k, h_star, D_K`` as measured here, null where
        nothing passes.
    """
    table = best(results)
    sizes = pd.Series([*zip(table["m"], table["d_model"], strict=True)], index=table.index)
    of_paper = (table["model"] == "max") & (table["graph"] == "permutation")
    table = table[of_paper & sizes.isin([*TABLE_1_D_K_OF_A_HEAD]) & (table["protocol"] == "")]
    papers_limit = sizes[table.index].map(TABLE_2_MAX_STEPS) == table["max_steps"]
    table = table.assign(as_theirs=papers_limit).sort_values(["as_theirs", "max_steps"])
    table = table.drop_duplicates(["m", "d_model"], keep="last").sort_values(["m", "d_model"])
    theirs = sizes[table.index].map(TABLE_1_D_K_OF_A_HEAD)
    columns = ["m", "d_model", "paper_d_k", "d_k", "h_star", "D_K"]
    return table.assign(paper_d_k=theirs)[columns].reset_index(drop=True)


def papers_law(results: StudyResults) -> PublishedLaw | None:
    """The paper's line to draw beside a study's cells; None where it has none for them.

    It is the line of all its cells where the study has one of those that the paper's second fit
    leaves out, else that second fit.
    """
    cells = [cell for cell in results.study.cells if cell.model == "max"]
    families = {cell.graph.family for cell in cells}
    if families == {"permutation"}:
        narrow = any(is_narrow(cell.m, cell.d_model) for cell in cells)
        return LAWS["D_K" if narrow else "D_K_wide"]
    if families == {"regular"} and {(cell.m, cell.d_model) for cell in cells} == {DENSE_SIZE}:
        return DENSE_LAW
    return None


def slopes(results: StudyResults) -> str:
    """The paper's slope beside that of its own estimator over our cells; empty without either."""
    theirs, line = papers_law(results), papers_line(main_cells(results))
    if theirs is None or line is None:
        return ""
    ours = with_limits(line.slope, line.low, line.high)
    printed = number(theirs.slope, "g")
    return (
        f"The paper prints D_K* = {printed} · m′ log₂ m / d_model ({theirs.source}, "
        f"{theirs.cells}); its estimator gives {ours} over the {line.n} cells here."
    )


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of ``beside_paper`` as a page shows them."""
    return pd.DataFrame(
        {
            "(m, d_model)": [
                f"({m}, {d_model})"
                for m, d_model in table[["m", "d_model"]].itertuples(index=False)
            ],
            "d_k, the paper": table["paper_d_k"],
            "d_k, here": table["d_k"],
            "h*, here": table["h_star"],
            "D_K*, here": table["D_K"],
        }
    )
