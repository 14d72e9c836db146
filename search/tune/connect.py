"""Connects to Ray: to the one that this process already uses, to a new one, or to a cluster."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rgr_dist.search.tune.private_folder import private_folder, short_place

if TYPE_CHECKING:
    from ray.tune import PlacementGroupFactory

ATTEMPTS = 3
"""Times to try a ray:// address, whose server starts only when a client comes and can be late."""
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
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Set to 0 to say that no clusters are possible: Ray then takes 127.0.0.1 as its address."""


class NoRay(RuntimeError):
    """There is no Ray to run on: none answers at an address, or none may or can be started."""


@contextmanager
def connect(
    address: str | None = None, cpus: int | None = None, log_to_driver: bool = False
) -> Iterator[None]:
    """Provide a Ray to run on.

    If this process is connected to a Ray already, that is used as it is and left running. A Ray
    that is started here listens on the loopback alone, requires a token, keeps its files where
    nobody else can open them, and is shut down at the end.

    Args:
        address: ``local`` to start one, or a cluster's: ``auto``, HOST:PORT, ray://HOST:PORT.
            ``default_address()`` if not given.
        cpus: of a Ray that is started; all by default.
        log_to_driver: show what trials print.

    Raises:
        NoRay: no cluster answers at the address, or no Ray may or can be started.
    """
    address = address or default_address()
    is_local = address == "local"
    with environment(SETTINGS | ({LOOPBACK: "0"} if is_local else {})), _silent():
        is_unasked = is_connected() and address == default_address()
        if not is_local and address != "auto" and not is_unasked:
            _check_reachable(address)
        if is_connected():
            yield
        elif is_local:
            with private_folder(short_place()) as folder, _shut_down():
                _start(folder, cpus, log_to_driver)
                yield
        else:
            with _shut_down():
                _join(address, log_to_driver)
                yield


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
    there = ray.cluster_resources() if ray.is_initialized() else {}
    known = {name: name.upper() if name.lower() in ("cpu", "gpu") else name for name in asked}
    room = [there.get(known[name], 0) / asked[name] for name in asked if asked[name]]
    return int(min(room, default=1))


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, and restore them at the end."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _silent() -> Iterator[None]:
    """Keep the loggers of Ray and Tune silent."""
    import_module("ray")  # which sets their level

    logger = logging.getLogger("ray")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _start(folder: Path, cpus: int | None, log_to_driver: bool) -> None:
    """Start a Ray whose files are in a folder, or raise ``NoRay``."""
    mode = os.environ.get("RAY_AUTH_MODE", "token")
    if mode.lower() != "token":
        raise NoRay(
            f"RAY_AUTH_MODE={mode}: whoever can reach Ray on this machine could run code as you; "
            "unset it"
        )
    if not _has_token():
        # Otherwise Ray stores one in the home folder. The variable stays set: Ray's compiled code
        # reads it only once, and a Ray started later in this process has to require the same token.
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    with _on_the_loopback(), _sigterm_kept():
        import ray

        try:
            ray.init(
                address="local",
                num_cpus=cpus,
                include_dashboard=False,
                log_to_driver=log_to_driver,
                configure_logging=False,
                _node_ip_address="127.0.0.1",
                _temp_dir=str(folder / "ray"),  # Ray opens this folder to everybody
            )
        except Exception as error:  # of any kind, also plain Exception
            raise NoRay(f"Ray did not start: {type(error).__name__}: {error}") from error


def _has_token() -> bool:
    """Whether the user has a token, in the places that Ray documents.

    A Ray started here then requires that one: a process shows every Ray the same token, and
    clusters know the user's.
    """
    in_the_home = Path.home() / ".ray/auth_token"
    names = "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
    return any(os.environ.get(name) for name in names) or in_the_home.is_file()


def _join(address: str, log_to_driver: bool) -> None:
    """Join a cluster, or raise ``NoRay``."""
    import ray

    is_client = address.startswith("ray://")
    options: dict[str, Any] = {"log_to_driver": log_to_driver, "configure_logging": False}
    if is_client:  # a client sets the level of Ray's loggers by itself
        options = {"log_to_driver": log_to_driver, "logging_level": logging.CRITICAL}
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with _sigterm_kept():
                ray.init(address=address, **options)
            return
        except (ConnectionError, RuntimeError, ValueError) as error:
            if attempt == ATTEMPTS or not is_client:
                raise _nobody(address, error) from None


def _check_reachable(address: str) -> None:
    """Make sure that something listens at HOST:PORT; Ray alone would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise _nobody(address, "not of the form HOST:PORT")
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_WITHIN).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise _nobody(address, error) from None


def _nobody(address: str, reason: object) -> NoRay:
    source = " (RAY_ADDRESS)" if address == os.environ.get("RAY_ADDRESS") else ""
    return NoRay(
        f"{address}{source}: no Ray cluster answers there ({reason}); valid: local, "
        "auto or HOST:6379 on a node of a running cluster, or ray://HOST:10001"
    )


@contextmanager
def _on_the_loopback() -> Iterator[None]:
    """Make a Ray that is started meanwhile listen on the loopback, even if it is imported already.

    ``LOOPBACK`` does that for a Ray that is imported later. One imported before has already read
    that variable into a constant, which is set here: the one private name used. If it is missing,
    other machines can reach such a Ray, but need its token.
    """
    constants: Any = sys.modules.get("ray._private.ray_constants")
    before = getattr(constants, "ENABLE_RAY_CLUSTER", False)
    if before:
        constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        if before:
            constants.ENABLE_RAY_CLUSTER = before


@contextmanager
def _shut_down() -> Iterator[None]:
    """Shut Ray down at the end, which takes a few seconds longer if it has died."""
    import ray

    try:
        yield
    finally:
        with _sigterm_kept():
            ray.shutdown()


@contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Restore the SIGTERM handler, which Ray's start replaces and its end resets, as documented."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)
