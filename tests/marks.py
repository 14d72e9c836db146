"""Marks of tests that ``make test`` leaves out."""

import pytest

SLOW_IN_CI = (pytest.mark.slow, pytest.mark.ci)
"""Takes ten seconds or more, mostly to compile; CI runs it."""
