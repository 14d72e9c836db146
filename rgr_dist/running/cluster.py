"""Connecting to Ray: one of our own on this machine, or a running cluster."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rgr_dist.faults import LAST_RESORT, UserError
from rgr_dist.running.broken import told_in_one_line
from rgr_dist.running.idle_processes import NO_IDLE_WORKERS, without_idle_processes
from rgr_dist.running.leftovers import (
    claimed_session,
    give_up_session,
    remove_leftovers,
    remove_session,
    session_folder,
)
from rgr_dist.running.ray_output import RayOutput

ATTEMPTS = 3
"""Times to try a ray:// address."""
NOTHING_TO_IMPORT = Path(__file__).parent.parent / "studies"
"""A folder that holds no Python file."""
CONNECT_WITHIN = 5.0
"""Seconds that a cluster has to answer."""


class ClusterError(UserError, RuntimeError):
    """There is no Ray cluster to run on; the message says where it was looked for."""


@contextmanager
def connect(
    address: str,
    cpus: int | None = None,
    gpus: float = 0.0,
    meanwhile: Callable[[], None] | None = None,
    ended_by: Executor | None = None,
    log_to: Path | None = None,
) -> Iterator[int]:
    """A Ray to run on, and how many probes it can run at once.

    What Ray prints meanwhile is kept from the terminal.

    Args:
        address: ``local`` starts one; else that of a running cluster.
        cpus: at most so many slots; all by default.
        gpus: share of a GPU that a slot needs.
        meanwhile: called in another thread while Ray starts; must not import Ray.
        ended_by: ends Ray while the caller goes on, which takes a second; by default it waits.
        log_to: folder for what Ray printed, should it break; the temporary folder by default.

    Raises:
        ClusterError: no Ray cluster answers at the address.
        RunBroken: Ray did not start, died or failed; the message names a log.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    os.environ["TUNE_DISABLE_SIGINT_HANDLER"] = "1"
    os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = "inf"  # a study goes on from its store, not from Tune
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"  # the newer one prints a banner even when silent
    # In a notebook, Ray and its tqdm ask for widgets that nothing here draws with.
    logging.getLogger("ray.widgets").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", message="IProgress not found")
    import ray

    # Ray warns that its own default, a token, is in use.
    token_setup = "ray._private.authentication.authentication_token_setup"
    logging.getLogger(token_setup).setLevel(logging.ERROR)
    logging.getLogger("ray.client_builder").setLevel(logging.WARNING)
    # Tune logs a missing result.json for each trial, since its loggers are off, and a
    # traceback for each failure, which the study keeps as a row and tells at the end.
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)

    if address not in ("local", "auto"):
        _check_reachable(address)
    from ray._common.utils import get_default_ray_temp_dir

    remove_leftovers(Path(get_default_ray_temp_dir()))
    if ray.is_initialized():
        with told_in_one_line(RayOutput.latest or RayOutput(), log_to):
            yield slots_of(ray.cluster_resources(), cpus, gpus)
        return
    output = RayOutput()
    output.take(log_to)
    is_own = address == "local"
    try:
        with told_in_one_line(output, log_to):
            _start(address, cpus, meanwhile)
            yield slots_of(ray.cluster_resources(), cpus, gpus)
    except KeyboardInterrupt:
        output.is_cut_short = bool(LAST_RESORT)  # else this process, a notebook's, goes on
        raise
    finally:
        if ended_by is None or output.is_cut_short:
            _end(output, is_own)
        else:
            gc.collect()
            gc.disable()
            ended_by.submit(_end, output, is_own)


def _end(output: RayOutput, is_own: bool) -> None:
    """End Ray, or leave the cluster.

    In a thread of its own, no garbage may be collected meanwhile: what Tune leaves in circles tells
    Ray of its end, and a Ray that is about to end then ends the process.
    """
    import ray

    try:
        session = session_folder() if is_own else None
        if not output.is_cut_short:  # else it has been killed, or dies with this process
            with _sigterm_kept():
                ray.shutdown()
        if session is not None:
            if output.is_cut_short:
                remove_session(session)
            else:
                give_up_session(session)
            remove_leftovers(session.parent)
    finally:
        output.give_back()
        gc.enable()


def _start(address: str, cpus: int | None, meanwhile: Callable[[], None] | None) -> None:
    """Start a Ray, or join one.

    Raises:
        ClusterError: no Ray cluster answers at the address.
    """
    import ray

    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if address.startswith("ray://"):
        options = {}
    if address == "local":
        _check_token()
        # A token of its own keeps Ray from writing one under the home folder.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        options |= {"num_cpus": cpus, "include_dashboard": False}
        options |= {"_system_config": NO_IDLE_WORKERS}
    beside = threading.Thread(target=meanwhile, daemon=True)
    beside.start()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            # Ray would put the working directory first on every worker's path, where a file
            # named search.py would hide our package of that name.
            with (
                contextlib.chdir(NOTHING_TO_IMPORT),
                _set_for_start(address == "local"),
                _sigterm_kept(),
                without_idle_processes(),
                claimed_session(),
            ):
                ray.init(address=address, **options)
            break
        except (ConnectionError, RuntimeError, ValueError) as error:
            if address == "local":
                raise
            # A client's server is started when the client comes, and can be late on a busy head.
            if attempt == ATTEMPTS or not address.startswith("ray://"):
                raise _no_cluster(address, str(error)) from None
    beside.join()


@contextmanager
def _set_for_start(is_own: bool) -> Iterator[None]:
    """Set what Ray has no argument for while it starts.

    A Ray of our own listens on the loopback alone if it takes that for its node's address; given as
    an argument, that is replaced by the machine's own address wherever clusters are possible. And
    Ray must not take SIGTERM: it would end this process before that says how to resume.
    """
    from ray._private import ray_constants, utils

    possible, takes_sigterm = ray_constants.ENABLE_RAY_CLUSTER, utils.set_sigterm_handler
    ray_constants.ENABLE_RAY_CLUSTER = possible and not is_own
    utils.set_sigterm_handler = lambda handler: None
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = possible
        utils.set_sigterm_handler = takes_sigterm


@contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Put back what SIGTERM does, in any thread.

    Ray's compiled code takes the signal as it starts, and leaves it to end the process as it ends.
    """
    get, put = ctypes.pythonapi.PyOS_getsig, ctypes.pythonapi.PyOS_setsig
    get.restype = put.restype = ctypes.c_void_p
    put.argtypes = [ctypes.c_int, ctypes.c_void_p]
    before = get(signal.SIGTERM)
    try:
        yield
    finally:
        put(signal.SIGTERM, before)


def _check_token() -> None:
    """Make sure that a Ray of our own asks for its token, whoever reaches it on this machine.

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
