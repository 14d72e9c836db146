"""Scores in a plain file, one JSON line each: what a search needs to go on after a crash."""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import io
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from rgr_dist.search.tune.one_line import escaped, one_line

TUNE_WRAPPERS = "ray.tune.trainable.util"


class Score(NamedTuple):
    """The score of one seed at one value of the axis, at a setting as JSON holds it."""

    value: int
    seed: int
    score: float
    setting: dict[str, Any] = {}  # noqa: RUF012 (never written to)


def _score(line: Any) -> Score:
    """The score that a line holds; a ValueError if it holds none."""
    if type(line) is not dict or not {"value", "seed", "score"} <= line.keys() <= {*Score._fields}:
        raise ValueError(f"no score: {json.dumps(line)}")
    made = Score(**line)
    wanted = ((int,), (int,), (int, float), (dict,))
    are_typed = all(type(part) in kinds for part, kinds in zip(made, wanted, strict=True))
    is_huge = type(made.score) is int and abs(made.score) > sys.float_info.max
    if not are_typed or is_huge or made.value < 1 or made.seed < 0:
        raise ValueError(f"no score: {json.dumps(line)}")
    return made


def _once(keys: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a file's line; a ValueError if it gives a key twice."""
    if len(found := dict(keys)) < len(keys):
        raise ValueError(f"a key twice: {json.dumps([key for key, _ in keys])}")
    return found


def _named(value: Any) -> Any:
    """What stands for an object in a file: equal in every process, different if the content is."""
    if isinstance(value, bytes | bytearray):
        return _digest(bytes(value))
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(one, default=_named) for one in value)
    if isinstance(value, partial):
        return {"partial": value.func, "arguments": [list(value.args), value.keywords]}
    if getattr(value, "__module__", None) == TUNE_WRAPPERS:
        return _unwrapped(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__qualname__} {_digest(_code(value).encode())}"
    try:
        if (torch := sys.modules.get("torch")) and isinstance(value, torch.Tensor):
            torch.save(value.detach().cpu().clone(), held := io.BytesIO())  # else its address too
            return f"Tensor {_digest(held.getvalue())}"
        made, *parts = value.__reduce_ex__(4)  # what rebuilds it, and its state
        content = [list(part) if isinstance(part, Iterator) else part for part in parts]
        text = json.dumps([made, content], default=_named)
    except (TypeError, AttributeError, ValueError, RuntimeError) as error:
        raise ValueError(f"config: {value!r} cannot be kept in a file: {error}") from None
    return f"{type(value).__qualname__} {_digest(text.encode())}"


def _code(value: Any) -> str:
    """The source of a function or class; its instructions where it was typed into a console."""
    with suppress(OSError, TypeError):
        return inspect.getsource(value)
    code = getattr(value, "__code__", value if inspect.iscode(value) else None)
    if code is None:  # compiled
        return f"{value.__module__}.{value.__qualname__}"
    constants = [_code(one) if inspect.iscode(one) else repr(one) for one in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _unwrapped(trainable: Any) -> Any:
    """The class that ``tune.with_resources`` has wrapped: no score depends on its resources.

    Raises:
        ValueError: ``tune.with_parameters`` has wrapped it, and only Ray can get at the data.
    """
    if isinstance(trainable, type) and "setup" not in vars(trainable):
        return trainable.__bases__[0]
    raise ValueError(
        "store: what tune.with_parameters holds cannot be named in a file; give it in config, or "
        "by functools.partial"
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


class ScoreFile:
    """A file that grows by a line for each score; its first line says what was measured.

    A line that a crash cut short is ignored, and overwritten by the next.

    Args:
        path: the file, which ``held`` creates; None keeps scores in memory only.
            In a search over a grid of settings, each line names its setting.
        about: what the scores depend on. What JSON cannot hold is named by its content: a function
            or class by its name and source, any other object by its type and a digest.

    Raises:
        ValueError: the file holds scores of something else or is no file of scores, or an object
            cannot be named by its content; the path is none.
    """

    def __init__(self, path: str | Path | None, about: Mapping[str, Any]) -> None:
        if not isinstance(path, str | os.PathLike | None) or "\0" in str(path):
            raise ValueError(f"store: give the path of a file, not {path!r}")
        self.path = None if path is None else Path(path)
        self.scores: list[Score] = []
        self._file: IO[bytes] | None = None
        self._size = self._whole = 0  # bytes that were read, and those of whole lines
        if self.path is None:
            return
        self.about = json.loads(json.dumps(dict(about), default=_named))
        try:
            if not self.path.exists():
                return
            if not self.path.is_file():
                raise ValueError("a folder, a pipe or a device")
            content = self.path.read_bytes()
            whole, end, _ = content.rpartition(b"\n")
            if not whole and not json.dumps(self.about).encode().startswith(content):
                raise ValueError("it does not begin with what was measured")
            written = filter(bytes.strip, whole.splitlines())  # an editor may leave empty lines
            lines = [json.loads(line, object_pairs_hook=_once) for line in written]
            scores = [_score(line) for line in lines[1:]]
            self.check_agree(scores)
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{self} is no file of scores ({one_line(str(error))}); give another file"
            ) from None
        if lines and lines[0] != self.about:
            raise ValueError(
                f"{self} holds scores of {json.dumps(lines[0])}, not of "
                f"{json.dumps(self.about)}; give another file"
            )
        self.scores = scores
        self._size, self._whole = len(content), len(whole + end) if lines else 0

    def __str__(self) -> str:
        """Its path, fit for a message."""
        return escaped(str(self.path))

    @classmethod
    def check_agree(cls, scores: Sequence[Score]) -> None:
        """Make sure that no training has two different scores.

        Raises:
            ValueError: one has.
        """
        known: dict[tuple[str, int, int], float] = {}
        for value, seed, score, setting in scores:
            first = known.setdefault((cls.key(setting), value, seed), score)
            if first != score and not (math.isnan(first) and math.isnan(score)):
                raise ValueError(f"two scores of {value}, seed {seed}: {first} and {score}")

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the open file, since a Tuner is saved together with its searcher."""
        return {**self.__dict__, "_file": None}

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the file as the one search that writes it; does nothing if it is held already.

        Raises:
            ValueError: it cannot be made, or another search is writing it, or has written it since
                it was read.
        """
        if self.path is None or self._file is not None:
            yield
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            opened = self.path.open("ab")
        except OSError as error:
            raise ValueError(f"store: {self} cannot be made: {error.strerror}") from None
        with opened as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    f"{self}: another search writes it; wait for it, or give another file"
                ) from None
            except OSError:
                pass  # a file system without locks
            if file.seek(0, os.SEEK_END) != self._size:
                raise ValueError(f"{self}: another search has written it; run this one again")
            file.seek(file.truncate(self._whole))
            self._file = file
            try:
                yield
            finally:
                self._size = self._whole = file.tell()
                self._file = None

    @staticmethod
    def key(setting: Mapping[str, Any]) -> str:
        """The name of a setting, equal for one read from a file."""
        return json.dumps(dict(setting), default=_named, sort_keys=True)

    def add(
        self, value: int, seed: int, score: float, setting: Mapping[str, Any] | None = None
    ) -> None:
        """Write a score, durably."""
        added = Score(value, seed, score, json.loads(self.key(setting or {})))
        self.scores.append(added)
        line = added._asdict()
        lines = [line if setting else {key: line[key] for key in ("value", "seed", "score")}]
        with self.held():
            if (file := self._file) is None:
                return
            if not file.tell():
                lines.insert(0, self.about)
            file.write("".join(json.dumps(line) + "\n" for line in lines).encode())
            file.flush()
            os.fsync(file.fileno())
