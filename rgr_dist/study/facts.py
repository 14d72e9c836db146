"""The model of facts as a study names it: what the paper's summary leaves open."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rgr_dist.study.spec import Real, Spec


class Facts(Spec):
    """One attention layer that stores facts (``models.facts``), and what it is judged by.

    The summary of arXiv:2502.05076 settles none of these but the recommended ``tau``.

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
    residual: bool = True
    train_embedding: bool = True
    train_unembedding: bool = True
    embedding_scale: Annotated[Real, Field(gt=0, le=1e30)] = 0.1
