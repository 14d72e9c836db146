"""Scores in a plain file, one JSON line each: what a search needs to go on after a crash."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import pickle
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple


class Score(NamedTuple):
    """The score of one seed at one value of the axis."""

    value: int
    seed: int
    score: float


def _named(value: Any) -> Any:
    """What stands for an object in a file: the same in every process, other for another content."""
    if isinstance(value, partial):
        return {"partial": value.func, "arguments": [list(value.args), value.keywords]}
    try:
        if callable(value) and hasattr(value, "__qualname__"):
            with suppress(OSError, TypeError):  # typed into a console, or compiled
                source = inspect.getsource(value)
                return f"{value.__qualname__} {_digest(source.encode())}"
        return f"{type(value).__qualname__} {_digest(pickle.dumps(value, protocol=5))}"
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise ValueError(f"config: {value!r} cannot be kept in a file: {error}") from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


class ScoreFile:
    """A file that grows by a line for each score; its first line says what was measured.

    A line that a crash cut short is ignored, and written over by the next.

    Args:
        path: the file; made with the first score. None keeps scores in memory alone.
        about: what the scores depend on. What JSON cannot hold is named by its content: a function
            or class by its name and source, any other object by its type and a digest.

    Raises:
        ValueError: the file holds scores of something else, or an object has no content to name.
    """

    def __init__(self, path: str | Path | None, about: Mapping[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.about = json.loads(json.dumps(dict(about), default=_named))
        self.scores: list[Score] = []
        if self.path is None or not self.path.exists():
            return
        whole, _, torn = self.path.read_bytes().rpartition(b"\n")
        lines = [json.loads(line) for line in whole.splitlines()]
        if lines and lines[0] != self.about:
            raise ValueError(
                f"{self.path} holds scores of {json.dumps(lines[0])}, not of "
                f"{json.dumps(self.about)}; give another file"
            )
        self.scores = [Score(**line) for line in lines[1:]]
        if torn:
            os.truncate(self.path, len(whole) + bool(whole))

    def add(self, value: int, seed: int, score: float) -> None:
        """Write a score, durably."""
        added = Score(value, seed, score)
        self.scores.append(added)
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [added._asdict()]
        if not self.path.exists() or not self.path.stat().st_size:
            lines.insert(0, self.about)
        with self.path.open("ab") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines).encode())
            file.flush()
            os.fsync(file.fileno())
