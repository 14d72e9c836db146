"""Everything that a report shows, as tables: computed once, when a section first asks for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pandas as pd

from analysis import accuracy, budgets, facts, wording
from analysis.cell_names import CellName, cell_names
from analysis.comparison import compare, laws_for
from analysis.fits import Fits, fits
from analysis.heads import by_heads
from analysis.laws import Law
from analysis.load import StudyResults
from analysis.narrowing import Narrowing, narrowing
from analysis.paper import published_figures
from analysis.records import integer, real
from analysis.report import findings
from analysis.runs import cost
from analysis.theory import Theory, theory
from analysis.thresholds import best, head_pool
from analysis.transitions import Collapse, collapses, mean_words, probes, transitions
from rgr_dist.paper import PublishedLaw, capacity_scale, compression

Row = dict[str, Any]


class Tables:
    """The tables of one study, and their rows as the page words them.

    Rows are plain dictionaries with ``anchor``, ``short`` and ``full``, the names of their cell,
    and ``text``, everything about them in words.
    """

    def __init__(self, results: StudyResults) -> None:
        self.results = results
        self.study, self.runs = results.study, results.runs

    @cached_property
    def names(self) -> Mapping[str, CellName]:
        """The names of each cell by its cell_id."""
        return cell_names(self.study)

    @cached_property
    def best(self) -> pd.DataFrame:
        """D_K* and h* of every cell."""
        return best(self.thresholds, self.results.searched, self.study)

    @cached_property
    def thresholds(self) -> pd.DataFrame:
        """The threshold of every (cell, h), in the study's order."""
        order = {cell.cell_id: i for i, cell in enumerate(self.study.cells)}
        table = self.results.thresholds
        ours = table[table["cell_id"].isin(order)]
        ours = ours.assign(_order=ours["cell_id"].map(order)).sort_values(["_order", "h"])
        return ours.drop(columns="_order").reset_index(drop=True)

    @cached_property
    def by_heads(self) -> pd.DataFrame:
        """The threshold of every (cell, h), or the bound on it, beside the cell's D_K*."""
        return by_heads(self.thresholds, self.best, self.study)

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Mean score of every probe, and what it leaves out."""
        return probes(self.results.searched, self.study)

    @cached_property
    def gains(self) -> pd.DataFrame:
        """The best head count against one head, at every step limit."""
        return budgets.gains(self.results)

    @cached_property
    def limits(self) -> pd.DataFrame:
        """What cells with several step limits say of an endless one."""
        return budgets.limits(self.results)

    @cached_property
    def transitions(self) -> pd.DataFrame:
        """Logistic fits of the transition of every (cell, h)."""
        return transitions(self.results.searched, self.study, self.curves)

    @cached_property
    def collapses(self) -> list[Collapse]:
        """The transitions of all cells at h*, over D_K divided by each law."""
        return collapses(self.curves, self.fits)

    @cached_property
    def narrowing(self) -> Narrowing | None:
        """How the transitions at h* narrow with the size of a cell."""
        return narrowing(self.curves, self.transitions, self.best)

    @cached_property
    def pool(self) -> pd.DataFrame:
        """Head counts near D_K*, compared with h*."""
        return head_pool(self.thresholds, self.results.searched, self.study)

    @cached_property
    def comparison(self) -> pd.DataFrame:
        """Our cells beside the paper's."""
        return compare(self.best, self.study)

    @cached_property
    def cost(self) -> pd.DataFrame:
        """What each cell cost."""
        return cost(self.runs, self.study)

    @cached_property
    def theory(self) -> Theory | None:
        """Bounds and constructions beside training, if the store holds any."""
        return theory(self.results, self.best)

    @cached_property
    def fits(self) -> Fits:
        """Everything fitted to the thresholds."""
        return fits(self.best, self.results.searched, self.study)

    @property
    def laws(self) -> list[Law]:
        """The laws fitted to the cells."""
        return self.fits.laws

    @cached_property
    def figures_of_the_paper(self) -> pd.DataFrame:
        """Every number that the paper states, and ours beside it."""
        return published_figures(self.fits, self.best, self.study)

    @cached_property
    def published(self) -> dict[str, PublishedLaw]:
        """The paper's laws to compare with, by the name of ours."""
        return laws_for(self.study)

    @cached_property
    def splits(self) -> pd.DataFrame:
        """Accuracy of every split among heads, of a transformer's study."""
        return accuracy.splits(self.runs, self.study)

    @cached_property
    def facts_rows(self) -> list[Row]:
        """The thresholds of a study of facts, with names and words."""
        search, rows = self.study.search, []
        for row in facts.threshold_rows(self.results):
            row |= self._named(row)
            row["D_V_words"] = wording.with_range(row["D_V"], row["D_V_low"], row["D_V_high"])
            row["certificate_words"] = findings.certificate_words(
                json.dumps(row["certificate"]), search.seeds, target=search.target
            )
            low, high = row["rank_low"], row["rank_high"]
            row["rank_words"] = f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
            at = f"h = {row['h']}, d_qk = {row['d_qk']}"
            row["text"] = f"{row['full']}, {at}\nD_V {row['D_V_words']}, {row['status']}"
            rows.append(row)
        return rows

    @cached_property
    def facts_runs(self) -> list[Row]:
        """The scored runs of a study of facts."""
        return facts.runs(self.results)

    @cached_property
    def facts_laws(self) -> list[Law]:
        """The laws of D_V*."""
        return facts.laws(self.facts_rows, self.study)

    @cached_property
    def cells(self) -> list[Row]:
        """The rows of ``best`` by size, with the law's scales, names and words.

        ``largest`` tells those that have the largest step limit of their family.
        """
        published = {row["cell_id"]: row for row in rows_of(self.comparison)}
        largest = {family[-1].cell_id for family in self.study.budgets.values()}
        rows = []
        for row in by_size(self.best):
            sizes = (row["m"], row["d_model"], row["n_edges"])
            row |= self._named(row)
            row["largest"] = row["cell_id"] in largest
            row |= {"scale": capacity_scale(*sizes), "compression": compression(*sizes)}
            row["D_K_words"] = wording.with_range(row["D_K"], row["D_K_low"], row["D_K_high"])
            row["h_words"] = wording.with_range(row["h_star"], row["h_low"], row["h_high"])
            row["certificate_words"] = self._certificate(row)
            row["paper"] = published.get(row["cell_id"])
            row["text"] = self._cell_text(row)
            rows.append(row)
        return rows

    @cached_property
    def heads(self) -> list[Row]:
        """The rows of ``by_heads`` by size, with the rest of their threshold, names and words."""
        kept = ("graph", "n_edges", "mean_score", "n_seeds", "d_k", "certificate", "limited_by",
                "confirmed")  # fmt: skip
        rest, ends = {}, {}
        for row in rows_of(self.thresholds):
            key = row["cell_id"], row["h"]
            rest[key] = {name: row[name] for name in kept if name in row}
            ends[key] = row["D_K_low"], row["D_K_high"]
        rows = []
        for row in by_size(self.by_heads):
            key = row["cell_id"], row["h"]
            row |= self._named(row) | rest[key]
            row["D_K_words"] = wording.with_range(row["D_K"], *ends[key])
            row["certificate_words"] = self._certificate(row)
            is_found = row["D_K"] is not None
            found = f"D_K {'= ' if is_found else ''}{row['D_K_words']}, {row['status']}"
            text = [f"{row['full']}, h = {row['h']}", found]
            if row["certificate_words"] != wording.MISSING:
                text.append(row["certificate_words"])
            row["text"] = "\n".join(text)
            rows.append(row)
        return rows

    @cached_property
    def probes(self) -> list[Row]:
        """The rows of ``curves`` with names and words."""
        rows = []
        for row in rows_of(self.curves):
            row |= self._named(row)
            mean = mean_words(row)
            if row["complete"] and row["low"] is not None:
                mean += f" [{row['low']:.4f} to {row['high']:.4f}]"
            lost = [
                f"{row[name]} {name}" for name in ("collapsed", "diverged", "failed") if row[name]
            ]
            row["text"] = "\n".join(
                [
                    f"h = {row['h']}, d_k = {row['d_k']}, D_K = {row['D_K']}",
                    f"mean {mean}",
                    *([", ".join(lost)] if lost else []),
                ]
            )
            rows.append(row)
        return rows

    @cached_property
    def drawn_cells(self) -> list[Row]:
        """The cells that figures show: of one problem under several step limits, the largest."""
        return [row for row in self.cells if row["largest"]]

    def named(self, table: pd.DataFrame) -> list[Row]:
        """The rows of any table with a cell_id, by size, with the names of their cells."""
        return [row | self._named(row) for row in by_size(table)]

    def _named(self, row: Mapping[str, Any]) -> dict[str, str]:
        name = self.names[row["cell_id"]]
        return {"anchor": name.anchor, "short": name.short, "full": name.full}

    def _certificate(self, row: Mapping[str, Any]) -> str:
        minimised = self.study.cells[0].minimised
        search = self.study.search
        return findings.certificate_words(
            row["certificate"], search.seeds, minimised, search.target
        )

    def _cell_text(self, row: Row) -> str:
        lines = [row["full"]]
        if row["D_K"] is None:
            bound = "" if row["D_K_words"] == wording.MISSING else f"D_K* {row['D_K_words']}, "
            lines.append(bound + findings.STATUS[row["status"]])
        else:
            so_far = ", so far" if row["status"] == "open" else ""
            lines.append(f"D_K* = {row['D_K_words']}{so_far}")
            lines.append(f"h* = {row['h_words']}, d_k = {row['d_k']}")
        if row["certificate_words"] != wording.MISSING:
            lines.append(row["certificate_words"])
        return "\n".join(lines)


def by_size(table: pd.DataFrame) -> list[Row]:
    """The rows sorted by m, d_model and degree; ties keep their order."""
    return sorted(rows_of(table), key=lambda row: (row["m"], row["d_model"], row.get("degree", 1)))


def rows_of(table: pd.DataFrame) -> list[Row]:
    """The table's rows with plain values: whole numbers as int, missing ones as None."""
    whole = [name for name in table if pd.api.types.is_integer_dtype(table[name].dtype)]
    whole += [name for name in ("d_k", "D_K", "D_K_low", "D_K_high", "n_seeds") if name in table]
    broken = [name for name in table if pd.api.types.is_float_dtype(table[name].dtype)]
    rows = table.astype("object").to_dict("records")
    for row in rows:
        row |= {name: None for name, value in row.items() if pd.isna(value)}
        row |= {name: real(row[name]) for name in broken if row[name] is not None}
        row |= {name: integer(row[name]) for name in whole if row[name] is not None}
    return [{str(name): value for name, value in row.items()} for row in rows]
