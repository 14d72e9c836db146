"""A finished study for the tests that read it."""

from __future__ import annotations

import pytest

from rgr_dist.analysis.load import StudyResults
from tests.analysis.made_up import search_all, study_of


@pytest.fixture(scope="session")
def six_cells() -> StudyResults:
    """The results of six searched cells."""
    return search_all(study_of([(m, d_model) for m in (64, 128) for d_model in (16, 32, 64)]))
