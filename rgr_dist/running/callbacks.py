"""What Ray Tune calls in the driver while a study runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ray import tune


class Heartbeat(tune.Callback):
    """Calls back about once a second while trials run, in the driver."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self.beat = beat

    def __getstate__(self) -> dict[str, Any]:
        """Nothing of a study is pickled: running it again resumes it."""
        return {}

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Called as Tune's loop goes round."""
        self.beat()


class UntilDone(tune.Stopper):
    """Ends all trials once a study needs nothing more, the speculative ones too."""

    def __init__(self, is_done: Callable[[], bool]) -> None:
        self.is_done = is_done

    def __getstate__(self) -> dict[str, Any]:
        """Nothing of a study is pickled: running it again resumes it."""
        return {}

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """No single trial ends here; the scheduler ends them."""
        return False

    def stop_all(self) -> bool:
        """Whether the study needs nothing more."""
        return self.is_done()
