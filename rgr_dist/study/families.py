"""Families of graphs and of embeddings, as a study names them.

Each family has its own keys, which are its identity. What comes from a file is named by the
digest of its content (``study.assets``), never by its path.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, StrictBool

from rgr_dist.study.spec import Count, Real, Spec, at_most

Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


def _by_default(family: str) -> BeforeValidator:
    """Fills in the family of a mapping that names none."""

    def fill(value: Any) -> Any:
        return {"family": family, **value} if isinstance(value, dict) else value

    return BeforeValidator(fill)


class GraphFamily(Spec):
    """A family of directed graphs on m items."""

    balanced: ClassVar[bool] = True
    """Whether each positive of a context has weight #negatives / #positives, as in App. A.3."""

    def check(self, m: int) -> None:
        """Raise ValueError, naming the key, if there is no such graph on m items."""


class EmbeddingFamily(Spec):
    """A family of embeddings; ``check`` raises ValueError, naming the key, if there is none."""

    def check(self, m: int, d_model: int) -> None:
        """Embeddings of m items in d_model dimensions."""


class Permutation(GraphFamily):
    """A uniformly random permutation: every item has one out- and one in-edge (App. A.1)."""

    family: Literal["permutation"] = "permutation"

    degree: ClassVar[int] = 1
    """Out-degree of every item."""
    balanced: ClassVar[bool] = False
    """Each positive has weight l - 1 in every context (App. A.1)."""

    def n_edges(self, m: int) -> int:
        """Number of edges m': one for each item."""
        return m


class Regular(GraphFamily):
    """A random r-regular directed graph without self-loops (App. A.3).

    With degree 1 it is a random permutation without fixed points, yet not the same family as
    ``permutation``: App. A.3 weights the positives of each context by their number.

    Attributes:
        degree: r, the out- and in-degree of every item. A list makes a cell for each degree.
    """

    family: Literal["regular"] = "regular"
    degree: Count

    def n_edges(self, m: int) -> int:
        """m' = r * m."""
        return self.degree * m

    def check(self, m: int) -> None:
        """An item can have only the other items as neighbours."""
        at_most("graph.degree", self.degree, m - 1, f"where m = {m}, for there are no self-loops")


class Edges(GraphFamily):
    """The edges of a file, the same at every seed; identified by their content alone.

    Attributes:
        digest: address of the edges, int32 [m', 2], sorted.
        edges: m'.
        degree: the largest out-degree.
        items: number of items that it has.
    """

    family: Literal["edges"] = "edges"
    digest: Digest
    edges: Count
    degree: Count
    items: Count

    def n_edges(self, m: int) -> int:
        """Number of edges m' in the file."""
        return self.edges

    def check(self, m: int) -> None:
        """Every item of the file is one of the m items."""
        if self.items > m:
            raise ValueError(f"m: {m} is too few; the file has {self.items} items; leave m out")


Graph = Annotated[
    Annotated[Permutation | Regular | Edges, Field(discriminator="family")],
    _by_default("permutation"),
]


class Gaussian(EmbeddingFamily):
    """Rows N(0, I / d_model), then L2-normalised (Sec. 4)."""

    family: Literal["gaussian"] = "gaussian"


class OneHot(EmbeddingFamily):
    """Item i is the unit vector e_i, so d_model = m: there is no compression (App. B.1)."""

    family: Literal["onehot"] = "onehot"

    def check(self, m: int, d_model: int) -> None:
        """Each item needs a dimension of its own."""
        if d_model != m:
            raise ValueError(
                f"embedding.family: onehot needs d_model = m; with m = {m} give d_model: {m}, "
                f"not {d_model}"
            )


class Binary(EmbeddingFamily):
    """Sparse binary rows: independent Bernoulli(p) entries, not normalised (Corollary B.7).

    The paper has p = Theta(log m / d_model).

    Attributes:
        density: factor on log2(m) / d_model that gives p.
    """

    family: Literal["binary"] = "binary"
    density: Annotated[Real, Field(gt=0)] = 1.0

    def rate(self, m: int, d_model: int) -> float:
        """The share p of ones."""
        return self.density * math.log2(m) / d_model

    def check(self, m: int, d_model: int) -> None:
        """The rate must be a probability."""
        if self.rate(m, d_model) > 1:
            raise ValueError(
                f"embedding.density: {self.density:g} * log2({m}) exceeds d_model = {d_model}; "
                f"give at most {math.floor(100 * d_model / math.log2(m)) / 100:g}"
            )


class Vectors(EmbeddingFamily):
    """Rows of a user's file (Sec. 7.3 takes a token table), after what the study does to them.

    Attributes:
        digest: address of the rows used, float32 [m, d_model], with NULL's as one more if the
            model has it.
        shuffle: whether rows and items are paired at random, anew for each seed.
    """

    later: ClassVar[frozenset[str]] = frozenset({"shuffle"})

    family: Literal["vectors"] = "vectors"
    digest: Digest
    shuffle: StrictBool = False


Embedding = Annotated[
    Annotated[Gaussian | OneHot | Binary | Vectors, Field(discriminator="family")],
    _by_default("gaussian"),
]
