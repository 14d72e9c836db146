"""The command line ``rgr``: turns arguments into calls."""

from __future__ import annotations

import atexit
import io
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rgr_dist.cli import comparing, prepare, results, running, theory
from rgr_dist.cli.options import EXIT_BAD_INPUT, EXIT_INTERRUPTED, say_error
from rgr_dist.faults import EXIT_BROKEN, RunBroken, UserError

TOGETHER = 1.0
"""Seconds after a signal within which further signals count as the same one."""
EXIT_UNREAD = 1
"""Exit status if the output is closed before all of it is written; rich uses the same."""

VERBS: dict[str, dict[Callable[..., Any], str]] = {
    "Prepare": {
        prepare.studies: "rgr studies",
        prepare.init: "rgr init mine   |   rgr init mine --layer",
        prepare.plan: "rgr plan base-grid",
    },
    "Run and check": {
        running.run: "rgr run quickstart   |   rgr run mine.yaml --store results --cpus 4",
        running.tune: "rgr tune quickstart --trials 20",
        running.verify: "rgr verify --store results",
    },
    "Look at results": {
        results.thresholds: "rgr thresholds base-grid --format json",
        results.fit: "rgr fit base-grid   |   rgr fit base-grid --at m=300,d_model=48",
        results.report: "rgr report base-grid",
        results.figures: "rgr figures base-grid --figure law --format pdf",
        comparing.compare: "rgr compare base-grid softmax",
        results.explain: "rgr explain base-grid --cell 64,16 --heads 2",
        results.runs: "rgr runs base-grid --failed   |   rgr runs base-grid --format csv",
    },
    "Theory": {theory.bounds: "rgr bounds --one-head --m 56 --d-model 16"},
}
"""The verbs in the groups and the order of ``--help``, each with a command to begin with."""


class _Groups(TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the verbs by their groups."""
        width = max(map(len, self.commands))
        for group, examples in VERBS.items():
            with formatter.section(group):
                verbs = [self.commands[verb.__name__] for verb in examples]
                said = [" ".join(str(one.help).partition("\n\n")[0].split()) for one in verbs]
                formatter.write_dl(
                    [(f"{v.name:{width}}", s) for v, s in zip(verbs, said, strict=True)]
                )


app = typer.Typer(cls=_Groups, rich_markup_mode=None, pretty_exceptions_enable=False)
for examples in VERBS.values():
    for verb, example in examples.items():
        app.command(epilog=f"Example: {example}")(verb)


def _version(asked: bool) -> None:
    if asked:
        print(f"rgr {import_module('rgr_dist').__version__}")
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
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a question mark where it lacks a sign such as ✓
    interrupt = _Interrupt(arguments)
    atexit.register(interrupt.leave)  # before Ray is imported, and so called after Ray's own
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as it is after nohup
            signal.signal(number, interrupt)
    try:
        status = call(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # its reader left: | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = EXIT_UNREAD
    except Exception:
        if interrupt.first is None:
            raise
        status = _interrupted(arguments)  # a library turned it into another error
    interrupt.status = status
    sys.exit(status)


@cache
def command() -> Any:
    """The verbs and their arguments, made once."""
    return typer.main.get_command(app)


def call(arguments: Sequence[str]) -> int:
    """Run ``rgr`` with these arguments; returns the exit status.

    0 done; 2 bad input, told in one line; 3 finished, but some runs failed; 4 Ray broke or
    stalled; 130 interrupted. What a user's file or a folder raises becomes a line here.
    """
    try:
        result: Any = command().main(list(arguments) or ["--help"], standalone_mode=False)
        if result != EXIT_INTERRUPTED:  # typer's answer to an interrupt
            return result if isinstance(result, int) else 0
    except typer.TyperException as error:
        shown = getattr(error, "format_message", error.__str__)
        said = str(shown()).replace("Value error, ", "")
        if arguments[0] == "run" and "--heads" in said:
            said += " Give --set search.heads='[1, 4]'."
        say_error(said)
        return EXIT_BAD_INPUT
    except RunBroken as error:
        say_error(f"{error};", _resume(arguments))
        return EXIT_BROKEN
    except UserError as error:
        say_error(str(error))
        return EXIT_BAD_INPUT
    except BrokenPipeError:
        raise
    except OSError as error:
        say_error(f"{error.filename or 'the output'}: {error.strerror}")
        return EXIT_BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        pass
    return _interrupted(arguments)


def _interrupted(arguments: Sequence[str]) -> int:
    """Say that the run was interrupted; returns the exit status."""
    say_error("interrupted;", _resume(arguments))
    return EXIT_INTERRUPTED


def _resume(arguments: Sequence[str]) -> str:
    return f"resume with: rgr {shlex.join(arguments)}"


class _Interrupt:
    """Ends a run on a signal: in good order on the first, which takes seconds; at once on the next.

    Of signals that come together, as when a terminal is closed, only the first counts.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self.first: float | None = None
        self.status: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first = now
            raise KeyboardInterrupt
        if now - self.first > TOGETHER:
            from rich import get_console

            get_console().show_cursor()  # which a live table hides
            os._exit(_interrupted(self._arguments))

    def leave(self) -> None:
        """After an interrupt, end a process whose Ray had not quite started.

        Threads of Ray's compiled code may run on, and would crash as Python takes down the rest.
        """
        if self.first is not None and self.status is not None:
            os._exit(self.status)
