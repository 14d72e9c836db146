"""What a running study looks like: a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import time
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from rgr_dist.analysis.wording import clock, duration, plural, rough_time
from rgr_dist.cli.options import say_error
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
ACCURACY_LEGEND = "mean accuracy at the largest D_K so far (number of seeds)"


class LiveView(View):
    """Draws a study as it runs; use it as a context manager.

    Args:
        console: where to draw; a table if it is a terminal or a notebook, else a line for each
            finding.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._drawn, self._said = 0.0, time.monotonic()
        self._began = self._said
        self._phase = ""
        self._spinner = Spinner("dots")
        self._state: tuple[Study, Table, Summary, Forecast] | None = None
        self._live: Live | NotebookCell | None = None
        if console.is_jupyter:
            self._live = NotebookCell()
        elif console.is_terminal:
            self._live = Live(console=console, get_renderable=self._draw, transient=True)
        self._settled: set[str] = set()
        self._played: Played = {}
        self._failures_said = 0

    def __enter__(self) -> Self:
        if isinstance(self._live, Live):
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if isinstance(self._live, Live):
            self._live.stop()
        if error == (None, None, None):
            self.phase("")

    def phase(self, name: str) -> None:
        """Begin a phase of the run, and print how long the last one took, if a second or more.

        A notebook's cell shows the phase instead, until it has a table to show.
        """
        if name == self._phase:
            return
        before, now = self._phase, time.monotonic()
        took, self._phase, self._began, self._state = now - self._began, name, now, None
        if isinstance(self._live, NotebookCell):
            if not self._drawn:
                self._live.update(self._draw() if name else Text(""))
        elif before and took >= 1:
            self.say(f"{before}: {duration(took)}")

    def say(self, text: str) -> None:
        """Print a line above the table."""
        self.console.print(text, highlight=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a line on standard error."""
        say_error(text)

    def update(self, study: Study, portfolio: Portfolio, summary: Summary) -> None:
        """Draw the state of the study, unless it was drawn a moment ago."""
        now = time.monotonic()
        if now - self._drawn < DRAW_EVERY and not portfolio.is_done:
            return
        self._drawn = now
        for failure in summary.failures[self._failures_said :]:
            self.say(f"failed: {failure}")
        self._failures_said = len(summary.failures)
        if self._live is not None:
            left = self._left(study, portfolio)
            self._state = study, bracket_table(study, portfolio), summary, left
            if isinstance(self._live, NotebookCell):
                self._live.update(self._draw())
        else:
            self._say_findings(study, portfolio, summary)

    def _draw(self) -> RenderableType:
        """What is shown below the printed lines: the phase, or the brackets once there are any."""
        now = time.monotonic()
        state = self._state  # another thread may set it to None meanwhile
        if state is None:
            self._spinner.update(text=f"{self._phase}  {clock(now - self._began)}")
            return self._spinner
        study, table, summary, left = state
        row = Table.grid(padding=(0, 2))
        if summary.runs:
            whole = summary.work + left.work
            bar = ProgressBar(total=whole or 1, completed=summary.work, width=20)
            row.add_row(bar, Text(_words(summary, left)))
        else:
            self._spinner.update(text=self._until_runs(summary, left))
            row.add_row(self._spinner)
        return Group(table, row, _legend(study))

    def _say_findings(self, study: Study, portfolio: Portfolio, summary: Summary) -> None:
        now = time.monotonic()
        for cell in study.cells:
            state = portfolio.search(cell.cell_id)
            if state.is_done and cell.cell_id not in self._settled:
                self._settled.add(cell.cell_id)
                self._said = now
                self.say(f"{study.name_of(cell)}: {_finding(study, state)}")
        if now - self._said > SAY_EVERY:
            self._said = now
            left = self._left(study, portfolio)
            self.say(_words(summary, left) if summary.runs else self._until_runs(summary, left))

    def _until_runs(self, summary: Summary, left: Forecast) -> str:
        """How far the study is before any run ends: its phase, and how long training may take."""
        gone = clock(time.monotonic() - self._began)
        guess = left.work / MULTIPLY_ADDS_PER_SECOND / max(1, summary.workers)
        return f"{self._phase}: {gone} so far, then about {rough_time(guess)} of training"

    def _left(self, study: Study, portfolio: Portfolio) -> Forecast:
        return sum(forecast(study, portfolio, self._played), Forecast())


def _words(summary: Summary, left: Forecast) -> str:
    """How far the study is: runs, pace, time so far, time left."""
    now = time.monotonic()
    elapsed = max(1e-9, now - summary.started)
    steps = f"{summary.steps / elapsed:,.0f} steps/s"
    parts = [plural(summary.runs, "run"), steps, f"{clock(elapsed)} so far"]
    if summary.failed:
        parts.insert(1, f"{summary.failed:,} failed")
    coming = summary.seconds_for(left.work)
    if left.runs and coming is not None:
        parts.insert(0, f"{summary.work / (summary.work + left.work):.0%}")
        parts.append(f"about {rough_time(coming)} {'or more ' * left.at_least}left")
    return "  ".join(parts)


def _finding(study: Study, state: Search) -> str:
    """What a finished search of a cell has found."""
    if not study.record.finds_thresholds:  # a curve is measured, not a threshold
        return "every split has run"
    best, sizes = state.best(), study.search.sizes
    if best is None:
        statuses = sorted({state.result(arm).status for arm in state.plan.axes})
        why = "open: a run failed" if state.open else ", ".join(statuses)
        return f"no threshold ({why})"
    found = f"found {sizes.total}* = {sizes.width(*best)} at {sizes.probe_name(*best)}"
    if state.confirmed.get(best):
        found += f", confirmed on {study.search.confirm_seeds} fresh seeds"
    return f"{found}, and a head is open: a run failed" if state.open else found


class NotebookCell:
    """Draws in place in the output of a notebook's cell, for which rich itself needs ipywidgets."""

    WIDTH = 120
    """Characters of a line; a narrower cell scrolls sideways."""
    _shown: Any = None

    def update(self, drawing: RenderableType) -> None:
        """Draw this, replacing what was drawn before."""
        from IPython.display import display

        page = Console(file=io.StringIO(), record=True, width=self.WIDTH, force_jupyter=False)
        page.print(drawing)
        text = page.export_text(clear=False)
        html = page.export_html(inline_styles=True, code_format=NOTEBOOK_FORMAT)
        data = {"text/html": html, "text/plain": text}
        if self._shown is None:
            self._shown = display(data, raw=True, display_id=True)
        else:
            self._shown.update(data, raw=True)


NOTEBOOK_FORMAT = '<pre style="white-space:pre;overflow-x:auto;line-height:normal">{code}</pre>'


def bracket_table(study: Study, portfolio: Portfolio) -> Table:
    """One row per cell, one column per setting: brackets on the searched width as they close."""
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    dense = any(cell.graph.degree != 1 for cell in study.cells)
    sizes, arms = study.search.sizes, study.search.arms
    named_whole = study.has_alike_cells or study.record.holds == "facts"
    columns = ["cell"] if named_whole else ["m", "d_model", *(["degree"] if dense else [])]
    for name in columns:
        table.add_column(name, justify="right")
    for arm in arms:
        table.add_column(f"{sizes.shown_arm}={arm}", justify="right", min_width=5)
    table.add_column(f"{sizes.total}*", justify="right", style="bold")
    table.add_column(f"{sizes.shown_arm}*", justify="right")
    by_accuracy = not study.record.finds_thresholds
    sign = accuracy_sign if by_accuracy else bracket_sign
    for cell in study.cells:
        state = portfolio.search(cell.cell_id)
        best = None if by_accuracy else state.best()
        so_far = "" if state.is_done else "≤ "
        shown = (f"{so_far}{sizes.width(*best)}", f"{best.arm}") if best else ("", "")
        brackets = [_text(sign(state, arm)) if arm in state.plan.axes else Text() for arm in arms]
        sizes_of = map(str, (cell.m, cell.d_model, cell.graph.degree)[: len(columns)])
        table.add_row(*([study.name_of(cell)] if named_whole else sizes_of), *brackets, *shown)
    return table


LOOKS = {
    "found": "bold green", "pruned": "dim", "censored": "red",
    "failed": "red", "open": "yellow", "untried": "dim",
}  # fmt: skip


def _text(sign: Sign) -> Text:
    return Text(sign.text, style=LOOKS[sign.look])


def _legend(study: Study) -> Text:
    """What every sign means."""
    if not study.record.finds_thresholds:
        return Text(ACCURACY_LEGEND)
    sizes, of_arm = study.search.sizes, study.search.sizes.shown_arm
    best = "the best head count h*" if of_arm == "h" else f"the best {of_arm}"
    first = f"{sizes.value} by {'head count' if of_arm == 'h' else of_arm}:"
    meant = [_text(sign).append(f" {meaning}", style="default") for sign, meaning in MEANINGS]
    last = f"{sizes.total}* = h {sizes.value} at {best}; ≤ so far"
    return Text("   ").join([Text(first), *meant, Text(last)])
