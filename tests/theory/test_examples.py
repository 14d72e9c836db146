"""The examples in the docstrings of ``rgr_dist.theory``."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from rgr_dist import theory

MODULES = [module.name for module in pkgutil.iter_modules(theory.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"rgr_dist.theory.{name}"))
    assert found.failed == 0
    assert found.attempted or name == "layer"
