"""What a running study looks like: a live table in a terminal or a notebook, else plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from rgr_dist.analysis.wording import clock, duration, plural, rough_time
from rgr_dist.faults import on_one_line
from rgr_dist.planning.bracket_signs import MEANINGS, Sign, accuracy_sign, bracket_sign
from rgr_dist.planning.forecast import MULTIPLY_ADDS_PER_SECOND, Forecast, Played, forecast
from rgr_dist.running.progress import Summary, View
from rgr_dist.search.portfolio import Portfolio
from rgr_dist.search.threshold import Search
from rgr_dist.study.study import Study

DRAW_EVERY = 0.25
"""Seconds between drawings of the brackets; a terminal's clock and spinner keep moving."""
SAY_EVERY = 15.0
"""Seconds of silence after which a plain line says how far the study is."""
LOOKS = {
    "found": "bold green", "pruned": "dim", "censored": "red",
    "failed": "red", "open": "yellow", "untried": "dim",
}  # fmt: skip


class LiveView(View):
    """Shows a study as it runs; use it as a context manager.

    Args:
        console: where to draw; a table if it is a terminal or a notebook, else a line for each
            finding.
        tell: called with how far the study is, whenever that is drawn.
    """

    def __init__(self, console: Console, tell: Callable[[str], None] = lambda words: None) -> None:
        self.console, self.tell = console, tell
        self._drawn, self._said, self._began = 0.0, time.monotonic(), time.monotonic()
        self._phase, self._words, self._share = "", "", 0.0
        self._brackets: Table | None = None
        self._spinner = Spinner("dots")
        self._settled: set[str] = set()
        self._played: Played = {}
        self._failures_said = 0
        self._cell: Any = None  # of a notebook
        self._live = Live(console=console, get_renderable=self._draw, transient=True)
        self._is_live = console.is_terminal and not console.is_jupyter

    def __enter__(self) -> Self:
        if self._is_live:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._is_live:
            self._live.stop()
        if error == (None, None, None):
            self.phase("")

    def phase(self, name: str) -> None:
        """Begin a phase of the run, and print how long the last one took, if a second or more."""
        if name == self._phase:
            return
        now = time.monotonic()
        if self._phase and now - self._began >= 1 and not self.console.is_jupyter:
            self.say(f"{self._phase}: {duration(now - self._began)}")
        self._phase, self._began, self._brackets = name, now, None

    def say(self, text: str) -> None:
        """Print a line above the table."""
        self.console.print(text, highlight=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a line on standard error."""
        print(f"rgr: {on_one_line(text)}", file=sys.stderr)

    def update(self, study: Study, portfolio: Portfolio, summary: Summary) -> None:
        """Draw the state of the study, unless it was drawn a moment ago."""
        now = time.monotonic()
        if now - self._drawn < DRAW_EVERY and not portfolio.is_done:
            return
        self._drawn = now
        for failure in summary.failures[self._failures_said :]:
            self.say(f"failed: {failure}")
        self._failures_said = len(summary.failures)
        self._words = self._in_words(
            sum(forecast(study, portfolio, self._played), Forecast()), summary
        )
        if summary.runs:
            self.tell(self._words)
        if self._is_live or self.console.is_jupyter:
            self._brackets = bracket_table(study, portfolio)
            if self.console.is_jupyter:
                self._show_in_cell()
            return
        for cell in study.cells:
            search = portfolio.search(cell.cell_id)
            if search.is_done and cell.cell_id not in self._settled:
                self._settled.add(cell.cell_id)
                self._said = now
                self.say(f"{study.name_of(cell)}: {_finding(study, search)}")
        if now - self._said > SAY_EVERY:
            self._said = now
            self.say(self._words)

    def _draw(self) -> Table:
        """The brackets once there are any, and below them how far the study is."""
        drawing, row = Table.grid(), Table.grid(padding=(0, 2))
        if self._brackets is None:
            self._spinner.update(text=f"{self._phase}  {clock(time.monotonic() - self._began)}")
            drawing.add_row(self._spinner)
            return drawing
        row.add_row(ProgressBar(total=1, completed=self._share, width=20), Text(self._words))
        drawing.add_row(self._brackets)
        drawing.add_row(row)
        return drawing

    def _show_in_cell(self) -> None:
        """Draw in place in the output of a notebook's cell."""
        from IPython.display import display

        if self._cell is None:
            self._cell = display(self._draw(), display_id=True)
        else:
            self._cell.update(self._draw())

    def _in_words(self, left: Forecast, summary: Summary) -> str:
        """How far the study is: its share, runs, pace, time so far, time left."""
        now = time.monotonic()
        if not summary.runs:
            guess = left.work / MULTIPLY_ADDS_PER_SECOND / max(1, summary.workers)
            gone = f"{self._phase}: {clock(now - self._began)} so far"
            return f"{gone}, then about {rough_time(guess)} of training"
        self._share = max(self._share, summary.work / (summary.work + left.work or 1.0))
        elapsed = max(1e-9, now - summary.started)
        parts = [f"{self._share:.0%}", plural(summary.runs, "run")]
        if summary.failed:
            parts.append(f"{summary.failed:,} failed")
        parts += [f"{summary.steps / elapsed:,.0f} steps/s", f"{clock(elapsed)} so far"]
        coming = summary.seconds_for(left.work)
        if left.runs and coming is not None:
            parts.append(f"about {rough_time(coming)} {'or more ' * left.at_least}left")
        return "  ".join(parts)


def _finding(study: Study, search: Search) -> str:
    """What a finished search of a cell has found."""
    if study.record.finds != "D_K":  # a curve is measured, not a threshold
        return "every split has run"
    best = search.best()
    if best is None:
        statuses = sorted({search.result(arm).status for arm in search.plan.axes})
        return f"no threshold ({'open: a run failed' if search.open else ', '.join(statuses)})"
    found = f"found D_K* = {best.arm * best.value} at h={best.arm}, d_k={best.value}"
    if search.confirmed.get(best):
        found += f", confirmed on {study.search.confirm_seeds} fresh seeds"
    return f"{found}, and a head is open: a run failed" if search.open else found


def bracket_table(study: Study, portfolio: Portfolio) -> Table:
    """One row per cell, one column per head count: brackets on d_k as they close."""
    by_accuracy = study.record.finds != "D_K"
    legend = Text("mean accuracy at the largest D_K so far (number of seeds)")
    if not by_accuracy:
        meant = [_text(sign).append(f" {meaning}", style="default") for sign, meaning in MEANINGS]
        legend = Text("   ").join([Text("d_k by h:"), *meant])
    table = Table(box=None, pad_edge=False, caption=legend, caption_justify="left")
    named_whole = study.has_alike_cells
    dense = any(cell.graph.degree != 1 for cell in study.cells)
    columns = ["cell"] if named_whole else ["m", "d_model", *(["degree"] if dense else [])]
    for name in [*columns, *(f"h={h}" for h in study.search.heads), "D_K*", "h*"]:
        table.add_column(name, justify="right")
    for cell in study.cells:
        search = portfolio.search(cell.cell_id)
        best = None if by_accuracy else search.best()
        so_far = "" if search.is_done else "≤ "
        shown = (f"{so_far}{best.arm * best.value}", f"{best.arm}") if best else ("", "")
        sign = accuracy_sign if by_accuracy else bracket_sign
        signs = [
            _text(sign(search, h)) if h in search.plan.axes else "" for h in study.search.heads
        ]
        named = [study.name_of(cell)] if named_whole else [cell.m, cell.d_model, cell.graph.degree]
        table.add_row(*map(str, named[: len(columns)]), *signs, *shown)
    return table


def _text(sign: Sign) -> Text:
    return Text(sign.text, style=LOOKS[sign.look])
