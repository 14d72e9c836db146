"""A training run of a cell; its address is derived from its canonical JSON."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SerializeAsAny, StrictInt

from rgr_dist.study.address import run_address
from rgr_dist.study.cell import Cell
from rgr_dist.study.spec import Count, Spec


class Run(Spec):
    """One training run: a cell at h heads of width d_k, from one seed."""

    cell: SerializeAsAny[Cell]
    h: Count
    d_k: Count
    seed: Annotated[StrictInt, Field(ge=0)]

    def with_limit(self, max_steps: int) -> Run:
        """The run with another step limit."""
        return self.model_copy(update={"cell": self.cell.with_limit(max_steps)})

    @property
    def D_K(self) -> int:
        """Total key width h * d_k."""
        return self.h * self.d_k

    @property
    def config_json(self) -> str:
        """Canonical JSON of everything that the run's numbers depend on."""
        return self.cell.run_json(self.h, self.d_k, self.seed)

    @property
    def run_id(self) -> str:
        """Address of the run: hash of ``config_json``."""
        return run_address(self.config_json)
