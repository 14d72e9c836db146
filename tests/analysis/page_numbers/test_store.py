"""A page is of its study alone, and small, whatever else the store holds."""

from __future__ import annotations

import re
from pathlib import Path

from rgr_dist.analysis.load import open_results
from rgr_dist.store.store import Store
from rgr_dist.study.study_file import load_study
from tests.analysis.page_numbers.by_hand import rows_of
from tests.analysis.page_numbers.conftest import Stored
from tests.analysis.written_page import write_report

LARGEST = 400_000
"""Bytes of the page of ``base-grid``."""


def sections(page: str) -> dict[str, str]:
    """Every section of a page but those that count the runs in the store; the head as ``head``."""
    page = re.sub(r'href="data:[^"]*"', "", page)
    page = re.sub(r'<dl class="tiles">.*?</dl>', "", page, flags=re.S)
    head, *parts = page.split('<section id="')
    own = {part.partition('"')[0]: part for part in parts}
    return {"head": head} | {k: v for k, v in own.items() if k not in ("cost", "provenance")}


def test_other_studies_runs_change_nothing(alone: Stored, shared: Stored) -> None:
    assert len(rows_of(shared.root)) > len(alone.rows) + 1000
    assert sections(shared.page) == sections(alone.page)


def test_the_page_of_base_grid_is_small(alone: Stored, tmp_path: Path) -> None:
    results = open_results(load_study("base-grid"), Store(alone.root))
    assert write_report(results, tmp_path).stat().st_size <= LARGEST
