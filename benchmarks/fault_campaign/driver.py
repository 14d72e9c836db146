"""One ``rgr run`` of a campaign: starts it, watches it, kills it, and gives its exit status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

RGR = (sys.executable, "-P", "-c", "from rgr_dist.cli import main; main()")
HANGS_AFTER = 300.0
"""Seconds after which a driver that has not ended counts as hung."""
ENDS_WITHIN = 90.0
"""Seconds that a driver has to end after a signal."""


class Hung(RuntimeError):
    """A driver did not end."""


class Driver:
    """A process of ``rgr run``, its output in a file.

    Args:
        arguments: what follows ``rgr``.
        log: the file to which both its outputs are appended.
        environment: what it has in its environment in addition to the campaign's own.
    """

    def __init__(
        self, arguments: list[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [*RGR, *arguments],
                env={**os.environ, **(environment or {})},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_hear_interrupts,
            )
        self.started = time.monotonic()

    @property
    def runs(self) -> bool:
        """Whether it has not ended.

        Raises:
            Hung: it ran for too long, and was killed.
        """
        if self.process.poll() is not None:
            return False
        if time.monotonic() - self.started > HANGS_AFTER:
            self.kill(signal.SIGKILL)
            raise Hung(f"a driver did not end within {HANGS_AFTER:.0f} s")
        return True

    def wait_until(self, holds: Callable[[], bool], every: float = 0.05) -> bool:
        """Wait until something holds; False if the driver ends first."""
        while self.runs:
            if holds():
                return True
            time.sleep(every)
        return False

    def kill(self, number: signal.Signals) -> int:
        """End it by a signal; returns its exit status once it has ended.

        Raises:
            Hung: it did not end in time after the signal, and was killed.
        """
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        try:
            return self.process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Hung(
                f"a driver did not end within {ENDS_WITHIN:.0f} s of {number.name}"
            ) from None

    def wait(self) -> int:
        """Its exit status, once it has ended.

        Raises:
            Hung: it ran for too long, and was killed.
        """
        self.wait_until(lambda: False)
        return int(self.process.returncode)


def _hear_interrupts() -> None:
    """Hear interrupts again: a shell makes commands in the background ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
