"""What Ray Tune calls in the driver while a study runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ray import tune


class Heartbeat(tune.Callback):
    """Calls back about once a second while trials run, in the driver."""

    def __init__(self, beat: Callable[[], object]) -> None:
        self.beat = beat

    def __getstate__(self) -> dict[str, Any]:
        """Nothing of a study is pickled: running it again resumes it."""
        return {}

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Called as Tune's loop goes round."""
        self.beat()
