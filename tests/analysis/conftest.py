"""A finished study and its report, for the tests that read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgr_dist.analysis.load import StudyResults
from tests.analysis.made_up import search_all, study_of
from tests.analysis.written_page import write_report


@pytest.fixture(scope="session")
def six_cells(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyResults, Path]:
    """The results and the report folder of six searched cells."""
    results = search_all(study_of([(m, d_model) for m in (64, 128) for d_model in (16, 32, 64)]))
    folder = tmp_path_factory.mktemp("six-cells")
    write_report(results, folder)
    return results, folder
