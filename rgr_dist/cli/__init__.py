"""The command line ``rgr``: arguments to calls.

``running`` has the verbs that plan and run a study, ``watching`` the page that shows one as it
runs, ``results`` those that tell what it found, ``tuning`` the one that tunes its protocol,
``checking`` the one that checks a store, ``construct`` the one that makes weights without training,
``theory`` those that hold theory against data.
"""

from __future__ import annotations

import errno
import gc
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from rgr_dist.cli import checking, construct, results, running, theory, tuning, watching
from rgr_dist.cli.options import (
    EXIT_BAD_INPUT,
    EXIT_BROKEN,
    EXIT_INTERRUPTED,
    error_line,
    nowhere,
    say_error,
)
from rgr_dist.faults import (
    LAST_RESORT,
    RESUME,
    RunBroken,
    UserError,
    dismiss_witnesses,
)

TOGETHER = 1.0
"""Seconds after a signal in which others are the same one."""
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EPIPE)
"""Errors of an output that takes no more; those of a file name it, or are told by the store."""
EXIT_UNREAD = 1
"""Exit status where the output was closed before all of it was written: rich's too."""
SHOW_CURSOR = b"\x1b[?25h\n"
"""Tells a terminal to show the cursor, which a live table hides."""

app = typer.Typer(name="rgr", pretty_exceptions_enable=False)

EXAMPLES: dict[Callable[..., Any], str] = {
    running.studies: "rgr studies",
    running.plan: "rgr plan base-grid",
    running.run: "rgr run quickstart   |   rgr run mine.yaml --out results --cpus 4",
    running.status: "rgr status quickstart",
    watching.watch: "rgr watch quickstart",
    results.thresholds: "rgr thresholds base-grid --format json",
    results.runs: "rgr runs base-grid --failed   |   rgr runs mine.yaml --format csv > runs.csv",
    results.fit: "rgr fit base-grid",
    results.predict: "rgr predict --m 300 --d-model 48",
    results.report: "rgr report base-grid   |   rgr report base-grid softmax",
    results.explain: "rgr explain base-grid --cell m=64,d_model=16 --heads 2",
    checking.verify: "rgr verify --out results",
    tuning.tune: "rgr tune quickstart --cell m=64,d_model=16 --trials 20",
    construct.construct: "rgr construct --algorithm ours --m 64 --d-model 16 --find 0.99",
    theory.bounds: "rgr bounds --m 256 --d-model 32",
    theory.geometry: "rgr geometry vectors.npy",
    theory.all_pairs: "rgr all-pairs quickstart --cell m=64,d_model=16",
}
"""The verbs in the order in which they are listed, each with a command to begin with."""

for verb, example in EXAMPLES.items():
    app.command(epilog=f"Example: {example}")(verb)


COLLECT_AFTER = 500_000
"""New objects after which garbage is looked for. What is imported makes hundreds of thousands that
stay; with Python's 700, looking through them takes a tenth of the time of a short command."""


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"rgr {version('rgr-dist')}")
        raise typer.Exit


@app.callback()
def _rgr(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="The version.")
    ] = False,
) -> None:
    """Measure how many relations an attention layer can hold."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``rgr`` and leave the process with its exit status."""
    gc.set_threshold(COLLECT_AFTER)
    for output in ("stdout", "stderr"):
        if getattr(sys, output) is None:  # it was closed before this process began
            setattr(sys, output, nowhere())
    arguments = sys.argv[1:] if arguments is None else arguments
    interrupt = _Interrupt(arguments)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as it is after nohup
            signal.signal(number, interrupt)
    LAST_RESORT[:] = [lambda broken: _leave_now(_broken(broken, arguments), EXIT_BROKEN)]
    RESUME[:] = [_resume(arguments)]
    status = call(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        status = status or _unwritten(error)
        sys.stdout = nowhere()  # what waits in the other would fail again at the end
    if status in (EXIT_INTERRUPTED, EXIT_BROKEN) or "ray" not in sys.modules:
        _leave(status)
    sys.exit(status)


def _leave(status: int) -> NoReturn:
    """Leave at once: Ray's end and pyarrow's would wait for what gives no answer, or crash.

    And to take all modules apart again takes Python a sixth of the time of a short command.
    """
    dismiss_witnesses()
    os._exit(status)


def _unwritten(error: OSError) -> int:
    """The exit status where the output could not be written; nobody reads on after ``| head``."""
    if isinstance(error, BrokenPipeError):
        return EXIT_UNREAD
    say_error(f"the output cannot be written: {error.strerror}; give it a file with room")
    return EXIT_BAD_INPUT


def call(arguments: Sequence[str]) -> int:
    """Run ``rgr`` with these arguments; returns the exit status.

    0 done; 1 the output was closed too early; 2 bad input, or an output that cannot be written,
    told in one line; 3 finished, but some runs failed; 4 what a study ran on broke half-way; 130
    interrupted.
    """
    result: Any = None
    try:
        result = _with_its_verb(arguments)(list(arguments) or ["--help"], standalone_mode=False)
        if result != EXIT_INTERRUPTED:  # typer's answer to an interrupt
            return result if isinstance(result, int) else 0
    except typer.TyperException as error:
        say_error(" ".join(_message(error).split()))
    except RunBroken as error:
        say_error(_broken(error, arguments))
        return EXIT_BROKEN
    except UserError as error:
        say_error(" ".join(str(error).split()))
    except OSError as error:
        if error.filename is not None or error.errno not in UNWRITABLE:
            raise
        return _unwritten(error)
    except (KeyboardInterrupt, typer.Abort):
        result = EXIT_INTERRUPTED
    if result == EXIT_INTERRUPTED:
        say_error(_interrupted(arguments))
        return EXIT_INTERRUPTED
    return EXIT_BAD_INPUT


def _with_its_verb(arguments: Sequence[str]) -> typer.Typer:
    """The app with the verb that is called, alone, if it is one: looking at all takes a while."""
    verb = arguments[0].replace("-", "_") if arguments else ""
    called = [
        one for one in app.registered_commands if getattr(one.callback, "__name__", "") == verb
    ]
    if not called:
        return app
    alone = typer.Typer(name="rgr", pretty_exceptions_enable=False)
    alone.callback()(_rgr)
    alone.registered_commands = called
    return alone


def _message(error: typer.TyperException) -> str:
    """What was wrong with the arguments, with the nearest valid ones where typer knows them."""
    shown = getattr(error, "format_message", error.__str__)
    return str(shown()).replace("Value error, ", "")


class _Interrupt:
    """Ends a run at a signal: at the first in good order, which takes seconds; at the next at once.

    What is stored stays stored either way; what the second leaves lying about, the next run sweeps.
    Of signals that come together, as when a terminal is closed, only the first counts.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self._first: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = now
            raise KeyboardInterrupt
        if now - self._first > TOGETHER:
            _leave_now(_interrupted(self._arguments), EXIT_INTERRUPTED)


def _leave_now(text: str, status: int) -> NoReturn:
    """Say one last line and leave, from whatever was going on."""
    dismiss_witnesses()
    with suppress(OSError):
        if sys.stdout.isatty():
            os.write(sys.stdout.fileno(), SHOW_CURSOR)
    with suppress(OSError):
        os.write(sys.stderr.fileno(), f"{error_line(text)}\n".encode())
    os._exit(status)


def _broken(error: RunBroken, arguments: Sequence[str]) -> str:
    return f"{' '.join(str(error).split())}; {_resume(arguments)}"


def _interrupted(arguments: Sequence[str]) -> str:
    return f"interrupted; {_resume(arguments)}"


def _resume(arguments: Sequence[str]) -> str:
    return f"resume with: rgr {shlex.join(arguments)}"
