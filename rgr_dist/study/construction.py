"""What a construction of weights leaves open, as a study or the command line names it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from rgr_dist.study.spec import Count, Real, Spec

Algorithm = Literal["1", "2", "3", "4", "5", "ours", "one-head"]
"""The paper's algorithms by their number, alternating projections (``theory.projections``), and
whether one head of any width can hold a graph (``theory.one_head``)."""
Kind = Literal["rademacher", "bernoulli", "orthogonal"]


class Construction(Spec):
    """Free parameters of a construction; what is left out is as the paper prints it.

    Attributes:
        signatures: distribution of the signatures' entries; by default Bernoulli in Algorithms 3
            and 4, Rademacher in the others. ``orthogonal`` is not the paper's: at a d_k of the
            block size, such signatures have the scores of the limit d_k → ∞. Only Algorithms 1, 3
            and 4 take it.
        p: probability of a one in a Bernoulli entry; by default 1/4 in Algorithm 3 and 1/20 in
            Algorithm 4.
        colouring: how Algorithm 5 packs edges into heads: ``batched`` cuts König's classes into
            blocks, as printed; ``equitable`` takes matchings of even size, which need fewer heads
            (Corollary B.10).
        tau: the ``printed`` threshold, or the ``best`` one for F1 over all pairs.
        iterations: the largest number of projections that ``ours`` makes.
    """

    signatures: Kind | None = None
    p: Annotated[Real, Field(gt=0, lt=0.5)] | None = None
    colouring: Literal["batched", "equitable"] = "batched"
    tau: Literal["printed", "best"] = "printed"
    iterations: Count = 1000


def _named(value: Any) -> Any:
    """An algorithm's number as its name."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class ConstructionModel(Construction):
    """``model`` as a study names a construction: ``{construction: 1, signatures: bernoulli}``."""

    construction: Annotated[Algorithm, BeforeValidator(_named)]

    @model_validator(mode="after")
    def _takes_its_signatures(self) -> Self:
        if self.signatures == "orthogonal":
            fault = orthogonal_fault(self.construction, self.p)
            if fault is not None:
                raise ValueError(f"signatures: {fault}")
        return self


def orthogonal_fault(algorithm: str, p: float | None) -> str | None:
    """Why an algorithm does not take orthogonal signatures; None if it does."""
    if algorithm not in ("1", "3", "4"):
        return f"orthogonal is for algorithms 1, 3 and 4, not for {algorithm}"
    return None if p is None else f"p = {p:g} is for bernoulli, not for orthogonal"
