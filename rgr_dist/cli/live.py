"""What a running study looks like: a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import time
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rgr_dist.analysis.wording import duration, plural, rough_time
from rgr_dist.cli.options import say_error
from rgr_dist.planning.brackets import MEANINGS, Sign, accuracy_sign, bracket_sign
from rgr_dist.planning.forecast import MULTIPLY_ADDS_PER_SECOND, Forecast, Played, forecast
from rgr_dist.planning.portfolio import shown_arms
from rgr_dist.running.progress import Summary
from rgr_dist.search.cell_state import CellState
from rgr_dist.search.portfolio import Portfolio
from rgr_dist.study.study import Study

DRAW_EVERY = 0.25
"""Seconds between drawings in a terminal."""
SAY_EVERY = 15.0
"""Seconds of silence after which a plain line says how far it is."""
ACCURACY_LEGEND = "accuracy at the largest D_K so far, of so many seeds"


class LiveView:
    """Draws a study as it runs; use it as a context manager.

    Args:
        console: where to draw; a table if it is a terminal or a notebook, else a line for each
            finding.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live: Live | NotebookCell | None = None
        if console.is_jupyter:
            self._live = NotebookCell()
        elif console.is_terminal:
            self._live = Live(console=console, auto_refresh=False)
        self._drawn, self._said = 0.0, time.monotonic()
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
            progress = self._bar(summary, self._left(study, portfolio))
            drawing = Group(bracket_table(study, portfolio), progress, _legend(study))
            self._live.update(drawing, refresh=True)
        else:
            self._say_findings(study, portfolio, summary)

    def _say_findings(self, study: Study, portfolio: Portfolio, summary: Summary) -> None:
        now = time.monotonic()
        for cell in study.cells:
            state = portfolio.state(cell.cell_id)
            if state.is_done and cell.cell_id not in self._settled:
                self._settled.add(cell.cell_id)
                self._said = now
                self.say(f"{study.name_of(cell)}: {_finding(study, state)}")
        if now - self._said > SAY_EVERY:
            self._said = now
            self.say(_words(summary, self._left(study, portfolio)))

    def _bar(self, summary: Summary, left: Forecast) -> RenderableType:
        whole = summary.work + left.work
        bar = ProgressBar(total=whole or 1, completed=summary.work, width=30)
        row = Table.grid(padding=(0, 2))
        row.add_row(bar, Text(_words(summary, left)))
        return row

    def _left(self, study: Study, portfolio: Portfolio) -> Forecast:
        return sum(forecast(study, portfolio, self._played), Forecast())


def _words(summary: Summary, left: Forecast) -> str:
    """How far the study is: phase or pace, time gone, time left."""
    now = time.monotonic()
    elapsed = max(1e-9, now - summary.started)
    gone, about = f"{duration(elapsed)} gone", "at least" if left.at_least else "about"
    if not summary.runs:
        guess = left.work / MULTIPLY_ADDS_PER_SECOND / max(1, summary.workers)
        parts = ["workers start, load or compile their kernels, and train the first runs", gone]
        return "   ".join([*parts, f"then {about} {rough_time(guess)}, by a guess"])
    parts = [plural(summary.runs, "run"), f"{summary.steps / elapsed:,.0f} steps/s", gone]
    if summary.failed:
        parts.insert(1, f"{summary.failed:,} failed")
    if left.runs and summary.work and summary.paced_from is not None:
        pace = (now - summary.paced_from) / summary.work
        parts.insert(0, f"{summary.work / (summary.work + left.work):.0%}")
        parts.append(f"{about} {rough_time(left.work * pace)} left")
    return "   ".join(parts)


def _finding(study: Study, state: CellState) -> str:
    """What a finished search of a cell has found."""
    if not study.record.finds_thresholds:  # a curve is measured, not a threshold
        return "every split has run"
    best, sizes = state.best, study.search.sizes
    if best is None:
        statuses = sorted({state.result(arm).status for arm in shown_arms(state)})
        why = "open: a run failed" if state.failed_arms else ", ".join(statuses)
        return f"no threshold ({why})"
    found = f"found {sizes.total}* = {best.cost} at {sizes.probe_name(best.arm, best.value or 0)}"
    if best.confirmed:
        found += f", confirmed on {study.search.confirm_seeds} fresh seeds"
    return found if state.is_settled else f"{found}, and a head is open: a run failed"


class NotebookCell:
    """Draws in the output of a notebook's cell, in place; rich's own needs ipywidgets for that."""

    WIDTH = 120
    """Characters of a line; the cell scrolls sideways where it is narrower."""
    _shown: Any = None

    def update(self, drawing: RenderableType, refresh: bool = True) -> None:
        """Draw, in place of what was drawn before."""
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
    listed = () if arms == "all" else arms
    for arm in listed:
        table.add_column(f"{sizes.shown_arm}={arm}", justify="right", min_width=5)
    if not listed:
        table.add_column("heads in question")
    table.add_column(f"{sizes.total}*", justify="right", style="bold")
    table.add_column(f"{sizes.shown_arm}*", justify="right")
    by_accuracy = not study.record.finds_thresholds
    sign = accuracy_sign if by_accuracy else bracket_sign
    for cell in study.cells:
        state = portfolio.state(cell.cell_id)
        cost, best = (None, None) if by_accuracy else (state.best_cost, state.best)
        so_far = "" if state.is_settled else "≤ "
        shown = "" if cost is None else f"{so_far}{cost}", "" if best is None else f"{best.arm}"
        brackets = [
            _text(sign(state, arm)) if arm in state.plan.axes else Text() for arm in listed
        ] or [_heads_text(state)]
        sizes_of = map(str, (cell.m, cell.d_model, cell.graph.degree)[: len(columns)])
        table.add_row(*([study.name_of(cell)] if named_whole else sizes_of), *brackets, *shown)
    return table


def _heads_text(state: CellState) -> Text:
    """The heads that are found or still open, where they are too many for a column each."""
    heads = [h for h in shown_arms(state) if state.result(h).status not in ("pruned", "censored")]
    parts = [Text(f"h={h} ").append_text(_text(bracket_sign(state, h))) for h in heads]
    return Text("   ").join(parts)


LOOKS = {
    "found": "bold green", "pruned": "dim", "censored": "red", "contradiction": "bold red",
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
