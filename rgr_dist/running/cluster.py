"""The Ray that a study runs on, and what it raises as it breaks, in one line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rgr_dist.faults import RayDied, RunBroken, UserError
from rgr_dist.search.tune.connect import NoRay, environment, fits
from rgr_dist.search.tune.connect import connect as connect_to_ray

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""What workers of a local Ray take over: each has one core, whatever the user's shell says."""
NOTHING_TO_IMPORT = Path(__file__).parent.parent / "studies"
"""A folder that holds no Python file."""


class ClusterError(UserError, RuntimeError):
    """There is no Ray cluster to run on; the message says where it was looked for."""


@contextmanager
def connect(address: str, cpus: int | None = None, gpus: float = 0.0) -> Iterator[int]:
    """A Ray to run on, and how many probes it can run at once.

    Args:
        address: ``local`` starts one; else that of a running cluster.
        cpus: at most so many slots; all by default.
        gpus: share of a GPU that a slot needs.

    Raises:
        ClusterError: no Ray cluster answers at the address, or this machine has no such GPU.
        RunBroken: Ray did not start, died or failed.
    """
    with ExitStack() as stack:
        stack.enter_context(_told_in_one_line())
        stack.enter_context(environment(ONE_THREAD))
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

    One at least: a cluster may have no such node yet, and start one when it is asked for.
    """
    slots = max(1, fits({"CPU": 1, "GPU": gpus}))
    return min(slots, cpus or slots)


def node_memory() -> float | None:
    """Bytes that the largest node with CPUs has for workers and objects; None if there is none."""
    import ray

    living = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    training = [one for one in living if one.get("CPU")]  # a head may be there to lead alone
    sizes = [one.get("memory", 0) + one.get("object_store_memory", 0) for one in training]
    return max(sizes, default=None)


@contextmanager
def _told_in_one_line() -> Iterator[None]:
    """Let what Ray raises end in one line.

    Raises:
        RunBroken: Ray failed.
    """
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
        # Tune gives the text of a traceback, whose last line says what was wrong.
        line = lines[-1] if lines[0].startswith("Traceback") else lines[0]
        raise RunBroken(f"Ray failed: {type(error).__name__}: {line.rstrip('.')[:200]}") from error


def _no_ray(address: str, error: NoRay) -> UserError:
    """Input that is at fault, or a Ray that did not start."""
    if address != "local":
        return ClusterError(f"--address {error}")
    if error.__cause__ is None:  # it may not be started
        return ClusterError(f"{error}, or give the --address of a cluster")
    return RunBroken(" ".join(str(error).split())[:300])
