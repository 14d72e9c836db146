"""The progress of a study that is still running: its brackets as they close, and what failed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Section, Table
from rgr_dist.analysis.rows import names_of
from rgr_dist.analysis.wording import plural, rough_time
from rgr_dist.planning.bracket_signs import MEANINGS, accuracy_sign, bracket_sign
from rgr_dist.planning.forecast import Forecast, forecast, work_done
from rgr_dist.planning.listing import failures
from rgr_dist.planning.search_of import StoredSearch
from rgr_dist.study.study import Study

LATEST = 40
"""How many of the latest runs set the pace from which the time left is estimated."""


def section(results: StudyResults, search: StoredSearch) -> Section:
    """The head of a running study's page."""
    study, portfolio = results.study, search.portfolio
    left = sum(forecast(study, portfolio), Forecast())
    by_accuracy = not study.record.finds_thresholds
    sign = accuracy_sign if by_accuracy else bracket_sign
    sizes, listed = study.search.sizes, study.search.arms
    of_arm = sizes.shown(sizes.arm)
    rows: list[dict[str, Any]] = []
    for cell in study.cells:
        state = portfolio.search(cell.cell_id)
        best = None if by_accuracy else state.best()
        arms = [h for h in listed if h in state.plan.axes]
        row: dict[str, Any] = {**names_of(results)[cell.cell_id]}
        row["signs"] = {h: sign(state, h) for h in arms}
        row["D_K"] = best and f"{'' if state.is_done else '≤ '}{sizes.width(*best)}"
        row["h_star"] = best and best.arm
        row["done"] = "finished" if state.is_done and not state.open else "open"
        rows.append(row)
    heads = [Column(f"{of_arm} = {h}", partial(_sign_of, h), text=True) for h in listed]
    signs = "; ".join(f"{sign.text} {meaning}" for sign, meaning in MEANINGS)
    done = len(results.runs)
    rest = f"about {plural(left.runs, 'run')} {'or more ' * left.at_least}left"
    latest = results.runs.sort_values("finished_at").tail(LATEST)
    if (pace := _pace(latest, study)) is not None:
        rest += f", {rough_time(left.work / pace)} at the pace of the latest {len(latest)}"
    if portfolio.is_done:
        is_settled = not any(portfolio.search(cell.cell_id).open for cell in study.cells)
        rest = "nothing is left" if is_settled else "nothing is left but runs that failed"
    words = [f"{plural(done, 'run')} stored; {rest}.", *failures(results.runs)]
    if done:
        ended = latest["finished_at"].iloc[-1]
        words.append(f"The last one ended at {ended:%Y-%m-%d %H:%M:%S} UTC.")
    table = Table(
        name="table-state",
        caption="Mean accuracy at the largest D_K so far; in brackets, the number of seeds."
        if by_accuracy
        else f"Brackets on {sizes.value}: {signs}. {sizes.total}* = h {sizes.value} at the best "
        + ("head count h*." if of_arm == "h" else f"{of_arm}."),
        columns=[
            Column("cell", "short", text=True, names=True),
            *heads,
            Column(f"{sizes.total}*", "D_K", text=True),
            Column(f"{of_arm}*", "h_star"),
            Column("search", "done", text=True),
        ],
        rows=rows,
    )
    title = f"Study {study.name}"
    return Section(name="state", title=title, words=words, shown=(table,), template="state")


def _pace(latest: pd.DataFrame, study: Study) -> float | None:
    """Multiply-adds per second of the latest runs; None for fewer than two or if none has steps."""
    ended = pd.to_datetime(latest["finished_at"], utc=True)
    began = ended - pd.to_timedelta(latest["seconds"], unit="s")
    seconds = (ended.max() - began.min()).total_seconds() if len(latest) > 1 else 0
    work = work_done(latest, study)
    return work / seconds if seconds and work else None


def _sign_of(h: int, row: Mapping[str, Any]) -> str:
    return row["signs"][h].text if h in row["signs"] else ""


def _in_question(row: Any) -> str:
    kept = {h: sign for h, sign in row["signs"].items() if sign.look not in ("pruned", "censored")}
    return "   ".join(f"h={h}: {sign.text}" for h, sign in kept.items())
