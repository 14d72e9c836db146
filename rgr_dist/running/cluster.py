"""The Ray that a study runs on: which one, how many probes it runs at once, whether it lives."""

from __future__ import annotations

import contextlib
import math
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path

from rgr_dist.faults import RayDied, RunBroken, UserError
from rgr_dist.search.tune.connect import NoRay, default_address, environment, fits
from rgr_dist.search.tune.connect import connect as connect_to_ray

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of a local Ray's workers: one core each, whatever the user's shell sets."""
NOTHING_TO_IMPORT = Path(__file__).parent.parent / "studies"
"""A folder that holds no Python file."""
LOOK_EVERY = 1.0
"""Seconds between looks whether Ray lives."""


class ClusterError(UserError, RuntimeError):
    """There is no Ray cluster that can be used; the message says where, or why not."""


@dataclass(frozen=True)
class Execution:
    """Where and how a study is trained; its results do not depend on either.

    Attributes:
        cpus: workers on this machine, by default one per core; on a cluster, the most to use.
        address: ``local`` for an embedded Ray; ``auto`` or HOST:PORT on a node of a cluster. By
            default what RAY_ADDRESS says, else ``local``.
        engine: what trains the runs; ``auto`` takes the fastest available.
        gpus: share of a GPU that each worker trains on; 0 trains on CPUs.

    Raises:
        UserError: the number of CPUs, the share of a GPU or the address is not valid.
    """

    cpus: int | None = None
    address: str = field(default_factory=default_address)
    engine: str = "auto"
    gpus: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what no worker can have."""
        if not (self.cpus is None or (isinstance(self.cpus, Integral) and self.cpus >= 1)):
            raise UserError(f"--cpus {self.cpus!r}: give at least 1; by default all are used")
        if not (isinstance(self.gpus, Real) and 0 <= self.gpus < math.inf):
            raise UserError(f"--gpus {self.gpus!r}: give a share of a GPU, or 0 to train on CPUs")
        if "://" in self.address:
            raise UserError(
                f"--address {self.address}: a study is driven from inside its cluster: ray job "
                "submit --address http://HOST:8265 --working-dir . -- python -m rgr_dist run …"
            )


@contextmanager
def connect(address: str, cpus: int | None = None, gpus: float = 0.0) -> Iterator[int]:
    """Connect to a Ray, or start one; gives how many probes it can run at once.

    Raises:
        ClusterError: no Ray cluster answers at the address, or this machine has no such GPU.
        RunBroken: Ray did not start, died or failed.
    """
    with _told_in_one_line(), environment(ONE_THREAD), contextlib.ExitStack() as stack:
        # Ray puts the working directory first on every worker's path, where a file of the user's
        # could hide a library.
        with contextlib.chdir(NOTHING_TO_IMPORT):
            try:
                stack.enter_context(connect_to_ray(address, cpus))
            except NoRay as error:
                if address != "local":
                    raise ClusterError(f"--address {error}") from error
                raise RunBroken(" ".join(str(error).split())[:300]) from error
        if address == "local" and not fits({"GPU": gpus}):
            raise ClusterError(f"--gpus {gpus:g}: Ray has fewer GPUs; 0 trains on CPUs")
        yield slots_of(cpus, gpus)


def slots_of(cpus: int | None, gpus: float) -> int:
    """How many probes can run at once, each on one CPU and its share of a GPU.

    At least one: a cluster may have no suitable node yet, and start one when a probe asks for it.
    """
    slots = max(1, fits({"CPU": 1, "GPU": gpus}))
    return min(slots, cpus or slots)


class Pulse:
    """Whether the parts of Ray on which this process depends still listen.

    Once Ray's control store has died, most calls to Ray never return: so this asks without Ray.
    """

    def __init__(self) -> None:
        import ray

        context = ray.get_runtime_context()
        host, _, port = context.gcs_address.rpartition(":")
        self._parts = {"control store (GCS)": (host, int(port))}
        for node in ray.nodes():
            if node["NodeID"] == context.get_node_id():
                self._parts["raylet"] = node["NodeManagerAddress"], node["NodeManagerPort"]
        self._looked = time.monotonic()

    def check(self) -> None:
        """Make sure that they do; asks once a second at most.

        Raises:
            RayDied: one does not; the message says which.
        """
        if time.monotonic() - self._looked < LOOK_EVERY:
            return
        self._looked = time.monotonic()
        for part, place in self._parts.items():
            try:
                socket.create_connection(place, timeout=LOOK_EVERY).close()
            except ConnectionRefusedError:
                import ray

                ray.shutdown()  # else Tune asks for a minute to be released, and Ray aborts
                raise RayDied(f"Ray died: its {part} gives no answer") from None
            except OSError:  # perhaps the network is slow
                continue


@contextmanager
def _told_in_one_line() -> Iterator[None]:
    """Turn whatever Ray raises into a ``RunBroken`` of one line."""
    try:
        yield
    except RayDied as died:
        raise RunBroken(str(died)) from None
    except Exception as error:
        from ray.exceptions import RayError
        from ray.tune import TuneError

        if not isinstance(error, (RayError, TuneError)):
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
        # Tune gives the text of a traceback; its last line says what was wrong.
        line = lines[-1] if lines[0].startswith("Traceback") else lines[0]
        raise RunBroken(f"Ray failed: {type(error).__name__}: {line.rstrip('.')[:200]}") from error
