"""Where and how a study is trained; its results do not depend on either."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Integral, Real

from rgr_dist.faults import UserError
from rgr_dist.search.tune.connect import default_address

__all__ = ["HERE", "Execution", "default_address"]

MOST_CPUS = 100_000
"""More than any cluster has; Ray refuses far larger numbers only as it starts."""


@dataclass(frozen=True)
class Execution:
    """Where and how a study is trained.

    Attributes:
        cpus: workers on this machine, by default one per core; on a cluster, the most to use.
        address: ``local`` for an embedded Ray; ``auto`` or HOST:PORT on a node of a cluster;
            ray://HOST:PORT from outside it, with the store at a URI that both sides can open. By
            default what RAY_ADDRESS says, else ``local``.
        engine: what trains the runs; ``auto`` takes the fastest available.
        gpus: share of a GPU that each worker trains on; 0 trains on CPUs.
        retry_failed: whether to train runs again that are stored as failed; if not, their probes
            are left alone.

    Raises:
        UserError: the number of CPUs, the share of a GPU, the address or the engine is not valid.
    """

    cpus: int | None = None
    address: str = field(default_factory=default_address)
    engine: str = "auto"
    gpus: float = 0.0
    retry_failed: bool = False

    def __post_init__(self) -> None:
        """Refuse what no worker can have."""
        cpus, gpus, address = self.cpus, self.gpus, self.address
        if not (cpus is None or (isinstance(cpus, Integral) and 1 <= cpus <= MOST_CPUS)):
            raise UserError(f"--cpus {cpus!r}: give 1 to {MOST_CPUS:,}; by default all are used")
        if not (isinstance(gpus, Real) and 0 <= gpus < math.inf):
            raise UserError(f"--gpus {gpus!r}: give a share of a GPU, or 0 to train on CPUs")
        if not isinstance(address, str):
            raise UserError(
                f"--address {address!r}: give local, auto, HOST:PORT or ray://HOST:PORT"
            )
        if not isinstance(self.engine, str):
            raise UserError(f"--engine {self.engine!r}: give auto, or an engine's name")


HERE = Execution(address="local")
"""On this machine alone, by the fastest engine."""
