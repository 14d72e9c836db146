"""The smallest value of an integer setting at which any Ray Tune trainable is good enough.

``find_threshold`` finds it for one trainable, ``find_thresholds`` for each setting of a grid. Ray
is imported and started when a trial has to run, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rgr_dist.search.tune import arguments
from rgr_dist.search.tune.question import Question
from rgr_dist.search.tune.score_file import ScoreFile
from rgr_dist.search.tune.setting_search import SettingSearch
from rgr_dist.search.tune.threshold import Mode, Threshold, Thresholds

if TYPE_CHECKING:
    from rgr_dist.search.tune.runner import Resources

Trainable = Callable[..., Any] | type
Cost = Callable[[int, dict[str, Any]], float]
Bounds = tuple[float | None, float | None]


def find_threshold(
    trainable: Trainable,
    axis: str,
    values: Sequence[int],
    metric: str,
    target: float,
    *,
    mode: Mode = "max",
    bounds: Bounds = (None, None),
    seeds: int = 3,
    confirm_seeds: int = 0,
    config: Mapping[str, Any] | None = None,
    store: str | Path | None = None,
    guess: int | None = None,
    slots: int | None = None,
    resources: Resources | None = None,
    on_error: Literal["fail", "stop"] = "stop",
    stop: Mapping[str, float] | None = None,
) -> Threshold:
    """The smallest value of ``axis`` whose mean ``metric`` over the seeds reaches ``target``.

    Every trial is one seed at one value: its config is ``config`` with ``axis`` and ``seed``
    set, its score the last ``metric`` that it reports. The metric is expected to get better as the
    value grows; ``fails_above`` has what shows that it does not.

    Args:
        trainable: a function or class as for ``ray.tune.Tuner``, also one made by
            ``tune.with_parameters`` or ``tune.with_resources``. Checkpoints that it reports are
            kept while its trial runs.
        values: increasing positive integers to choose from, such as ``range(1, 513)``.
        mode: ``min`` where a smaller metric is better, as for a loss.
        bounds: smallest and largest metric there can be, None where there is none: with them
            seeds are spared that could not change a verdict.
        confirm_seeds: fresh seeds on which the threshold must pass too; where it does not, that
            value fails and the search goes on. The smallest of many noisy means is a lucky one.
        store: a file of scores. Run again with the same trainable and config, the search goes on
            from it. It does not notice a change in what the trainable calls or reads.
        guess: where to start; the middle of the values if not given.
        slots: trials at once; as many as Ray has room for if not given.
        resources: of one trial, as for ``ray.tune.with_resources``; if not given, what the
            trainable asks for itself, or one CPU.
        on_error: of a value at which a trial raises, reports no number, or dies three times.
            ``stop``: the search ends there. ``fail``: the value fails, and a pass is looked for
            below it too, since large values may be those that raise. Either way the exceptions
            are in the result, and the next run tries again.
        stop: ends a trial once a reported number is reached, such as
            ``{"training_iteration": 10}``; for classes that do not end by themselves.

    Raises:
        ValueError: bad arguments, a metric that is never reported or outside its bounds, a store
            of another search, or resources that Ray does not have.
    """
    question = Question.checked(
        trainable,
        axis,
        values,
        metric,
        target,
        mode,
        bounds,
        seeds,
        confirm_seeds,
        config,
        guess,
        on_error,
        stop,
    )
    return _search(question, store, slots, resources).thresholds[0]


def find_thresholds(
    trainable: Trainable,
    axis: str,
    values: Sequence[int],
    metric: str,
    target: float,
    *,
    over: Mapping[str, Sequence[Any]],
    cost: Cost | None = None,
    keep_within: float | None = None,
    mode: Mode = "max",
    bounds: Bounds = (None, None),
    seeds: int = 3,
    confirm_seeds: int = 0,
    config: Mapping[str, Any] | None = None,
    store: str | Path | None = None,
    guess: int | None = None,
    slots: int | None = None,
    resources: Resources | None = None,
    on_error: Literal["fail", "stop"] = "stop",
    stop: Mapping[str, float] | None = None,
) -> Thresholds:
    """The threshold of every setting of a grid, found in one pool of trials, and the best one.

    A trial's config is ``config`` with the setting, ``axis`` and ``seed`` set. All else is as in
    ``find_threshold``; an error under ``on_error="stop"`` ends the search of its setting alone. A
    store goes on with another grid too.

    Args:
        over: the values of each name, such as ``{"depth": [1, 2, 4]}``; every combination is a
            setting.
        cost: what a value costs at a setting, ``cost(value, setting)``: a positive number that
            does not fall as the value grows. The best setting has the least at its threshold.
        keep_within: with a cost, search only as far as a setting may come within this share of the
            best one's cost, or one value above those that are no dearer; beyond, it is ``pruned``.
            Not given, every setting's threshold is found.

    Raises:
        ValueError: as for ``find_threshold``; a setting listed twice; a cost that falls or is not
            positive; ``keep_within`` without a cost.
    """
    question = Question.checked(
        trainable, axis, values, metric, target, mode, bounds, seeds, confirm_seeds,
        config, guess, on_error, stop,
        over=over, cost=cost, keep_within=keep_within,
    )  # fmt: skip
    return _search(question, store, slots, resources)


def _search(
    question: Question, store: str | Path | None, slots: int | None, resources: Resources | None
) -> Thresholds:
    if slots is not None:
        arguments.positive_integer("slots", slots)
    search = SettingSearch(question, ScoreFile(store, question.about))
    if not search.portfolio.is_done:
        from rgr_dist.search.tune.trials import run

        run(search, slots, resources)
    return search.result()
