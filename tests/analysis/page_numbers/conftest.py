"""The made-up store of ``base-grid``, its page, and the same numbers by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from rgr_dist.analysis.load import open_results
from rgr_dist.paper import IMPLIED
from rgr_dist.store.store import Store
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import load_study
from tests.analysis.made_up import Row, as_the_paper, trained
from tests.analysis.page_numbers import by_hand
from tests.analysis.written_page import write_report
from tests.store.made_up_runs import failed_row, run_row


@dataclass(frozen=True)
class Stored:
    """A store, the rows that were put in, and its page."""

    root: Path
    rows: list[Row]
    page: str


def with_every_interval() -> Study:
    """``base-grid``, with App. A.2's interval of every head near the best."""
    study = load_study("base-grid")
    search = study.search.model_copy(update={"intervals": True})
    return study.model_copy(update={"search": search})


def stored(root: Path, study: Study, rows: list[Row], more: Sequence[Row] = ()) -> Stored:
    """A store with the rows of the finished study, a run of it tried twice, and more rows."""
    store = Store(root)
    first = next(row for row in rows if row["cell_id"] == study.cells[0].cell_id)
    store.append([failed_row(h=first["h"], d_k=first["d_k"], cell=study.cells[0]), *more, *rows])
    page = write_report(open_results(study, store), root / "report").read_text("utf-8")
    return Stored(root, rows, page)


def of_other_studies(study: Study) -> Iterator[Row]:
    """Runs of the same cells that other studies have stored: other widths, and spared seeds."""
    for cell in study.cells:
        D_K, best_h = IMPLIED[cell.m, cell.d_model]
        for h in {1, best_h}:
            for d_k in {max(1, round(D_K / h * 2 ** (step / 6))) for step in range(-5, 6)}:
                for seed in range(10):
                    run = Run(cell=cell, h=h, d_k=d_k, seed=seed)
                    yield run_row(h, d_k, seed, cell, **as_the_paper(run))


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """A store that holds the study and nothing else."""
    study, root = with_every_interval(), tmp_path_factory.mktemp("alone")
    return stored(root, study, trained(study, Store(root), as_the_paper))


@pytest.fixture(scope="session")
def shared(alone: Stored, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """The same store with the runs of other studies in it."""
    known = {row["run_id"] for row in alone.rows}
    others = of_other_studies(load_study("base-grid"))
    more = [row for row in others if row["run_id"] not in known]
    return stored(tmp_path_factory.mktemp("shared"), with_every_interval(), alone.rows, more)


@pytest.fixture(scope="session")
def page(alone: Stored) -> str:
    """The page as HTML."""
    return alone.page


@pytest.fixture(scope="session")
def rows(alone: Stored) -> pd.DataFrame:
    """The raw rows."""
    return by_hand.rows_of(alone.root)


@pytest.fixture(scope="session")
def cells(rows: pd.DataFrame) -> dict[by_hand.Size, by_hand.Cell]:
    """The cells by hand."""
    return by_hand.cells_of(by_hand.probes_of(rows))
