"""Scores in a plain file, one JSON line each: what a search needs to go on after a crash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ray.tune.registry import get_trainable_cls

from rgr_dist.search.tune.identity import digest


class Score(NamedTuple):
    """The score of one seed at one value of the axis."""

    value: Any
    seed: int
    score: float


class ScoreFile:
    """A file of the scores of one trainable with one config, which refuses those of another.

    Its first line has a digest of each by content, as ``identity`` takes it.

    Args:
        path: the file; made if it does not exist.
        trainable: what is trained: a function or class, or the name by which Tune knows it.
        config: what all trials share, such as a Tuner's ``param_space``.
        stop: the ``stop`` of a ``RunConfig``.

    Raises:
        ValueError: something of the trainable or the config cannot be told apart.
    """

    def __init__(
        self,
        path: str | Path,
        trainable: Any,
        config: Mapping[str, Any] | None = None,
        stop: Any = None,
    ) -> None:
        self.path = Path(path)
        if isinstance(trainable, str):
            trainable = get_trainable_cls(trainable)
        of = {"trainable": trainable, "config": dict(config or {}), "stop": stop}
        try:
            self.about = {name: digest(one) for name, one in of.items()}
        except Exception as error:
            raise ValueError(f"store: content cannot be told: {error}; leave store out") from error

    def read(self, axis: str, metric: str, seed_key: str) -> list[Score]:
        """The scores that the file holds; a line that was cut off holds none.

        Raises:
            ValueError: it holds scores of something else.
        """
        self.about |= {"axis": axis, "metric": metric, "seed_key": seed_key}
        if not self.path.exists() or not (text := self.path.read_text(errors="replace")):
            return []
        about, *scores = map(_object, text.splitlines())
        if changed := [name for name, one in self.about.items() if about.get(name) != one]:
            raise ValueError(
                f"store: {self.path} holds scores of another {changed[0]}; give another file, or "
                "delete it"
            )
        return [Score(**one) for one in scores if one.keys() == set(Score._fields)]

    def add(self, value: Any, seed: int, score: float) -> None:
        """Write a score.

        Raises:
            OSError: it cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            first = "" if file.tell() else json.dumps(self.about)
            # The break comes first, as a process that was killed may have cut a line off.
            file.write(first + "\n" + json.dumps(Score(value, seed, score)._asdict()))


def _object(line: str) -> dict[str, Any]:
    """What a line holds; nothing if it is no object of JSON."""
    try:
        held = json.loads(line)
    except ValueError:
        return {}
    return held if isinstance(held, dict) else {}
