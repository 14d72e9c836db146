"""What a threshold search has found, to read, print and draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from rgr_dist.search.portfolio import Portfolio
from rgr_dist.search.threshold import ProbeResult, Search
from rgr_dist.search.tune.searcher import in_a_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Mode = Literal["max", "min"]
VALUES, END = "values", "the other end"
"""The cells of the portfolio: the search, and a look at the end of the values that it left out."""


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
        scores: every known metric, by value and seed. A mean over a failing value's is biased
            towards failing: no more seeds are trained than suffice to fail it.
        steps: the lines of ``explain``.
    """

    axis: str
    metric: str
    target: float
    mode: Mode
    seeds: int
    status: Literal["found", "censored", "open"]
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
        text = f"{self.status}: {self.why}"
        if self.passed is not None:
            sign = "≥" if self.mode == "max" else "≤"
            at = f"{self.axis} = {self.value}: {self.metric}"
            text = f"{at} {_shown(self.passed)} {sign} {self.target:g}"
            text += f", on fresh seeds {_shown(self.fresh)}" if self.fresh else ""
            below = self.failed
            text += f"; at {below.value}: {_shown(below)}" if below else f"; {self.why}"
        if self.fails_above:
            text += f"; yet fails after a pass, at {', '.join(map(str, self.fails_above))}"
        return f"Threshold({text})"

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


def answer(
    portfolio: Portfolio,
    axis: str,
    values: Sequence[Any],
    metric: str,
    known: Mapping[tuple[int, int], float],
    errors: Mapping[tuple[int, int], str],
) -> Threshold:
    """What a search has found so far.

    Args:
        known, errors: the score, or what was raised, by position among the values and seed.
    """
    search, test = portfolio.search(VALUES), portfolio.plans[VALUES].test
    result = search.result(1)
    why, above = _why(search, axis, values, errors), {*result.fails_above}
    ends = portfolio.search(END).decisions if END in portfolio.plans else ()
    if ends and ends[-1].verdict == ("pass" if result.value is None else "fail"):
        if result.value is None:
            why += f"; yet the first, {values[0]}, passes"
        else:
            why += f"; yet the last, {values[-1]}, fails"
            above |= {len(values)}
        why += ": the values run the wrong way; list them in the opposite order"

    def at_value(probe: ProbeResult | None) -> ProbeResult | None:
        return probe and probe._replace(value=values[probe.value - 1])

    scores: dict[Any, dict[int, float]] = {}
    for (position, seed), score in sorted(known.items()):
        scores.setdefault(values[position - 1], {})[seed] = score
    return Threshold(
        axis=axis,
        metric=metric,
        target=test.target,
        mode="min" if test.minimise else "max",
        seeds=test.seeds,
        status="open" if result.status == "pruned" else result.status,
        value=None if result.value is None else values[result.value - 1],
        passed=at_value(result.passed) if result.value else None,
        failed=at_value(result.failed),
        why=why,
        fresh=at_value(result.fresh) if result.value else None,
        fails_above=tuple(values[position - 1] for position in sorted(above)),
        errors={(values[at - 1], seed): error for (at, seed), error in errors.items()},
        scores=scores,
        steps=tuple(_steps(search, axis, values)),
    )


def _why(
    search: Search, axis: str, values: Sequence[Any], errors: Mapping[tuple[int, int], str]
) -> str:
    """A status in a sentence."""
    result = search.result(1)
    if result.value is not None:
        before = f"fails at {values[result.value - 2]}" if result.value > 1 else "the first value"
        return f"passes at {axis} = {values[result.value - 1]}, {before}"
    if result.status == "censored":
        return f"fails at {axis} = {values[-1]}, the last value"
    for need, verdict, known in search.decisions:
        for (position, seed), error in sorted(errors.items()):
            if verdict == "open" and position == need.key.value and seed not in known:
                return f"{axis} = {values[position - 1]}, seed {seed}: {in_a_line(error)}"
    return (
        "the Tuner ended before the search: give num_samples=-1 and no time budget, and go on by "
        "Tuner.restore, or with this search in a new Tuner"
    )


def _steps(search: Search, axis: str, values: Sequence[Any]) -> list[str]:
    """A line for every value tried, with what was known by then."""
    known: dict[int, str] = {}
    steps = []
    for (key, want, _), verdict, scores in search.decisions:
        why = bracket(known, values) or "the first to try"
        if want in ("verdict", "fresh seeds"):
            why = f"does it pass on {'all' if want == 'verdict' else 'fresh'} seeds?"
        said = search.test_of(want).explain(scores) if verdict != "open" else "a trial is missing"
        steps.append(f"{axis} = {values[key.value - 1]} ({why}): {verdict}, {said}")
        known[key.value] = verdict
    return steps


def bracket(verdicts: Mapping[int, str], values: Sequence[Any]) -> str:
    """Between which values the threshold lies, by the verdicts at some positions."""
    passing = [at for at, verdict in verdicts.items() if verdict == "pass"]
    failing = [at for at, verdict in verdicts.items() if verdict == "fail"]
    failing = [at for at in failing if at < min(passing, default=at + 1)]
    known = [f"fails at {values[max(failing) - 1]}"] if failing else []
    known += [f"passes at {values[min(passing) - 1]}"] if passing else []
    return ", ".join(known)
