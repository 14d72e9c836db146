"""The Ray that a study runs on, with its errors cut down to one line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rgr_dist.faults import RayDied, RunBroken, UserError
from rgr_dist.search.tune.connect import NoRay, environment, fits
from rgr_dist.search.tune.connect import connect as connect_to_ray

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of a local Ray's workers: one core each, whatever the user's shell sets."""
NOTHING_TO_IMPORT = Path(__file__).parent.parent / "studies"
"""A folder that holds no Python file."""


class ClusterError(UserError, RuntimeError):
    """There is no Ray cluster that can be used; the message says where, or why not."""


@contextmanager
def connect(address: str, cpus: int | None = None, gpus: float = 0.0) -> Iterator[int]:
    """Connect to a Ray, or start one; gives how many probes it can run at once.

    Args:
        address: ``local`` to start one, or the address of a running cluster.
        cpus: the most slots to use; all by default.
        gpus: share of a GPU that each slot needs.

    Raises:
        ClusterError: no Ray cluster answers at the address, or this machine has no such GPU.
        RunBroken: Ray did not start, died or failed.
    """
    with _told_in_one_line(), environment(ONE_THREAD), ExitStack() as stack:
        # Ray puts the working directory first on every worker's path, where a file of the user's
        # could hide a library.
        with contextlib.chdir(NOTHING_TO_IMPORT):
            try:
                stack.enter_context(connect_to_ray(address, cpus))
            except NoRay as error:
                raise _no_ray(address, error) from error
        if address == "local" and not fits({"GPU": gpus}):
            raise ClusterError(
                f"--gpus {gpus:g}: Ray has fewer GPUs; valid: 0, which trains on CPUs, or no more "
                "than there are"
            )
        yield slots_of(cpus, gpus)


def slots_of(cpus: int | None, gpus: float) -> int:
    """How many probes can run at once, each on one CPU and its share of a GPU.

    At least one: a cluster may have no suitable node yet, and start one when a probe asks for it.
    """
    slots = max(1, fits({"CPU": 1, "GPU": gpus}))
    return min(slots, cpus or slots)


def node_memory() -> float | None:
    """Bytes that the largest node with CPUs has for workers and objects; None if there is none."""
    import ray

    living = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    training = [one for one in living if one.get("CPU")]  # a head node may have no CPUs to train
    sizes = [one.get("memory", 0) + one.get("object_store_memory", 0) for one in training]
    return max(sizes, default=None)


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


def _no_ray(address: str, error: NoRay) -> UserError:
    """The error if there is no Ray: bad input, or a local Ray that did not start."""
    if address != "local":
        return ClusterError(f"--address {error}")
    if error.__cause__ is None:  # the environment does not allow starting one
        return ClusterError(f"{error}, or give the --address of a cluster")
    return RunBroken(" ".join(str(error).split())[:300])
