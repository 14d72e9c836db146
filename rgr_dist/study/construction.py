"""The free parameters of a construction of weights, as a study or the command line gives them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from rgr_dist.study.spec import Count, Real, Spec

Algorithm = Literal["1", "2", "3", "4", "5", "ours", "one-head"]
"""The paper's algorithms by number; ``ours``, alternating projections (``theory.projections``); and
``one-head``, which decides whether one head of any width can hold a graph (``theory.one_head``)."""
Kind = Literal["rademacher", "bernoulli", "orthogonal"]

PRINTED_P = {"3": 1 / 4, "4": 1 / 20}
"""The probability of a one in the Bernoulli signatures that the paper prints, by algorithm."""
LARGEST_P = {"4": 1 / 20}
"""The largest p that an algorithm takes: 1/20 for Algorithm 4."""


class Construction(Spec):
    """Free parameters of a construction; those left out are as the paper prints them.

    Attributes:
        signatures: distribution of the signatures' entries; by default Bernoulli in Algorithms 3
            and 4, Rademacher in the others. ``orthogonal`` is not from the paper: with d_k at the
            block size, such signatures score as in the limit d_k → ∞. Only Algorithms 1, 3 and 4
            take it.
        p: probability of a one in a Bernoulli entry; by default 1/4 in Algorithm 3 and 1/20 in
            Algorithm 4.
        colouring: how Algorithm 5 packs edges into heads: ``batched`` cuts König's classes into
            blocks, as printed; ``equitable`` takes matchings of even size, which need fewer heads
            (Corollary B.10). A study of Algorithm 5 always takes ``equitable``.
        tau: the ``printed`` threshold, or the ``best`` one for F1 over all pairs.
        iterations: the largest number of projections that ``ours`` makes.
    """

    signatures: Kind | None = None
    p: Annotated[Real, Field(gt=0, lt=0.5)] | None = None
    colouring: Literal["batched", "equitable"] = "batched"
    tau: Literal["printed", "best"] = "printed"
    iterations: Count = 1000


def _named(value: Any) -> Any:
    """An algorithm's name, even if it is given as a number."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class ConstructionModel(Construction):
    """``model`` as a study names a construction: ``{construction: 1, signatures: bernoulli}``.

    In Algorithm 5 the search sets the number of heads, so a study uses ``equitable`` matchings.
    """

    construction: Annotated[Algorithm, BeforeValidator(_named)]

    @model_validator(mode="before")
    @classmethod
    def _is_equitable(cls, keys: Any) -> Any:
        if isinstance(keys, dict) and _named(keys.get("construction")) == "5":
            if keys.get("colouring") == "batched":
                raise ValueError("colouring: a study of algorithm 5 takes equitable; leave it out")
            return {"colouring": "equitable", **keys}
        return keys

    @model_validator(mode="after")
    def _takes_its_keys(self) -> Self:
        fault = fault_of(self.construction, self)
        if fault is not None:
            raise ValueError(fault)
        return self


def fault_of(algorithm: str, options: Construction) -> str | None:
    """What is wrong with a parameter that an algorithm does not take; None if it takes all.

    Args:
        algorithm: may also be ``trivial`` or ``limit``, which no study names.
    """
    has_signatures = algorithm not in ("ours", "one-head", "trivial")
    takes = {
        "signatures": has_signatures,
        "p": has_signatures,
        "colouring": algorithm in ("5", "limit"),
        "tau": algorithm != "2",
        "iterations": algorithm == "ours",
    }
    for key, is_taken in takes.items():
        if not is_taken and getattr(options, key) != Construction.model_fields[key].default:
            return f"{key}: construction {algorithm} does not use it; leave it out"
    kind, p = kind_of(algorithm, options), options.p
    if kind == "orthogonal" and algorithm not in ("1", "3", "4", "limit"):
        return f"signatures: orthogonal is for algorithms 1, 3 and 4, not for {algorithm}"
    if p is not None and kind != "bernoulli":
        return f"p: {p:g} is for bernoulli signatures alone; leave it out"
    if p is not None and p > LARGEST_P.get(algorithm, p):
        return f"p: {p:g} is not valid for algorithm {algorithm}; give at most 1/20"
    return None


def kind_of(algorithm: str, options: Construction) -> Kind:
    """The distribution of an algorithm's signatures: as asked, else as printed."""
    return options.signatures or ("bernoulli" if algorithm in PRINTED_P else "rademacher")


def p_of(algorithm: str, options: Construction) -> float:
    """The p of an algorithm's Bernoulli signatures: as asked, else as printed."""
    return PRINTED_P.get(algorithm, 1 / 4) if options.p is None else options.p


def canonical(algorithm: str, options: Construction) -> Construction:
    """The same parameters; signatures and p are left out if that means the same."""
    printed = Construction()
    means = {"signatures": kind_of(algorithm, printed), "p": p_of(algorithm, printed)}
    spelt = [key for key, value in means.items() if getattr(options, key) == value]
    return options.model_copy(update=dict.fromkeys(spelt))
