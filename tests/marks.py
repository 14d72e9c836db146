"""Marks of tests that ``make test`` leaves out."""

from collections.abc import Callable
from typing import Any

import pytest

SLOW_IN_CI = (pytest.mark.slow, pytest.mark.ci)
"""Takes ten seconds or more, mostly to compile; CI runs it."""


def slow_in_ci(test: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a test so."""
    for mark in SLOW_IN_CI:
        test = mark(test)
    return test
