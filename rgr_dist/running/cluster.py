"""Connecting to Ray: a local one that this process starts, or a running cluster."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rgr_dist.faults import RunBroken, UserError
from rgr_dist.running.broken import reported_in_one_line
from rgr_dist.running.ray_output import RayOutput

ATTEMPTS = 3
"""Times to try a ray:// address."""
NOTHING_TO_IMPORT = Path(__file__).parent.parent / "studies"
"""A folder that holds no Python file."""
CONNECT_WITHIN = 5.0
"""Seconds that a cluster has to answer."""
NO_IDLE_WORKERS = {"prestart_worker_first_driver": False}
"""Has a local Ray start no worker before one is asked for. Otherwise it starts one for each CPU,
which imports Ray and ends unused: a trial's worker is another process."""


class ClusterError(UserError, RuntimeError):
    """There is no Ray cluster to run on; the message says where it was looked for."""


@contextmanager
def connect(
    address: str, cpus: int | None = None, gpus: float = 0.0, log_to: Path | None = None
) -> Iterator[int]:
    """A Ray to run on, and how many probes it can run at once.

    What Ray prints meanwhile is kept from the terminal. A Ray that broke is left as it is: its own
    end would wait for what has died, and its processes end with this one.

    Args:
        address: ``local`` starts one; else that of a running cluster.
        cpus: at most so many slots; all by default.
        gpus: share of a GPU that a slot needs.
        log_to: folder for what Ray printed, should it break; the temporary folder by default.

    Raises:
        ClusterError: no Ray cluster answers at the address.
        RunBroken: Ray did not start, died or failed; the message names a log.
    """
    _configure()
    import ray

    if address not in ("local", "auto"):
        _check_reachable(address)
    if ray.is_initialized():
        with reported_in_one_line(RayOutput(), log_to):
            yield slots_of(ray.cluster_resources(), cpus, gpus)
        return
    session, is_broken = None, False
    with RayOutput() as output:
        try:
            with reported_in_one_line(output, log_to):
                session = _start(address, cpus)
                yield slots_of(ray.cluster_resources(), cpus, gpus)
        except RunBroken:
            is_broken = True
            raise
        finally:
            if not is_broken:
                with _sigterm_kept():
                    ray.shutdown()
                if session is not None:
                    shutil.rmtree(session, ignore_errors=True)


def _configure() -> None:
    """Set what Ray and Tune take from the environment, and what their loggers say."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    os.environ["TUNE_DISABLE_SIGINT_HANDLER"] = "1"
    os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = "inf"  # a study goes on from its store, not from Tune
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"  # the newer one prints a banner even when silent
    # In a notebook, Ray and its tqdm ask for widgets that nothing here draws with.
    warnings.filterwarnings("ignore", message="IProgress not found")
    logging.getLogger("ray.widgets").setLevel(logging.WARNING)
    # Ray warns that its own default, a token, is in use.
    token_setup = "ray._private.authentication.authentication_token_setup"
    logging.getLogger(token_setup).setLevel(logging.ERROR)
    logging.getLogger("ray.client_builder").setLevel(logging.WARNING)
    # Tune logs a missing result.json for each trial, since its loggers are off, and a
    # traceback for each failure, which the study keeps as a row and reports at the end.
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)


def _start(address: str, cpus: int | None) -> Path | None:
    """Start a Ray, or join one; returns the folder of a local one's session.

    Raises:
        ClusterError: no Ray cluster answers at the address.
    """
    import ray

    is_local, is_client = address == "local", address.startswith("ray://")
    options: dict[str, Any] = {}
    if not is_client:
        options |= {"log_to_driver": False, "configure_logging": False}
    if is_local:
        _check_token()
        # A token of its own keeps Ray from writing one under the home folder.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        options |= {"num_cpus": cpus, "include_dashboard": False}
        options |= {"_system_config": NO_IDLE_WORKERS}
    # Ray would put the working directory first on every worker's path, where a file named
    # search.py would hide our package of that name.
    with contextlib.chdir(NOTHING_TO_IMPORT), _on_the_loopback(is_local), _sigterm_kept():
        for attempt in range(1, ATTEMPTS + 1):
            try:
                context: Any = ray.init(address=address, **options)
                break
            except (ConnectionError, RuntimeError, ValueError) as error:
                if is_local:
                    raise
                # A client's server starts when the client comes, and can be late on a busy head.
                if attempt == ATTEMPTS or not is_client:
                    raise _no_cluster(address, str(error)) from None
    return Path(context.address_info["session_dir"]) if is_local else None


@contextmanager
def _on_the_loopback(is_local: bool) -> Iterator[None]:
    """Have a local Ray listen on the loopback alone while it starts.

    It does if it takes that for its node's address; given as an argument, that is replaced by the
    machine's own address wherever clusters are possible.
    """
    from ray._private import ray_constants

    possible = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = possible and not is_local
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = possible


@contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Put back what SIGTERM does: Ray takes it as it starts, and lets it kill as it ends."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _check_token() -> None:
    """Make sure that a local Ray asks for its token, whoever reaches it on this machine.

    Raises:
        ClusterError: the environment switches that off.
    """
    mode = os.environ.get("RAY_AUTH_MODE", "token")
    if mode.lower() != "token":
        raise ClusterError(
            f"RAY_AUTH_MODE={mode}: whoever can reach Ray on this machine could run code as you; "
            "unset it, or give the --address of a cluster"
        )


def is_connected() -> bool:
    """Whether this process has a Ray already."""
    return "ray" in sys.modules and bool(sys.modules["ray"].is_initialized())


def node_memory() -> float | None:
    """Bytes that the largest living node of the cluster has for workers and objects."""
    import ray

    found = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    sizes = [node.get("memory", 0) + node.get("object_store_memory", 0) for node in found]
    return max(sizes, default=None)


def slots_of(resources: dict[str, float], cpus: int | None, gpus: float) -> int:
    """How many probes can run at once, each on one CPU and its share of a GPU."""
    slots = max(1, int(resources.get("CPU", 1)))
    slots = min(slots, cpus or slots)
    if gpus:
        slots = min(slots, int(resources.get("GPU", 0) / gpus))
        if not slots:
            raise ClusterError(
                f"--gpus {gpus:g}: Ray sees {resources.get('GPU', 0):g} GPUs; valid: 0, "
                "which trains on CPUs, or no more than there are"
            )
    return slots


def _check_reachable(address: str) -> None:
    """Make sure that something listens at HOST:PORT; Ray alone would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise _no_cluster(address, "not of the form HOST:PORT")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_WITHIN).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, str(error)) from None


def _no_cluster(address: str, reason: str) -> ClusterError:
    return ClusterError(
        f"--address {address}: no Ray cluster answers there ({reason}); valid: local, "
        "auto or HOST:6379 on a node of a running cluster, or ray://HOST:10001"
    )
