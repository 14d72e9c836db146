"""An interrupt while Ray starts is never lost."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest

from rgr_dist.running.cluster import interrupts_kept


def _swallowing(went_on: list[bool]) -> None:
    with interrupts_kept():
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        went_on.append(True)


def test_an_interrupt_that_is_swallowed_inside_is_raised_at_the_end() -> None:
    before, went_on = signal.getsignal(signal.SIGINT), list[bool]()
    with pytest.raises(KeyboardInterrupt):
        _swallowing(went_on)
    assert went_on == [True]
    assert signal.getsignal(signal.SIGINT) == before


def test_without_an_interrupt_nothing_is_raised() -> None:
    with interrupts_kept():
        pass
