"""What a threshold search has found, to read, print and draw; knows nothing of Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from rgr_dist.search.protocol import Decision, ProbeResult, Status
from rgr_dist.search.tune.lost_workers import in_a_line
from rgr_dist.search.tune.one_line import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Mode = Literal["max", "min"]
Setting = Mapping[str, Any]


@dataclass(frozen=True)
class TrialError:
    """A trial that gave no score.

    Attributes:
        value, seed: what it trained.
        error: what Ray says of it, with the traceback if it raised; or that its metric was not a
            number, or what became of its process.
    """

    value: int
    seed: int
    error: str

    @property
    def message(self) -> str:
        """The error in a line, such as ``RuntimeError: out of memory``."""
        return in_a_line(self.error)


@dataclass(frozen=True)
class Threshold:
    """The smallest value of a setting's axis that passes, and what shows it.

    Attributes:
        axis, metric, target, mode: the question.
        seeds: seeds of each value's mean.
        setting: which of the settings that ``over`` lists this is; empty for a single search.
        status: ``found``; ``censored`` where no value passes; ``pruned`` where it cannot come near
            the best setting's cost; ``open`` where an error or the Tuner's end stopped the search.
        value: None unless found.
        cost: at the value; None unless found, or where no cost was asked for.
        passed, failed: the certificate: mean metric at the value and at the one below it, over the
            seeds that the verdict took. ``failed`` is None if there is none below, or it raised.
        fresh: the mean over the fresh seeds that confirm the value; None where none were asked for.
        because: why it has this status, in words.
        fails_above: of the values tried, those that fail although a smaller one passes: the metric
            does not get better with every larger value, and a threshold may lie elsewhere.
        errors: the trials of this run that gave no score.
        stopped_early: in a Tuner of the user's own, value and seed of the trials that a scheduler
            may have stopped: they ended after fewer iterations than others, and not because their
            function returned. A trial that reports ``done`` looks the same. Their last metric is
            their score, so a value that fails because of them might pass if trained to the end.
        checkpoints: those of the value in this run, by seed; None where keeping was not asked for.
        scores: every known metric, by value and seed. A failing value may have been stopped at the
            seeds that sufficed to fail it: a mean over those is biased towards failing.
        decisions: every probe, why it was made and what it showed.
        ahead: trainings of this run on idle slots, ahead of need, that no verdict used in the end.
    """

    axis: str
    metric: str
    target: float
    mode: Mode
    seeds: int
    status: Status
    value: int | None
    passed: ProbeResult | None
    failed: ProbeResult | None
    because: str
    setting: Setting = field(default_factory=dict)
    cost: float | None = None
    fresh: ProbeResult | None = None
    fails_above: tuple[ProbeResult, ...] = ()
    errors: tuple[TrialError, ...] = field(default=(), compare=False)
    stopped_early: tuple[tuple[int, int], ...] = ()
    checkpoints: Mapping[int, Any] | None = field(default=None, repr=False, compare=False)
    scores: Mapping[int, Mapping[int, float]] = field(default_factory=dict, repr=False)
    decisions: tuple[Decision, ...] = field(default=(), repr=False)
    ahead: int = field(default=0, repr=False, compare=False)

    def __repr__(self) -> str:
        """A line: the value and its certificate, or why there is none."""
        where = f"{name(self.setting)}: " if self.setting else ""
        return f"Threshold({where}{self.summary})"

    @property
    def summary(self) -> str:
        """The value and its certificate, or why there is none, in a line."""
        if self.status != "found" or self.passed is None:
            text = f"{self.status}: {self.because}"
        else:
            sign = "≥" if self.mode == "max" else "≤"
            text = f"{self.axis} = {self.value}: {self.metric} {_mean(self.passed)} {sign} "
            text += f"{self.target:g}"
            if self.fresh is not None:
                text += f", on fresh seeds {_mean(self.fresh)}"
            if self.failed is not None:
                text += f"; at {self.failed.value}: {_mean(self.failed)}"
            elif not self.because.endswith("the smallest there is"):
                text += f"; {self.because.removeprefix(f'passes at {self.axis} = {self.value}, ')}"
        if self.cost is not None:
            text += f"; cost {self.cost:.6g}"
        above = [probe.value for probe in self.fails_above]
        if above and (self.value is None or min(above) < self.value):  # one trained ahead of need
            text += f"; yet a value below {min(above)} passes, as scores shows"
        elif above:
            text += f"; yet fails above it, at {', '.join(map(str, above))}"
        if self.stopped_early:
            count = len(self.stopped_early)
            text += f"; {count} trial{'s were' if count > 1 else ' was'} stopped early"
        return printable(text)

    def explain(self) -> str:
        """A line for every value tried, in order: why it was tried, its verdict, the evidence."""
        where = f"{name(self.setting)}, " if self.setting else ""
        lines = [
            f"{where}{self.axis} = {one.value} ({one.reason}): {one.verdict}, {one.evidence}"
            for one in self.decisions
        ]
        if self.ahead:
            lines.append(f"{where}trained ahead of need, on idle slots, in vain: {self.ahead}")
        return printable("\n".join(lines))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw every seed's metric, the means, the target and the threshold.

        A mean that lacks seeds is hollow: the search stopped once they could no longer change the
        verdict. Values that raised are crosses at the lower edge.

        Args:
            ax: where to draw; a new figure's if not given.

        Raises:
            ImportError: matplotlib is not installed.
        """
        ax = _draw([self], ax)
        ax.set_title(self.because)
        return ax


@dataclass(frozen=True)
class Thresholds(Sequence[Threshold]):
    """The thresholds of several settings, in the order of the grid.

    Attributes:
        thresholds: one for each setting.
        best: the one with the least cost, then the better mean, then the first; None where none is
            found, or where no cost was asked for.
    """

    thresholds: tuple[Threshold, ...]
    best: Threshold | None = None

    def __len__(self) -> int:
        """How many settings there are."""
        return len(self.thresholds)

    def __getitem__(self, index: Any) -> Any:
        """The threshold of a setting by its place in the grid."""
        return self.thresholds[index]

    def at(self, **setting: Any) -> Threshold:
        """The threshold of a setting, such as ``at(depth=2)``.

        Raises:
            KeyError: no setting, or more than one, has these values.
        """
        fits = [
            one
            for one in self.thresholds
            if all(key in one.setting and one.setting[key] == setting[key] for key in setting)
        ]
        if len(fits) != 1:
            known = "; ".join(name(one.setting) for one in self.thresholds)
            raise KeyError(f"{len(fits)} settings have {name(setting)}; there are: {known}")
        return fits[0]

    def with_checkpoints(self, kept: Mapping[int, Mapping[int, Any]]) -> Thresholds:
        """These thresholds with the checkpoints of each, given by its place in the grid."""
        new = tuple(replace(one, checkpoints=kept.get(n, {})) for n, one in enumerate(self))
        return Thresholds(new, self.best and new[self.thresholds.index(self.best)])

    def rows(self) -> list[dict[str, Any]]:
        """A row for each setting, for ``pandas.DataFrame``: its values, status, value and cost."""
        return [
            {
                **one.setting,
                one.axis: one.value,
                "status": one.status,
                "cost": one.cost,
                "mean_passed": one.passed.mean_score if one.passed else None,
                "mean_failed": one.failed.mean_score if one.failed else None,
                "is_best": one is self.best,
                "because": one.because,
            }
            for one in self.thresholds
        ]

    def __repr__(self) -> str:
        """A line for each setting; the best is marked."""
        lines = [
            f"{'*' if one is self.best else ' '} {name(one.setting)}: {one.summary}"
            for one in self.thresholds
        ]
        return "\n".join([f"{len(self)} thresholds{' (* the best)' * bool(self.best)}", *lines])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the means of every setting, as ``Threshold.plot`` does for one.

        Args:
            ax: where to draw; a new figure's if not given.

        Raises:
            ImportError: matplotlib is not installed.
        """
        return _draw(self.thresholds, ax)


def name(setting: Setting) -> str:
    """A setting in words, such as ``depth=2, heads=4``."""
    return printable(", ".join(f"{key}={value}" for key, value in setting.items()))


def _mean(probe: ProbeResult) -> str:
    return f"{probe.mean_score:.4g} ({probe.n_seeds} seed{'s' * (probe.n_seeds > 1)})"


def _draw(several: Sequence[Threshold], ax: Axes | None) -> Axes:
    """Draw scores, means and values of thresholds of one search."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plot() needs matplotlib: pip install matplotlib") from None
    ax = ax or pyplot.subplots(figsize=(6, 3.6), layout="constrained")[1]
    for number, found in enumerate(several):
        colour = f"C{number % 10}"
        answer = f"{found.axis} = {found.value}" if found.value is not None else found.status
        label = f"{name(found.setting)}: {answer}" if found.setting else answer
        means = {value: sum(of.values()) / len(of) for value, of in sorted(found.scores.items())}
        for value, of in found.scores.items():
            fill = colour if len(of) >= found.seeds else "white"
            ax.plot(
                [value] * len(of), list(of.values()), ".", color=colour, alpha=0.35, markersize=4
            )
            ax.plot(value, means[value], "o", color=colour, markersize=5, mfc=fill)
        ax.plot(list(means), list(means.values()), "-", color=colour, linewidth=1, label=label)
        if found.value is not None:
            ax.axvline(found.value, color=colour, linewidth=0.8, linestyle=":")
        for value in {error.value for error in found.errors}:
            ax.plot(value, 0.02, "x", color="tab:red", transform=ax.get_xaxis_transform())
    first = several[0]
    fewer = f"mean of fewer than {first.seeds} seeds"
    ax.plot([], [], "o", color="0.4", markersize=5, mfc="white", label=fewer)
    target = f"target {first.target:g}"
    ax.axhline(first.target, color="0.4", linewidth=0.8, linestyle="--", label=target)
    ax.set(xlabel=first.axis, ylabel=first.metric)
    ax.legend(fontsize="small")
    return ax
