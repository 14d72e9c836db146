"""How one run is trained: its contexts, its optimiser and when it stops."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StrictInt, model_validator

from rgr_dist.study.spec import Count, Real, Share, Spec, at_most


class Context(Spec):
    """How contexts are drawn (App. A.1).

    Attributes:
        length: items in a context, l; pairs of items for model transformer.
        positive_rate: target-in-context rate, rho: the chance that an item is a source, whose
            target is brought into the context.
    """

    length: Annotated[StrictInt, Field(ge=2)] = 16
    positive_rate: Share = 0.5


class Training(Spec):
    """Optimisation by AdamW, and stopping (App. A.1); steps are contexts of one run.

    The transformer (Sec. 7.3) takes a batch a step, decays its weights and does not stop early.

    Attributes:
        learning_rate: of AdamW; the highest that a schedule reaches. A list asks for each.
        sharpness: alpha of the logits alpha (S - tau).
        initial_scale: multiplies the standard deviation of the first W_Q and W_K, in either
            reading of ``initial``; in model facts of W_V and W_O too.
        start: in model max, what W_Q, W_K and tau are at first: ``random``, as in the paper, or
            ``constructed`` for the same draw by alternating projections (``engines.start``). So
            the same loop shows what it keeps, or reaches from there, and does not find by itself.
        initial: the paper draws W_Q and W_K from N(0, 1/sqrt(d_model)) and does not say which the
            second number is: read as their standard ``deviation`` or as their ``variance``.
        schedule: of the learning rate (``engines.schedule``), which the paper keeps ``constant``:
            ``warmup`` rises linearly for ``warmup_steps`` and stays, ``cosine`` falls to zero at
            ``max_steps``.
        warmup_steps: with ``warmup`` alone: steps until the full rate. The default,
            2 / (1 - beta_2), is the untuned warm-up of Ma and Yarats (arXiv:1910.04209).
        max_steps: step limit; a list asks for a threshold at each. A full batch of facts is an
            epoch.
        check_every: steps between two checks on the validation contexts; of facts on all triples,
            where a run ends once all are right.
        patience: so many checks in a row above ``stop_score`` end a run as converged; in model
            value, so many that do not bring the error down.
        stop_score: score on the validation contexts that a check must exceed to count.
        give_up_below: end a run, as ``given_up``, when its score on the validation contexts would
            not reach this by the limit if it kept rising as before (``engines.early_stopping``).
            Not in the paper. A run below it must fail its probe alone, so that the largest value is
            1 - seeds · (1 - target), of the most seeds that a verdict may take: 0.8 for ten, and
            ten of a retest, at 0.99.
        validation_contexts: contexts that a check scores, or queries of model transformer.
        test_contexts: contexts that the final score is of, or queries of model transformer.
        batch_size: queries in a step of model transformer; triples in one of model facts, all of
            them if not given.
        weight_decay: of AdamW in models transformer and facts; the others have none.
        tolerance: in model value, by how large a share of the best error a check must be below it
            to count as better; the paper does not give it (Sec. 7.2).
    """

    later: ClassVar[frozenset[str]] = frozenset(
        {
            "initial_scale",
            "initial",
            "start",
            "schedule",
            "warmup_steps",
            "batch_size",
            "weight_decay",
            "tolerance",
            "give_up_below",
        }
    )

    learning_rate: Annotated[Real, Field(gt=0, le=1e30)] = 1e-3
    sharpness: Annotated[Real, Field(gt=0, le=1e30)] = 10.0
    initial_scale: Annotated[Real, Field(gt=0, le=1e30)] = 1.0
    initial: Literal["deviation", "variance"] = "deviation"
    start: Literal["random", "constructed"] = "random"
    schedule: Literal["constant", "cosine", "warmup"] = "constant"
    warmup_steps: Count = 2_000
    max_steps: Count = 20_000
    check_every: Count = 500
    patience: Count = 5
    stop_score: Share = 0.995
    give_up_below: Share | None = None
    validation_contexts: Count = 500
    test_contexts: Count = 2_000
    batch_size: Count | None = None
    weight_decay: Annotated[Real, Field(ge=0, le=1e30)] | None = None
    tolerance: Share = 0.001

    @property
    def path_depends_on_limit(self) -> bool:
        """Whether another ``max_steps`` changes a run before it gets there.

        If not, the state of a run at a smaller limit is one that it passes through at a larger.
        """
        return self.schedule == "cosine"

    @model_validator(mode="after")
    def _starts(self) -> Self:
        if self.start == "constructed" and self.initial != "deviation":
            raise ValueError("initial: start: constructed draws no weights; leave it out")
        return self

    @model_validator(mode="after")
    def _warms_up(self) -> Self:
        if self.schedule == "warmup":
            where = f"with max_steps = {self.max_steps}"
            at_most("warmup_steps", self.warmup_steps, self.max_steps, where)
        else:
            self.leaves_out(["warmup_steps"], f"schedule {self.schedule} does not use it")
        if self.schedule != "constant":  # scores rise with the rate, or as it falls
            self.leaves_out(["give_up_below"], f"not for schedule {self.schedule}")
        return self
