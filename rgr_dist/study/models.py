"""What tells the models apart: one record each, which every other room asks.

A new model is its record here, its forward pass in ``rgr_dist/models`` and its kernels in
``rgr_dist/engines``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ModelName = Literal["max", "softmax", "value", "transformer"]


@dataclass(frozen=True)
class Model:
    """One model variant.

    Attributes:
        name: as a study file has it.
        section: of the paper.
        score: what a run is judged by.
        task: which problem it is trained on (``problem.edge_task``, ``problem.matching_task``).
        heads: how its heads' scores are combined; None where the model has layers of its own.
        loss: what is trained: edges by a threshold, messages, or the answer to a query.
        engines: those that train it, the fastest on a CPU first.
        report: the section of the report that tells of it: thresholds, or accuracy by split.
        unused_keys: keys of a study that it does not use, which must then have their default.
        required_keys: keys of ``training`` that must be given, since they have no default.
        training: values that the paper gives for it, where they are not those of App. A.1.
        target: passing score if the study gives none; None for the paper's mean F1.
        one_target: its task has one answer to each item, so that it takes permutations alone.
        splits_values: its heads share d_model for their values, so that h must divide it.
        stops_early: a run ends once it has converged.
    """

    name: ModelName
    section: str
    score: Literal["F1", "error", "accuracy"]
    loss: Literal["edges", "messages", "answers"]
    engines: tuple[str, ...]
    heads: Literal["max", "softmax"] | None = None
    task: Literal["edges", "matching"] = "edges"
    report: Literal["thresholds", "accuracy"] = "thresholds"
    unused_keys: tuple[str, ...] = ()
    required_keys: tuple[str, ...] = ()
    training: Mapping[str, Any] = field(default_factory=dict)
    target: float | None = None
    one_target: bool = False
    splits_values: bool = False
    stops_early: bool = True

    @property
    def minimised(self) -> bool:
        """Whether a lower score is better; such a score has no upper bound."""
        return self.score == "error"

    @property
    def has_tau(self) -> bool:
        """Whether the model learns a decision threshold tau."""
        return self.loss == "edges"


BATCHES = ("training.batch_size", "training.weight_decay")
"""Keys of a model that is trained on batches."""
OF_CPU = ("fused", "lanes", "reference")
"""Engines of a model that has compiled kernels."""

RECORDS = (
    Model(
        name="max",
        section="Sec. 4",
        score="F1",
        heads="max",
        loss="edges",
        engines=OF_CPU,
        unused_keys=(*BATCHES, "training.tolerance"),
    ),
    Model(
        name="softmax",
        section="Sec. 7.1",
        score="F1",
        heads="softmax",
        loss="edges",
        engines=OF_CPU,
        unused_keys=(*BATCHES, "training.tolerance"),
        training={"max_steps": 80_000},
    ),
    Model(
        name="value",
        section="Sec. 7.2",
        score="error",
        heads="max",
        loss="messages",
        engines=OF_CPU,
        unused_keys=(*BATCHES, "training.sharpness", "training.stop_score"),
        # The error is 1 where nothing is retrieved; the paper has no threshold.
        target=0.5,
        one_target=True,
    ),
    Model(
        name="transformer",
        section="Sec. 7.3",
        score="accuracy",
        task="matching",
        loss="answers",
        engines=("lanes", "reference"),
        report="accuracy",
        unused_keys=(
            "context.positive_rate",
            "training.sharpness",
            "training.patience",
            "training.stop_score",
            "training.tolerance",
        ),
        required_keys=("batch_size", "weight_decay"),
        # The paper does not give the batch size: 128 is our choice.
        training={"max_steps": 100_000, "batch_size": 128, "weight_decay": 0.01},
        one_target=True,
        splits_values=True,
        stops_early=False,
    ),
)

MODELS: dict[str, Model] = {record.name: record for record in RECORDS}
"""The record of each model, by its name."""
