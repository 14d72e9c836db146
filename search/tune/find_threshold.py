"""The smallest value of an integer setting at which any Ray Tune trainable is good enough.

``find_threshold`` finds it for one trainable, ``find_thresholds`` for each setting of a grid. Ray
is imported and started when a trial has to run, and not before.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rgr_dist.search.tune.one_line import quoted
from rgr_dist.search.tune.question import Cost, Question, check_slots
from rgr_dist.search.tune.score_file import ScoreFile
from rgr_dist.search.tune.setting_search import SettingSearch
from rgr_dist.search.tune.threshold import Mode, Threshold, Thresholds

if TYPE_CHECKING:
    from ray.tune import Callback, RunConfig

    from rgr_dist.search.tune.runner import Resources

Trainable = Callable[..., Any] | type
Bounds = tuple[float | None, float | None]
ELSEWHERE = {
    "num_samples": "the search decides how many trials it needs",
    "param_space": "give config: one value of each name, or lists of them as over",
    "scheduler": "pass rgr_dist.ThresholdSearch to a Tuner of your own",
    "search_alg": "this is one; pass rgr_dist.ThresholdSearch to a Tuner of your own",
    "tune_config": "pass rgr_dist.ThresholdSearch to a Tuner of your own",
    "max_concurrent_trials": "give slots instead",
    "storage_path": "give run_config=RunConfig(storage_path=…)",
}
"""Arguments of a Tuner that make no sense here, and what to use instead."""
OF_THE_RUN: dict[str, Any] = {
    "config": None, "store": None, "slots": None, "resources": None, "stop": None,
    "run_config": None, "callbacks": (), "keep": None, "speculate": True,
}  # fmt: skip
"""How trials are run, unless the caller says otherwise."""


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
    seed_key: str = "seed",
    run_config: RunConfig | None = None,
    callbacks: Sequence[Callback] = (),
    keep: Literal["threshold"] | None = None,
    speculate: bool = True,
    **others: Any,
) -> Threshold:
    """The smallest value of ``axis`` whose mean ``metric`` over the seeds reaches ``target``.

    Every trial is one seed at one value: its config is ``config`` with ``axis`` and ``seed_key``
    set, its score the last ``metric`` that it reports. The metric is expected to get better as the
    value grows; ``fails_above`` lists any evidence that it does not. A line on standard error shows
    how far the search is.

    Args:
        trainable: a function or class as for ``ray.tune.Tuner``, also one made by
            ``tune.with_parameters`` or ``tune.with_resources``. Checkpoints that it reports are
            kept while its trial runs, or as ``run_config`` and ``keep`` say.
        values: increasing positive integers to choose from, such as ``range(1, 513)``.
        mode: ``min`` where a smaller metric is better, as for a loss.
        bounds: smallest and largest possible metric, None where there is none: they spare seeds
            that could not change a verdict.
        confirm_seeds: fresh seeds on which the threshold must pass too; where it does not, that
            value fails and the search goes on. The smallest value to pass may just be lucky.
        store: a file of scores. A search that is run again with the same trainable, config and stop
            goes on from it. Changes in what the trainable calls or reads are not noticed.
        guess: where to start; the middle of the values if not given.
        slots: trials that run at once; as many as Ray has room for if not given.
        resources: of one trial, as for ``ray.tune.with_resources``; if not given, what the
            trainable asks for itself, or one CPU.
        on_error: what follows if a trial raises, reports no number (text is none), or dies three
            times. ``stop``: the search ends there. ``fail``: the trial's value fails, and a pass is
            also looked for below it, since it may be the large values that raise. Either way the
            errors are in the result, and the next run tries again.
        stop: ends a trial once a reported number is reached, such as
            ``{"training_iteration": 10}``; for classes that do not end by themselves.
        seed_key: the seed's name in the config, such as ``random_state``.
        run_config: as for ``ray.tune.Tuner``: where trials are stored and logged, callbacks, which
            checkpoints are kept, how often a trial is retried. Tune's own output is off;
            ``verbose=0`` hides the line of this search too.
        callbacks: more callbacks, for when nothing else of a ``run_config`` is needed.
        keep: ``threshold``: the checkpoints of the value that is found are kept and returned, those
            of others deleted.
        speculate: let idle slots train what may be needed next; ``ahead`` counts what was not
            needed in the end. If off, only what is needed is trained: for use where each training
            costs money.

    Raises:
        ValueError: bad arguments, a metric that is never reported or outside its bounds, a store
            of another search, or resources that Ray does not have.
        RuntimeError: there is no Ray to run on, or this process is a Ray client (``ray://``).
    """
    given = locals()
    others = given.pop("others")
    for name in others.keys() & Question.model_fields.keys():
        raise ValueError(f"{name}: ask find_thresholds")
    return _search(**given, **others).thresholds[0]


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
    **options: Any,
) -> Thresholds:
    """The threshold of every setting of a grid, found in one pool of trials, and the best one.

    A trial's config is ``config`` with the setting, ``axis`` and ``seed_key`` set. All else is as
    in ``find_threshold``; an error under ``on_error="stop"`` ends the search of its setting alone.
    A store can be used with another grid too.

    Args:
        over: the values of each name, such as ``{"depth": [1, 2, 4]}``; every combination is a
            setting.
        cost: what a value costs at a setting, ``cost(value, setting)``: a positive number that
            does not fall as the value grows. The best setting costs the least at its threshold.
        keep_within: with a cost, search a setting only up to this share above the best one's cost,
            or up to one value above those that cost no more than the best; a setting whose
            threshold lies beyond is ``pruned``. If not given, every setting's threshold is found.

    Raises:
        ValueError: as for ``find_threshold``; a setting listed twice; a cost that falls or is not
            positive; ``keep_within`` without a cost.
    """
    given = locals()
    options = given.pop("options")
    if isinstance(over, Mapping) and not over:
        raise ValueError("over: give at least one name, such as over={'depth': [1, 2]}")
    return _search(**given, **options)


def _search(trainable: Trainable, **given: Any) -> Thresholds:
    asked = {name: given[name] for name in given.keys() & Question.model_fields.keys()}
    how = OF_THE_RUN | {name: given[name] for name in given.keys() - asked.keys()}
    question = Question.checked(**asked)
    if not question.metric:
        raise ValueError("metric: missing; give the name of a number that the trainable reports")
    _check(trainable, how)
    config, store = {} if how["config"] is None else how["config"], how.pop("store")
    how["callbacks"] = () if how["callbacks"] is None else how["callbacks"]
    question.check_config(config)
    about: dict[str, Any] = {"axis": question.axis, "metric": question.metric}
    about |= {"config": dict(config), "trainable": trainable}
    stops = {"stop": how["stop"], "run_config.stop": getattr(how["run_config"], "stop", None)}
    if all(stops.values()):
        raise ValueError("stop: run_config has one too; give one of the two")
    for name, one in stops.items():
        if one:  # the state of any other object, such as a Stopper, changes as it runs
            is_plain = isinstance(one, Mapping) or hasattr(one, "__qualname__")
            about[name] = one if is_plain else type(one)
    about |= {"seed_key": question.seed_key} if question.seed_key != "seed" else {}
    search = SettingSearch(question, ScoreFile(store, about))
    if not how.pop("speculate"):
        search.portfolio.look_ahead = 0
    if search.portfolio.is_done:
        return search.result()
    from rgr_dist.search.tune.trials import run

    try:
        with search.kept.held():
            found = run(search, trainable, **how)
    except KeyboardInterrupt:
        resume = f"run it again to go on from {store}" if store else "give store=… to keep them"
        known = len(search.kept.scores)
        raise KeyboardInterrupt(f"{known} trials are known; {resume}") from None
    if search.ignores_seeds:
        warnings.warn(
            f"all seeds of a value score the same: does the trainable use "
            f"config[{question.seed_key!r}]?",
            stacklevel=3,
        )
    return found


def _check(trainable: Any, how: Mapping[str, Any]) -> None:
    """Refuse arguments that make no sense here, if they are not part of the question."""
    for name in how.keys() - OF_THE_RUN:
        if name in ELSEWHERE:
            raise ValueError(f"{name}: {ELSEWHERE[name]}")
        raise TypeError(f"find_threshold has no argument {name!r}")
    is_class = isinstance(trainable, type)
    is_tunes = is_class and any(
        base.__name__ == "Trainable" and base.__module__.startswith("ray.tune")
        for base in trainable.__mro__
    )
    if not callable(trainable) or (is_class and not is_tunes):
        raise ValueError(
            f"trainable: give a function of a config or a class of ray.tune.Trainable, "
            f"not {quoted(trainable)}"
        )
    keep = how["keep"]
    check_slots("slots", how["slots"])
    if keep is not None and not (isinstance(keep, str) and keep == "threshold"):
        raise ValueError(f"keep: give 'threshold', or nothing, not {quoted(keep)}")
    if how["run_config"] is not None and not hasattr(how["run_config"], "storage_path"):
        raise ValueError(f"run_config: give a tune.RunConfig, not {quoted(how['run_config'])}")
    if not isinstance(how["speculate"], bool):
        raise ValueError(f"speculate: give True or False, not {quoted(how['speculate'])}")
    stop = {} if how["stop"] is None else how["stop"]
    if not isinstance(stop, Mapping):
        raise ValueError(f"stop: give names and numbers, not {quoted(stop)}")
    for key, value in stop.items():
        if not isinstance(value, int | float) or not -math.inf < value < math.inf:
            raise ValueError(f"stop: {key}: give a finite number, not {quoted(value)}")
