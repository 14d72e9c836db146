"""A construction of weights, as a study names it: ``{construction: ours, iterations: 400}``."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, model_validator

from rgr_dist.study.spec import Count, Spec

Algorithm = Literal["1", "2", "3", "4", "5", "ours", "one-head"]
"""The paper's algorithms by number; ``ours``, alternating projections (``theory.projections``); and
``one-head``, which decides whether one head of any width can hold a graph (``theory.one_head``)."""


class Construction(Spec):
    """What a construction takes beside its sizes.

    Attributes:
        iterations: the largest number of projections that ``ours`` makes.
        colouring: ``equitable`` in Algorithm 5, ``batched`` in the others.
        signatures, p, tau: as the paper prints them. These and ``colouring`` are no keys of a study
            file; they are part of the addresses of runs.
    """

    iterations: Count = 1000
    colouring: Literal["batched", "equitable"] = "batched"
    signatures: None = None
    p: None = None
    tau: Literal["printed"] = "printed"


class ConstructionModel(Spec):
    """``model`` as a study file names a construction."""

    construction: Annotated[
        Algorithm, BeforeValidator(lambda value: str(value) if type(value) is int else value)
    ]
    iterations: Count = 1000

    @model_validator(mode="after")
    def _projects(self) -> Self:
        if self.construction != "ours":
            why = f"construction {self.construction} makes no projections"
            self.leaves_out(["iterations"], why)
        return self

    @property
    def options(self) -> dict[str, Any]:
        """The keys of its ``Construction``."""
        colouring = "equitable" if self.construction == "5" else "batched"
        return {"iterations": self.iterations, "colouring": colouring}
