"""Scores in a plain file, one JSON line each: what a search needs to go on after a crash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ray.tune.registry import get_trainable_cls

from rgr_dist.search.tune.identity import digest


class ScoreFile:
    """A file of the scores of one trainable with one config, which refuses those of another.

    Its first line has a digest of each by content, as ``identity`` takes it.

    Args:
        path: the file; made if it does not exist.
        trainable: what is trained: a function or class, or the name by which Tune knows it.
        config: what all trials share, such as a Tuner's ``param_space``.
        stop: the ``stop`` of a ``RunConfig``.
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
        self.about = {name: digest(one) for name, one in of.items()}

    def read(self, axis: str, metric: str, seed_key: str) -> list[tuple[Any, int, float]]:
        """The value, seed and score of each line; one that was cut off holds none.

        Raises:
            ValueError: the file holds scores of something else.
        """
        self.about |= {"axis": axis, "metric": metric, "seed_key": seed_key}
        if not self.path.exists() or not (text := self.path.read_text(errors="replace")):
            return []
        held: list[Any] = []
        for line in text.splitlines():
            with suppress(ValueError):
                held.append(json.loads(line))
        about = held[0] if held and isinstance(held[0], dict) else {}
        if changed := [name for name, one in self.about.items() if about.get(name) != one]:
            raise ValueError(
                f"store: {self.path} holds scores of another {changed[0]}; give another file"
            )
        return [(value, seed, score) for value, seed, score in held[1:]]

    def add(self, value: Any, seed: int, score: float) -> None:
        """Write a score."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            first = "" if file.tell() else json.dumps(self.about)
            # The break comes first, as a process that was killed may have cut a line off.
            file.write(first + "\n" + json.dumps([value, seed, score]))
