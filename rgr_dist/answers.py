"""What a study returns in Python: tables and sentences that a notebook displays directly."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console

from rgr_dist.cli.listing import DECISION_COLUMNS, Format, facts_in_words, print_listing, say

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from rgr_dist.analysis.drawing.panel import Figure
    from rgr_dist.study.study import Study


FIRST = (
    *("cell", "law", "name", "h", "d_qk", "d_k", "d_vo", "D_K", "D_V", "D_K_a", "D_K_b", "ratio"),
    *("ratio_low", "ratio_high", "h_a", "h_b", "D_K_low", "D_K_high", "D_V_low", "D_V_high"),
    *("h_star", "status", "limited_by", "formula", "h_low", "exponent", "exponent_low"),
    *("exponent_high", "slope", "seed", "stop_reason", "score", "steps", "seconds", "d_model"),
    *("m", "mean_score", "n_seeds"),
)
"""The columns that answer a question, the most telling first."""


class Answer(pd.DataFrame):
    """A DataFrame that prints columns whole: the first of ``FIRST`` if not all have room."""

    @property
    def _constructor(self) -> type[Answer]:
        return Answer

    def __repr__(self) -> str:
        limits = {f"{end}_rows": pd.get_option(f"display.{end}_rows") for end in ("max", "min")}
        names, room = [*self.columns], shutil.get_terminal_size().columns
        ranked = sorted(names, key=lambda name: (*FIRST, name).index(name))
        for n in range(len(names), 0, -1):
            places = [place for place, name in enumerate(names) if name in ranked[:n]]
            text = self.iloc[:, places].to_string(**limits)
            if len(self) and max(map(len, text.splitlines())) <= room:
                hidden = "; .columns names all" if n < len(names) else ""
                return f"{text}\n\n[{len(self)} rows x {len(names)} columns{hidden}]"
        return repr(pd.DataFrame(self))


class Laws:
    """Scaling laws.

    Attributes:
        table: a row for each law: the columns of ``rgr fit --format json``.
        found: what the data support, in sentences.
    """

    def __init__(self, table: pd.DataFrame, found: list[str]) -> None:
        self.table, self.found = Answer(table), found

    def __repr__(self) -> str:
        return "\n".join([repr(self.table), *self.found])

    def _repr_html_(self) -> str:
        return as_html(self.found, self.table)


class Comparison:
    """Two studies side by side.

    Attributes:
        found: how the second study differs from the first, in a sentence.
        table: a row for each cell that both have, with the columns of ``analysis.compare``.
    """

    def __init__(self, found: str, table: pd.DataFrame) -> None:
        self.found, self.table = found, Answer(table)

    def __repr__(self) -> str:
        return f"{self.found}\n{self.table!r}"

    def _repr_html_(self) -> str:
        return as_html([self.found], self.table)


class Explanation:
    """The decisions of one cell's search.

    Attributes:
        decisions: a row for each probe, in order, with why it was asked for and what it showed.
        ends: where the search of each head count ended, and on what evidence.
        facts: the test of a probe, where the search started, and the totals.
    """

    def __init__(
        self, study: Study, sections: dict[str, list[dict[str, Any]]], facts: dict[str, Any]
    ) -> None:
        decisions, ends = sections.values()
        self.decisions, self.ends = Answer(decisions), Answer(ends)
        self.facts = facts
        self._found, self._shown = facts.pop("found", ""), sections

    def __repr__(self) -> str:
        text = io.StringIO()
        width = shutil.get_terminal_size().columns
        console = Console(file=text, width=width, force_terminal=False, force_jupyter=False)
        if self._found:
            say(self._found, console)
        columns = DECISION_COLUMNS.split()
        print_listing(self._shown, Format.TABLE, columns, self.facts, console=console)
        return text.getvalue().rstrip()

    def _repr_html_(self) -> str:
        said = [*filter(None, [self._found]), *facts_in_words(self.facts)]
        return as_html(said, self.ends) + as_html([], self.decisions)


def as_html(lines: Sequence[str], table: pd.DataFrame) -> str:
    """Sentences and a table as a notebook shows them."""
    from html import escape

    said = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return said + str(table.to_html(index=False, na_rep="–"))


class Curves:
    """Scores against D_K.

    Attributes:
        table: a row for each probe, with the columns of ``probes.probes_of`` in
            ``analysis.transitions``; where ``complete`` is false, the mean is over only the
            ``n_seeds`` that ran.
    """

    def __init__(self, table: pd.DataFrame, draw: Callable[[], Figure]) -> None:
        self.table, self._draw = Answer(table), draw

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
