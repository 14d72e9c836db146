"""Databases of facts, as a study names them, and how a layer that stores one is judged.

Facts are triples (key, query, value). Each family has its own keys, which are its identity. A
database is a function: a pair of a key and a query has at most one value. A layer is asked only
for pairs that have one.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, model_validator

from rgr_dist.study.families import Digest
from rgr_dist.study.spec import LARGEST_COUNT, Count, Real, Spec, at_most


class DatabaseFamily(Spec):
    """A family of databases.

    Attributes:
        keys: number of keys, |K|.
        queries: number of queries, |Q|.
        values: number of values, |V|.
    """

    keys: Count
    queries: Count
    values: Annotated[Count, Field(ge=2)]

    @property
    def n_asked(self) -> int:
        """Number of triples |D|."""
        return self.keys * self.queries

    @model_validator(mode="after")
    def _has_pairs(self) -> Self:
        at_most("keys", self.keys, LARGEST_COUNT // self.queries, f"with {self.queries} queries")
        return self


class Function(DatabaseFamily):
    """Every pair has one value, uniformly random."""

    family: Literal["function"] = "function"


class Partial(DatabaseFamily):
    """A share of the pairs have a value, uniformly random; the others are not asked.

    Attributes:
        share: share of the pairs that are asked, rounded to a whole number of pairs, at least one.
    """

    family: Literal["partial"] = "partial"
    share: Annotated[Real, Field(gt=0, le=1)]

    @property
    def n_asked(self) -> int:
        """Number of triples |D|: the share of all pairs, at least one."""
        return max(1, round(self.share * self.keys * self.queries))


class LowRank(DatabaseFamily):
    """Every pair has a value, and the tensor has a given rank (``problem.databases``).

    Attributes:
        rank: R, the rank of the 0/1 tensor: at least 1, at most |V| and at most the number of
            pairs.
    """

    family: Literal["low-rank"] = "low-rank"
    rank: Count

    @model_validator(mode="after")
    def _has_a_value_for_each_block(self) -> Self:
        where = f"with {self.keys} keys, {self.queries} queries and {self.values} values"
        at_most("rank", self.rank, min(self.values, self.keys * self.queries), where)
        return self


class Predicates(DatabaseFamily):
    """Every pair has a uniformly random value from a small set that belongs to its query.

    Attributes:
        per_query: number of values in the set of each query.
    """

    family: Literal["predicates"] = "predicates"
    per_query: Count

    @model_validator(mode="after")
    def _has_distinct_values(self) -> Self:
        at_most("per_query", self.per_query, self.values, f"with {self.values} values")
        return self


class FactsFile(DatabaseFamily):
    """The triples of a file, the same at every seed; identified by their content alone.

    Attributes:
        digest: address of the triples, int32 [|D|, 3], sorted (``study.edges``).
        triples: |D|.
    """

    family: Literal["file"] = "file"
    digest: Digest
    triples: Count

    @property
    def n_asked(self) -> int:
        """Number of triples in the file."""
        return self.triples


Database = Annotated[
    Function | Partial | LowRank | Predicates | FactsFile, Field(discriminator="family")
]


class Facts(Spec):
    """One attention layer that stores facts (``models.facts``), and what it is judged by.

    Of these, the summary of arXiv:2502.05076 settles only ``tau``, which it recommends.

    Attributes:
        score: what a run is judged and stopped by: ``softmax``, the share of the asked triples
            whose value has a probability of at least ``tau``, or ``argmax``, the share whose value
            has the largest logit.
        tau: threshold on the probability: the τ of softmax≥τ.
        residual: whether the query's embedding is added to the output of attention.
        train_embedding: whether the embeddings of keys and queries are trained, or frozen.
        train_unembedding: whether the unembedding is trained, or frozen.
        embedding_scale: standard deviation of the entries of the initial embeddings.
    """

    score: Literal["softmax", "argmax"] = "softmax"
    tau: Annotated[Real, Field(gt=0, lt=1)] = 0.95
    residual: StrictBool = True
    train_embedding: StrictBool = True
    train_unembedding: StrictBool = True
    embedding_scale: Annotated[Real, Field(gt=0, le=1e30)] = 0.1
