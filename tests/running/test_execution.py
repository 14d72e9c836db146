"""How many workers a study may ask for, and what share of a GPU each."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from rgr_dist.faults import UserError
from rgr_dist.running.execution import MOST_CPUS, Execution


@pytest.mark.parametrize("cpus", [0, MOST_CPUS + 1])
def test_a_number_of_workers_that_no_machine_has_is_refused(cpus: int) -> None:
    assert [Execution(most).cpus for most in (None, 1, MOST_CPUS)] == [None, 1, MOST_CPUS]
    with pytest.raises(UserError, match=f"^--cpus {cpus}: give 1 to 100,000; by default all are"):
        Execution(cpus)


@pytest.mark.parametrize("gpus", [-0.5, math.inf, math.nan])
def test_a_share_of_a_gpu_that_is_none_is_refused(gpus: float) -> None:
    assert [Execution(gpus=share).gpus for share in (0, 0.5)] == [0, 0.5]
    with pytest.raises(UserError, match=f"^--gpus {gpus}: give a share of a GPU, or 0 to train on"):
        Execution(gpus=gpus)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"cpus": "2"}, "--cpus '2': give 1 to 100,000; by default all are used"),
        ({"gpus": None}, "--gpus None: give a share of a GPU, or 0 to train on CPUs"),
        ({"address": [1]}, "--address [1]: give local, auto, HOST:PORT or ray://HOST:PORT"),
    ],
)
def test_what_is_of_another_type_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(told)}$"):
        Execution(**given)
