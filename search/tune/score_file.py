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

    Its first line has a digest of each, by content: a trainable's instructions, with what they use
    of its globals, closure, defaults and object; the classes and modules behind it. What is
    installed is taken by name, and what a trainable reads from files is not seen.

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
        of = {"trainable": trainable, "config": sorted((config or {}).items()), "stop": stop}
        try:
            self.about: dict[str, str] = {name: digest(one) for name, one in of.items()}
        except ValueError as error:
            raise ValueError(f"store: {error}; leave store out") from error

    def read(self, **names: str) -> list[Score]:
        """The scores that the file holds; a line that was cut off holds none.

        Args:
            names: of the axis, the metric and the seed, which the file must share.

        Raises:
            ValueError: it holds scores of something else.
        """
        self.about |= names
        if not self.path.exists() or not (text := self.path.read_text(errors="replace")):
            return []
        first, *lines = text.splitlines()
        about, known = _object(first), self.about
        if changed := [name for name in known if about.get(name) != known[name]]:
            raise ValueError(
                f"store: {self.path} holds scores of another {changed[0]}; give another file, or "
                "delete it"
            )
        scores = map(_object, lines)
        return [Score(**one) for one in scores if one.keys() == set(Score._fields)]

    def add(self, value: Any, seed: int, score: float) -> None:
        """Write a score.

        Raises:
            OSError: it cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+") as file:
            size = file.seek(0, 2)
            lines = [] if size else [self.about]
            file.seek(max(0, size - 1))
            cut = "\n" if size and file.read() != "\n" else ""  # of a process that was killed
            lines.append(Score(value, seed, score)._asdict())
            file.write(cut + "".join(json.dumps(line) + "\n" for line in lines))


def _object(line: str) -> dict[str, Any]:
    """What a line holds; nothing if it is no object of JSON."""
    try:
        held = json.loads(line)
    except ValueError:
        return {}
    return held if isinstance(held, dict) else {}
