"""What Ray prints and logs while a study runs: kept from the terminal, and saved if Ray breaks."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Self, TextIO


class RayOutput:
    """Takes what Ray's compiled code prints and what its loggers say; a context manager.

    Standard error is turned to a file without a name, which leaves nothing behind; Python's own
    ``sys.stderr`` still shows. Where that is another file already, as in a notebook, nothing is
    turned.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._stderr: Any = None
        self._handler: logging.StreamHandler[TextIO] | None = None
        self._printer: Callable[..., None] = print

    def __enter__(self) -> Self:
        """Take everything from now on; Ray must be imported, whose loggers are there then."""
        from ray._private import worker

        self._file = _nameless_file()
        self._handler = logging.StreamHandler(_written_to(self._file.fileno()))
        logger = logging.getLogger("ray")
        logger.handlers, logger.propagate = [self._handler], False
        logger.setLevel(logging.WARNING)
        if _is_standard_error(sys.stderr):
            sys.stderr.flush()
            self._stderr, sys.stderr = sys.stderr, _written_to(2)
            os.dup2(self._file.fileno(), 2)
        self._printer = worker.print_worker_logs
        worker.print_worker_logs = self._print  # of raylets, in a thread, to standard output
        return self

    def __exit__(self, *error: object) -> None:
        """Take nothing more; whoever writes to ``sys.stderr`` just now, in a thread, can go on."""
        from ray._private import worker

        worker.print_worker_logs = self._printer
        if self._handler is not None:
            logging.getLogger("ray").removeHandler(self._handler)
            self._handler.stream.close()
        if self._stderr is not None:
            shown, sys.stderr = sys.stderr, self._stderr
            shown.flush()
            os.dup2(shown.fileno(), 2)
        if self._file is not None:
            self._file.close()

    def _print(self, data: Any, print_file: Any, ignore_prefix: bool = False) -> None:
        if self._handler is not None and not self._handler.stream.closed:
            self._printer(data, self._handler.stream, ignore_prefix)

    def save(self, error: BaseException, folder: Path | None) -> Path | None:
        """Write down an error and what Ray printed.

        Args:
            folder: where to, if it can be written; else the temporary folder.

        Returns:
            The file; None if none could be written.
        """
        text = "".join(traceback.format_exception(error)) + "\n\nWhat Ray printed:\n\n"
        if self._file is not None:
            self._file.seek(0)
            text += self._file.read().decode(errors="replace")
        now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        for place in (folder, Path(tempfile.gettempdir())):
            if place is not None:
                with suppress(OSError):
                    place.mkdir(exist_ok=True)
                    log = place / f"rgr-ray-{now}-{os.getpid()}.log"
                    log.write_text(text)
                    return log
        return None


def _nameless_file() -> IO[bytes]:
    """A file that is gone once it is closed: in memory, where a full disk does not matter."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("rgr"), "w+b")
    return tempfile.TemporaryFile()


def _written_to(file: int) -> TextIO:
    return os.fdopen(os.dup(file), "w", buffering=1, encoding="utf-8", errors="backslashreplace")


def _is_standard_error(stream: Any) -> bool:
    try:
        return bool(stream.fileno() == 2)
    except (AttributeError, OSError, ValueError):
        return False
