"""A cell of facts: which database a layer stores, and how that is judged.

Facts are triples (key, query, value). Each family has its own keys, which are its identity. A
database is a function: a pair of a key and a query has at most one value. A layer is asked only
for pairs that have one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StrictBool, model_validator

from rgr_dist.study.address import canonical_json, run_json
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError, validated
from rgr_dist.study.families import Digest
from rgr_dist.study.files import TriplesFile
from rgr_dist.study.spec import LARGEST_COUNT, Count, Real, Spec, at_most

Keys = dict[Any, Any]


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

    @property
    def shape(self) -> tuple[int, int, int]:
        """|K|, |Q|, |V|."""
        return self.keys, self.queries, self.values

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
    """Every pair has a value, and the tensor has a given rank (``facts.databases``).

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


class Listed(DatabaseFamily):
    """The triples of a file, the same at every seed; identified by their content alone.

    Attributes:
        digest: address of the triples, int32 [|D|, 3], sorted.
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
    Function | Partial | LowRank | Predicates | Listed, Field(discriminator="family")
]


class Facts(Spec):
    """One attention layer that stores facts (``facts.layer``), and what it is judged by.

    Of these, the summary of arXiv:2502.05076 settles only ``tau``, which it recommends.

    Attributes:
        d_qk: key width of a head, d_head,qk; the width that a study searches, d_k, is that of its
            values, d_head,vo. A list makes a cell for each.
        total: d_qk + d_k of a head, instead of d_qk: the more values, the less keys.
        score: what a run is judged and stopped by: ``softmax``, the share of the asked triples
            whose value has a probability of at least ``tau``, or ``argmax``, the share whose value
            has the largest logit.
        tau: threshold on the probability: the τ of softmax≥τ.
        residual: whether the query's embedding is added to the output of attention.
        train_embedding: whether the embeddings of keys and queries are trained, or frozen.
        train_unembedding: whether the unembedding is trained, or frozen.
        embedding_scale: standard deviation of the entries of the initial embeddings.
    """

    later: ClassVar[frozenset[str]] = frozenset({"d_qk", "total"})

    d_qk: Count = 8
    total: Annotated[Count, Field(ge=2, le=1000)] | None = None
    score: Literal["softmax", "argmax"] = "softmax"
    tau: Annotated[Real, Field(gt=0, lt=1)] = 0.95
    residual: StrictBool = True
    train_embedding: StrictBool = True
    train_unembedding: StrictBool = True
    embedding_scale: Annotated[Real, Field(gt=0, le=1e30)] = 0.1


class FactsCell(Cell):
    """A cell whose m is the number of its triples, and whose d_k is d_head,vo.

    Attributes:
        database: the triples to be stored, in place of a graph.
        facts: what is trained, and how it is judged.
    """

    later: ClassVar[frozenset[str]] = Cell.later | {"facts"}
    problem: ClassVar[tuple[str, ...]] = (*Cell.problem, "database")

    database: Database
    facts: Facts = Facts()

    def check_items(self) -> None:
        """Raise ValueError, naming the key, if m is not the number of its triples."""
        if self.m != self.database.n_asked:
            raise ValueError(
                f"m: {self.m} is not valid, since the database has {self.database.n_asked} "
                "triples; leave m out, and they are counted"
            )
        at_most("training.batch_size", self.training.batch_size or 0, self.m, f"for {self.name}")

    def d_qk(self, d_k: int) -> int:
        """The width d_head,qk beside a width d_head,vo = d_k."""
        return self.facts.d_qk if self.facts.total is None else self.facts.total - d_k

    def canonical(self) -> Self:
        """No decay is the default, and one batch of all triples is."""
        decay, size = self.training.weight_decay, self.training.batch_size
        keys = {"weight_decay": decay or None, "batch_size": None if size == self.m else size}
        return self.model_copy(update={"training": self.training.model_copy(update=keys)})

    def run_json(self, h: int, d_k: int, seed: int) -> str:
        """Everything that a run's numbers depend on; here d_k is d_head,qk, whatever gave it."""
        shared = self.facts.model_copy(update={"d_qk": Facts().d_qk, "total": None})
        cell = self.model_copy(update={"facts": shared})
        own = {"h": h, "d_k": self.d_qk(d_k), "d_vo": d_k, "seed": seed}
        return run_json(canonical_json(cell.model_dump()), own)

    @property
    def n_edges(self) -> int:
        """Number of triples."""
        return self.m

    @property
    def family(self) -> str:
        """The family of its database."""
        return self.database.family

    @property
    def name(self) -> str:
        """``facts=512,d_model=32``."""
        return f"facts={self.m},d_model={self.d_model}"

    @property
    def scale(self) -> float:
        """What a search expects of D_K: there is no published law; at most four times this."""
        return self.d_model / 4

    def step_cost(self, D_K: float) -> float:
        """Multiply-adds of the logits of a batch, and of their gradient."""
        facts = min(self.m, self.training.batch_size or self.m)
        return 6 * facts * (self.database.values * (self.d_model + 1) + D_K)

    @property
    def own_keys(self) -> Keys:
        """The keys in which cells of one size can differ."""
        stored = self.database.model_dump(mode="json", exclude={"triples"})
        return {f"database.{key}": value for key, value in stored.items()} | {
            f"facts.{key}": value for key, value in dict(self.facts).items()
        }


class _OneDatabase(Spec):
    """A database by itself, whose triples are counted before its cell is made."""

    database: Database


def problems(
    written: Mapping[str, Keys],
    places: Mapping[str, str],
    loaded: Callable[[type[TriplesFile], Keys, str], Keys],
) -> list[Keys]:
    """``m``, ``database`` and ``facts`` of each combination of what a study lists.

    Args:
        written: ``database`` and ``facts`` of a study.
        places: where they stand, if not at the top.
        loaded: loads the file of a database.

    Raises:
        StudyError: there is no such database.
    """
    keys, place = written["database"], places.get("database", "")
    if not keys:
        example = "{family: function, keys: 64, queries: 8, values: 64}"
        raise StudyError(f"{place}database: missing; model facts needs one, such as {example}")
    if keys.get("family") == "file":
        listed = [loaded(TriplesFile, keys, f"{place}database.")]
    else:
        listed = each(keys)
    found = [validated(_OneDatabase, {"database": one}, place).database for one in listed]
    if any(one.n_asked < 2 for one in found):
        raise StudyError(f"{place}database: it has one triple; give two or more")
    judged = each(written["facts"])
    return [{"m": one.n_asked, "database": one, "facts": own} for one in found for own in judged]


def each(keys: Keys) -> list[Keys]:
    """A copy of the keys for every combination of the values that they list."""
    lists = {name: value for name, value in keys.items() if isinstance(value, list) and value}
    combinations = itertools.product(*lists.values())
    return [{**keys, **dict(zip(lists, values, strict=True))} for values in combinations]
