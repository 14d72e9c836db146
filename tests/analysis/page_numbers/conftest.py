"""The made-up store of ``base-grid``, its page, and the same numbers by hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from rgr_dist.analysis.load import StudyResults, open_results
from rgr_dist.analysis.report.publish import write_report
from rgr_dist.store.store import Store
from rgr_dist.study.from_yaml import load_study
from tests.analysis.page_numbers import by_hand
from tests.analysis.page_numbers.made_up_store import Rows, of_other_studies, searched


@dataclass(frozen=True)
class Stored:
    """A store, its page, and the rows that were put in."""

    root: Path
    rows: Rows
    results: StudyResults
    page: str


def stored(root: Path, rows: Rows) -> Stored:
    """A store of these rows with the page of ``base-grid``."""
    store, study = Store(root), load_study("base-grid")
    store.append(rows)
    results = open_results(study, store)
    page = write_report(results, root / "report").read_text("utf-8")
    return Stored(root, rows, results, page)


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """A store that holds ``base-grid`` and nothing else."""
    return stored(tmp_path_factory.mktemp("alone"), searched(load_study("base-grid")))


@pytest.fixture(scope="session")
def shared(alone: Stored, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """The same store with the runs of other studies in it."""
    more = of_other_studies(load_study("base-grid"), alone.rows)
    return stored(tmp_path_factory.mktemp("shared"), [*more, *alone.rows])


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
