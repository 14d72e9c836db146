"""What a threshold search has found, to read, print and draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from rgr_dist.search.threshold import ProbeResult, Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Mode = Literal["max", "min"]


@dataclass(frozen=True)
class Threshold:
    """The first value of an axis that passes, and what shows it.

    Attributes:
        axis, metric, target, mode, seeds: the question.
        status: ``found``; ``censored`` where no value passes; ``open`` where an error, or the end
            of the Tuner, stopped the search.
        value: None unless found.
        passed, failed: the certificate: ``mean_score`` and ``n_seeds`` at the value and at the one
            before it, if there is one, over the seeds that the verdict took.
        why: the status in a sentence.
        fresh: the same over the fresh seeds that confirm the value; None where none were asked for.
        fails_above: the values tried that fail although an earlier one passes.
        errors: what ended the trials that gave no score, by value and seed.
        checkpoints: the last checkpoint of each seed at the value, from ``find_threshold`` with a
            ``run_config`` that keeps them.
        scores: every known metric, by value and seed: no more seeds than suffice for a verdict, so
            a failing value's mean is biased.
        steps: the lines of ``explain``.
    """

    axis: str
    metric: str
    target: float
    mode: Mode
    seeds: int
    status: Status
    value: Any
    passed: ProbeResult | None
    failed: ProbeResult | None
    why: str
    fresh: ProbeResult | None = None
    fails_above: tuple[Any, ...] = ()
    errors: Mapping[tuple[Any, int], str] = field(default_factory=dict, compare=False)
    checkpoints: Mapping[int, Any] = field(default_factory=dict, compare=False)
    scores: Mapping[Any, Mapping[int, float]] = field(default_factory=dict, compare=False)
    steps: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """A line: the value and its certificate, or why there is none."""
        if self.passed is None:
            return f"Threshold({self.status}: {self.why})"
        text = f"{self.axis} = {self.value}: {self.metric} {_shown(self.passed)} "
        text += f"{'≥' if self.mode == 'max' else '≤'} {self.target:g}"
        text += f", on fresh seeds {_shown(self.fresh)}" if self.fresh else ""
        below = self.failed
        text += f"; at {below.value}: {_shown(below)}" if below else f"; {self.why}"
        above = ", ".join(map(str, self.fails_above))
        return f"Threshold({text}{above and f'; yet fails after a pass, at {above}'})"

    def explain(self) -> str:
        """A line for every value tried, in order: why it was tried, its verdict, the evidence."""
        return "\n".join(self.steps)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw every seed's metric, the means, the target and the threshold.

        A mean that lacks seeds is hollow: the search stopped once they could no longer change the
        verdict. Values that raised are crosses at the lower edge.
        """
        from matplotlib import pyplot

        ax = ax or pyplot.subplots(figsize=(6, 3.6), layout="constrained")[1]
        means = {value: sum(of.values()) / len(of) for value, of in self.scores.items()}
        ax.plot([*means], [*means.values()], "C0-")
        for value, of in self.scores.items():
            ax.plot([value] * len(of), [*of.values()], "C0.", alpha=0.35)
            ax.plot(value, means[value], "C0o", mfc="C0" if len(of) >= self.seeds else "white")
        for value in {value for value, _ in self.errors}:
            ax.plot(value, 0.02, "x", color="tab:red", transform=ax.get_xaxis_transform())
        ax.axhline(self.target, color="0.4", linestyle="--", label=f"target {self.target:g}")
        if self.passed is not None:
            ax.axvline(self.value, color="C0", linestyle=":", label=f"{self.axis} = {self.value}")
        ax.set(xlabel=self.axis, ylabel=self.metric, title=self.why)
        ax.legend()
        return ax


def _shown(probe: ProbeResult) -> str:
    return f"{probe.mean_score:.4g} ({probe.n_seeds} seed{'s' * (probe.n_seeds > 1)})"
