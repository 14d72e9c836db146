"""What a study returns in Python: sentences with a table, which a notebook displays directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from rgr_dist.study.study import Study


class Answer:
    """Sentences with a table.

    Attributes:
        found: what was found, in sentences.
        table: the rows behind it.
    """

    def __init__(self, found: Sequence[str], table: pd.DataFrame) -> None:
        self.found, self.table = list(found), table

    def __repr__(self) -> str:
        return "\n".join([*self.found, repr(self.table)])

    def _repr_html_(self) -> str:
        return as_html(self.found, self.table)


class Explanation(Answer):
    """The decisions of one cell's search.

    Attributes:
        decisions: a row for each probe, in order: why it was asked for and what it showed.
        ends: where the search of each head count ended, and on what evidence.
        facts: the test of a probe, where the search started, and the totals.
    """

    def __init__(
        self, sections: Mapping[str, list[dict[str, Any]]], facts: Mapping[str, Any]
    ) -> None:
        self.decisions, self.ends = map(pd.DataFrame, sections.values())
        self.facts = dict(facts)
        said = [f"{name.replace('_', ' ')}: {value}" for name, value in facts.items()]
        super().__init__(said, self.decisions)


class Curves(Answer):
    """Scores against D_K.

    Attributes:
        table: a row for each probe; where ``complete`` is false, the mean is over only the
            ``n_seeds`` that ran.
    """

    def __init__(self, table: pd.DataFrame, study: Study) -> None:
        super().__init__([], table)
        self._study = study

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Canvas:
        """The curves as a matplotlib figure: a panel for each cell, a line for each head count.

        Args:
            ax: axes to draw into, one for each panel.
        """
        from rgr_dist.analysis.report import curves_figure

        return curves_figure(self.table, self._study).canvas(ax=ax)


def as_html(lines: Sequence[str], table: pd.DataFrame) -> str:
    """Sentences and a table as a notebook shows them."""
    said = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return said + str(table.to_html(index=False, na_rep="–"))
