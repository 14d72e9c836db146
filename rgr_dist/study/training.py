"""How one run is trained: its contexts, its optimiser and when it stops."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StrictInt, model_validator

from rgr_dist.study.spec import Count, NotNegative, Real, Share, Spec, at_most


class Context(Spec):
    """How contexts are drawn (App. A.1).

    Attributes:
        length: items per context, l; for model transformer, pairs of items.
        positive_rate: target-in-context rate, rho: the probability that an item is a source, whose
            target is then brought into the context.
    """

    length: Annotated[StrictInt, Field(ge=2)] = 16
    positive_rate: Share = 0.5


class Training(Spec):
    """Optimisation by AdamW, and stopping (App. A.1); each step of a run is one context.

    The transformer (Sec. 7.3) takes a batch per step, decays its weights and does not stop early.

    Attributes:
        learning_rate: AdamW's learning rate; with a schedule, the highest that it reaches. A list
            makes a cell for each rate.
        sharpness: alpha in the logits alpha (S - tau).
        initial_scale: factor on the standard deviation of the initial W_Q and W_K, in either
            reading of ``initial``; for model facts, also of W_V and W_O.
        initial: how to read N(0, 1/sqrt(d_model)), from which the paper draws W_Q and W_K without
            saying what the second number is: as a standard ``deviation`` or as a ``variance``.
        schedule: how the learning rate changes (``engines.schedule``). The paper keeps it
            ``constant``; ``warmup`` raises it linearly over ``warmup_steps`` and then keeps it;
            ``cosine`` lowers it to zero at ``max_steps``.
        warmup_steps: for ``schedule: warmup`` only: steps until the full rate is reached. The
            default, 2 / (1 - beta_2), is the untuned warm-up of Ma and Yarats (arXiv:1910.04209).
        max_steps: step limit; a list asks for a threshold at each limit. For model facts, a step on
            a full batch is an epoch.
        check_every: steps between two checks on the validation contexts; for model facts, checks
            are on all triples, and a run ends once all of them are right.
        patience: number of consecutive checks above ``stop_score`` after which a run ends as
            converged; for model value, number of consecutive checks without a better error.
        stop_score: score on the validation contexts that a check must exceed to count.
        validation_contexts: number of contexts that a check scores; for model transformer, of
            queries.
        test_contexts: number of contexts that the final score is taken over; for model transformer,
            of queries.
        batch_size: queries per step for model transformer; triples per step for model facts, by
            default all of them.
        weight_decay: AdamW's weight decay in models transformer and facts; the others have none.
        embeddings: ``frozen`` as the paper's, or ``trained``: the layer sees x_i = E_i / |E_i|, and
            AdamW moves E from the embedding's rows at the rate of the other parameters. A list
            makes a cell for each.
        relations: for ``embeddings: trained`` only: graphs that share them, each with weights of
            its own. A step takes a context of each and adds their losses; a check counts if the
            worst of them exceeds ``stop_score``, and the score is their mean. A list makes a cell
            for each number.
        tolerance: for model value: a check counts as better if its error is below the best one by
            more than this share of it. The paper does not give the share (Sec. 7.2).
    """

    later: ClassVar[frozenset[str]] = frozenset(
        {
            "initial_scale",
            "initial",
            "schedule",
            "warmup_steps",
            "batch_size",
            "weight_decay",
            "tolerance",
            "embeddings",
            "relations",
        }
    )

    learning_rate: Annotated[Real, Field(gt=0, le=1e30)] = 1e-3
    sharpness: Annotated[Real, Field(gt=0, le=1e30)] = 10.0
    initial_scale: Annotated[Real, Field(gt=0, le=1e30)] = 1.0
    initial: Literal["deviation", "variance"] = "deviation"
    schedule: Literal["constant", "cosine", "warmup"] = "constant"
    warmup_steps: Count = 2_000
    max_steps: Count = 20_000
    check_every: Count = 500
    patience: Count = 5
    stop_score: Share = 0.995
    validation_contexts: Count = 500
    test_contexts: Count = 2_000
    batch_size: Count | None = None
    weight_decay: Annotated[NotNegative, Field(le=1e30)] | None = None
    tolerance: Share = 0.001
    embeddings: Literal["frozen", "trained"] = "frozen"
    relations: Count = 1

    @property
    def path_depends_on_limit(self) -> bool:
        """Whether a different ``max_steps`` changes a run before it reaches that limit.

        If not, a run with a larger limit passes through the state where a smaller limit ends it.
        """
        return self.schedule == "cosine"

    @model_validator(mode="after")
    def _shares_what_is_trained(self) -> Self:
        if self.embeddings == "frozen":
            self.leaves_out(["relations"], "frozen embeddings are not trained by several relations")
        return self

    @model_validator(mode="after")
    def _warms_up(self) -> Self:
        if self.schedule == "warmup":
            where = f"with max_steps = {self.max_steps}"
            at_most("warmup_steps", self.warmup_steps, self.max_steps, where)
        else:
            self.leaves_out(["warmup_steps"], f"schedule {self.schedule} does not use it")
        return self
