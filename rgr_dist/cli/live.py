"""What a running study looks like: a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from analysis.wording import duration
from rgr_dist.planning.forecast import Forecast, Played, forecast
from rgr_dist.planning.portfolio import shown_heads
from rgr_dist.running.progress import Summary
from rgr_dist.study.study import Study
from search.cell_state import CellState
from search.portfolio import Portfolio

DRAW_EVERY = 0.25
"""Seconds between drawings in a terminal."""
SAY_EVERY = 15.0
"""Seconds of silence after which a plain line says how far it is."""
LEGEND = "[b green]7[/] threshold d_k   [yellow]4–9[/] lies above 4, at most 9   [dim]–[/] pruned"
ACCURACY_LEGEND = "accuracy at the largest D_K so far, of so many seeds"


class LiveView:
    """Draws a study as it runs; use it as a context manager.

    Args:
        console: where to draw; a table if it is a terminal, else a line for each finding.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._drawn, self._said = 0.0, time.monotonic()
        self._settled: set[str] = set()
        self._played: Played = {}

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print a line above the table."""
        self.console.print(text, highlight=False, soft_wrap=True)

    def update(self, study: Study, portfolio: Portfolio, summary: Summary) -> None:
        """Draw the state of the study, unless it was drawn a moment ago."""
        now = time.monotonic()
        if now - self._drawn < DRAW_EVERY and not portfolio.is_done:
            return
        self._drawn = now
        if self._live is not None:
            progress = Text(self._progress(study, portfolio, summary))
            by_accuracy = study.cells[0].record.report == "accuracy"
            legend = Text.from_markup(ACCURACY_LEGEND if by_accuracy else LEGEND)
            table = bracket_table(study, portfolio)
            self._live.update(Group(table, progress, legend), refresh=True)
        else:
            self._say_findings(study, portfolio, summary)

    def _say_findings(self, study: Study, portfolio: Portfolio, summary: Summary) -> None:
        now = time.monotonic()
        for cell in study.cells:
            state = portfolio.state(cell.cell_id)
            if state.is_done and cell.cell_id not in self._settled:
                self._settled.add(cell.cell_id)
                self._said = now
                if cell.record.report == "accuracy":  # a curve is measured, not a threshold
                    self.say(f"{study.name_of(cell)}: every split has run")
                    continue
                best = state.best
                if best is None:
                    status = state.result(shown_heads(state)[0]).status
                    self.say(f"{study.name_of(cell)}: no threshold ({status})")
                else:
                    at = f"D_K* = {best.cost} at h={best.arm}, d_k={best.value}"
                    if best.confirmed:
                        at += f", confirmed on {study.search.confirm_seeds} fresh seeds"
                    self.say(f"{study.name_of(cell)}: found {at}")
        if now - self._said > SAY_EVERY:
            self._said = now
            self.say(self._progress(study, portfolio, summary))

    def _progress(self, study: Study, portfolio: Portfolio, summary: Summary) -> str:
        elapsed = max(1e-9, time.monotonic() - summary.started)
        if not summary.runs:
            return f"the first runs are training; {duration(elapsed)} gone"
        parts = [
            f"{summary.runs} runs",
            f"{summary.steps / elapsed:,.0f} steps/s",
            f"{duration(elapsed)} gone",
        ]
        if summary.failed:
            parts.insert(1, f"{summary.failed} failed")
        left = sum(forecast(study, portfolio, self._played), Forecast())
        if left.runs and summary.work and summary.paced_from is not None:
            pace = (time.monotonic() - summary.paced_from) / summary.work
            about = "at least" if left.at_least else "about"
            parts.append(f"{about} {duration(left.work * pace)} left")
        return "   ".join(parts)


def bracket_table(study: Study, portfolio: Portfolio) -> Table:
    """One row per cell, one column per head: brackets on d_k as they close."""
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    dense = any(cell.graph.degree != 1 for cell in study.cells)
    columns = ["cell"] if study.has_alike_cells else ["m", "d_model", *(["r"] if dense else [])]
    for name in columns:
        table.add_column(name, justify="right")
    listed = () if study.search.heads == "all" else study.search.heads
    for h in listed:
        table.add_column(f"h={h}", justify="right", min_width=5)
    if not listed:
        table.add_column("heads in question")
    table.add_column("D_K*", justify="right", style="bold")
    for cell in study.cells:
        state = portfolio.state(cell.cell_id)
        by_accuracy = cell.record.report == "accuracy"
        best = None if by_accuracy else state.best_cost
        text = _accuracy_text if by_accuracy else _bracket_text
        shown = "" if best is None else f"{best}" if state.is_done else f"≤ {best}"
        brackets = [text(state, h) for h in listed] or [_heads_text(state)]
        named: list[int | str] = [cell.m, cell.d_model, cell.graph.degree]
        if study.has_alike_cells:
            named = [study.name_of(cell)]
        table.add_row(*map(str, named[: len(columns)]), *brackets, shown)
    return table


def _heads_text(state: CellState) -> Text:
    """The heads that are found or still open, where they are too many for a column each."""
    heads = [h for h in shown_heads(state) if state.result(h).status not in ("pruned", "censored")]
    parts = [Text(f"h={h} ").append_text(_bracket_text(state, h)) for h in heads]
    return Text("   ").join(parts)


def _accuracy_text(state: CellState, h: int) -> Text:
    probes = [key for key in state.evidence if key.arm == h]
    if not probes:
        return Text("·", style="dim")
    scores = state.evidence[max(probes, key=lambda key: key.value)]
    return Text(f"{state.test.mean(scores):.3f} ({len(scores)})")


def _bracket_text(state: CellState, h: int) -> Text:
    result, bracket = state.result(h), state.brackets[h]
    if result.status == "found":
        return Text(f"{result.value}", style="bold green")
    if result.status == "pruned":
        return Text("–", style="dim")
    if result.status == "censored":
        return Text(f"> {bracket.axis[-1]}", style="red")
    if result.status == "inconsistent":
        return Text("!", style="bold red")
    if h in state.failed_arms:
        return Text("failed", style="red")
    if bracket.high is not None:
        return Text(f"{bracket.low}–{bracket.high}", style="yellow")
    return Text(f"> {bracket.low}", style="yellow") if bracket.low else Text("·", style="dim")
