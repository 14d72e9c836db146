"""The one way to connect to Ray: to that of this process, to a cluster, or to a new one."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.tune import PlacementGroupFactory

ANSWER_WITHIN = 5.0
"""Seconds that a cluster has to answer."""
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_AIR_NEW_OUTPUT": "0",  # the newer one prints a banner even when silent
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # it would keep an interrupt to itself
    "TUNE_MAX_PENDING_TRIALS_PG": "1000",  # it is the searcher that limits the number of trials
    "TUNE_GLOBAL_CHECKPOINT_S": "inf",  # a search goes on from its store, not from Tune
}
"""What Ray and Tune take from the environment while they serve a search."""
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Set before Ray is imported, it makes a Ray listen on 127.0.0.1 alone."""
SHORT = 16
"""Most characters of a folder that keep the path of a Ray socket in it within 107."""


class NoRay(RuntimeError):
    """There is no Ray to run on: none answers at an address, or none can be started."""


@contextmanager
def connect(
    address: str | None = None, cpus: int | None = None, log_to_driver: bool = False
) -> Iterator[None]:
    """Provide a Ray to run on.

    If this process is connected to a Ray already, that is used as it is and left running. A Ray
    that is started here has its files where nobody else can open them, asks for a token where Ray
    has one (from 2.52 on), listens on the loopback alone unless Ray was imported before, and is
    shut down at the end.

    Args:
        address: ``local`` to start one, or a cluster's: ``auto``, HOST:PORT. ``default_address()``
            if not given.
        cpus: of a Ray that is started; all by default.
        log_to_driver: show what trials print.

    Raises:
        NoRay: no cluster answers at the address, or Ray did not start.
    """
    address = address or default_address()
    starts = address == "local"
    with ExitStack() as stack:
        stack.enter_context(environment(SETTINGS | (LOOPBACK if starts else {})))
        import ray  # which sets the level of its loggers

        logger = logging.getLogger("ray")
        stack.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)
        if not is_connected():
            keep = partial(_set_sigterm, signal.getsignal(signal.SIGTERM))
            stack.callback(keep)  # Ray's end resets it
            try:
                options = stack.enter_context(_own(cpus)) if starts else {"address": address}
                if address not in ("local", "auto"):  # Ray alone would try for minutes
                    host, _, port = address.rpartition(":")
                    socket.create_connection((host, int(port)), timeout=ANSWER_WITHIN).close()
                stack.callback(ray.shutdown)
                ray.init(log_to_driver=log_to_driver, configure_logging=False, **options)
            except Exception as error:  # of any kind, also plain Exception
                said = f"{type(error).__name__}: {error}"
                raise NoRay(
                    f"Ray did not start: {said}" if starts else
                    f"{address}: no Ray cluster answers there ({said}); valid: local, or auto or "
                    "HOST:6379 on a node of a running cluster"
                ) from error  # fmt: skip
            finally:
                keep()  # Ray's start replaces it
        yield


@contextmanager
def _own(cpus: int | None) -> Iterator[dict[str, Any]]:
    """Options of a Ray that is started here, with a folder and a token for it.

    The token's variable stays set: Ray's compiled code reads it only once, and a Ray started later
    in this process has to ask for the same token.
    """
    given = any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    if not given and not (Path.home() / ".ray/auth_token").is_file():  # where Ray would make one
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    place = tempfile.gettempdir() if len(tempfile.gettempdir()) <= SHORT else "/tmp"
    place = os.environ.get("RAY_TMPDIR") or place
    with tempfile.TemporaryDirectory("", "rgr-", place, ignore_cleanup_errors=True) as folder:
        yield {
            "address": "local",
            "num_cpus": cpus,
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
            "_temp_dir": f"{folder}/ray",  # which Ray opens to everybody, in a private folder
        }


def _set_sigterm(handler: Any) -> None:
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def default_address() -> str:
    """The cluster that RAY_ADDRESS names, as in a job that was submitted to it; else ``local``."""
    return os.environ.get("RAY_ADDRESS") or "local"


def is_connected() -> bool:
    """Whether this process is connected to a Ray already."""
    return "ray" in sys.modules and bool(sys.modules["ray"].is_initialized())


def fits(resources: Mapping[str, float] | PlacementGroupFactory) -> int:
    """How many trials with such resources Ray has room for at once; 0 if not even for one."""
    import ray

    asked: Any = getattr(resources, "required_resources", resources)
    held = ray.cluster_resources() if ray.is_initialized() else {}
    there = {name.lower(): amount for name, amount in held.items()}  # users say cpu, or CPU
    room = [there.get(name.lower(), 0) / asked[name] for name in asked if asked[name]]
    return int(min(room, default=1))


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, and restore them at the end."""
    before = {name: os.environ.pop(name, None) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
