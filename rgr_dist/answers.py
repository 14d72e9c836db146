"""What a study returns in Python: tables and sentences that a notebook displays directly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from rgr_dist.analysis.drawing.panel import Figure
    from rgr_dist.analysis.laws.candidates import Candidate
    from rgr_dist.analysis.laws.scaling_laws import Law


class Laws:
    """Scaling laws as tables.

    Attributes:
        table: a row for each law: ``name, slope, slope_low, slope_high, r2, exponent``, ….
        candidates: the forms that were compared, with their AICc and leave-one-cell-out errors.
        found: what the data support, in sentences.
    """

    def __init__(
        self, laws: Sequence[Law], candidates: Sequence[Candidate], found: list[str]
    ) -> None:
        self.table = pd.DataFrame(laws)
        self.candidates = pd.DataFrame(candidates)
        self.found = found

    def __repr__(self) -> str:
        return "\n".join(self.found)

    def _repr_html_(self) -> str:
        return as_html(self.found, self.table)


class Comparison:
    """Two studies side by side.

    Attributes:
        found: how the second study differs from the first, in sentences.
        table: a row for each cell that both have: ``m, d_model``; ``D_K, h, d_k`` of each study,
            ending in ``_a`` and ``_b``; and ``ratio`` with the range that both intervals allow.
            For studies of accuracy, their accuracies instead.
    """

    def __init__(self, found: list[str], rows: list[dict[str, Any]]) -> None:
        self.found, self.table = found, pd.DataFrame(rows)

    def __repr__(self) -> str:
        return "\n".join([*self.found, repr(self.table)])

    def _repr_html_(self) -> str:
        return as_html(self.found, self.table)


class Explanation:
    """The decisions of one cell's search.

    Attributes:
        decisions: a row for each probe, in order, with why it was asked for and what it showed.
        ends: where the search of each head count ended, and on what evidence.
        facts: the test of a probe, where the search started, and the totals.
    """

    def __init__(self, sections: dict[str, list[dict[str, Any]]], facts: dict[str, Any]) -> None:
        decisions, ends = sections.values()
        self.decisions, self.ends = pd.DataFrame(decisions), pd.DataFrame(ends)
        self.facts = facts

    def __repr__(self) -> str:
        said = [f"{fact}: {value}" for fact, value in self.facts.items()]
        tables = self.decisions.loc[:, :"evidence"], self.ends
        return "\n".join([*(of.to_string(index=False) for of in tables), *said])

    def _repr_html_(self) -> str:
        said = [f"{fact}: {value}" for fact, value in self.facts.items()]
        return as_html(said, self.ends) + as_html([], self.decisions)


def as_html(lines: Sequence[str], table: pd.DataFrame) -> str:
    """Sentences and a table as a notebook shows them."""
    from html import escape

    said = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return said + str(table.to_html(index=False, na_rep="–"))


class Curves:
    """Scores against D_K.

    Attributes:
        table: a row for each probe, with the columns of ``probes.probes`` in
            ``analysis.transitions``; where ``complete`` is false, the mean is over only the
            ``n_seeds`` that ran.
    """

    def __init__(self, table: pd.DataFrame, draw: Callable[[], Figure]) -> None:
        self.table, self._draw = table, draw

    def __repr__(self) -> str:
        return repr(self.table)

    def _repr_html_(self) -> str:
        return as_html([], self.table)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Canvas:
        """The curves as a matplotlib figure: a panel for each cell, a line for each head count.

        Args:
            ax: axes to draw into, one for each panel.
        """
        from rgr_dist.analysis.drawing.plot import plot

        return plot(self._draw(), ax)
