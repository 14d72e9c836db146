"""How a study is searched."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StrictBool, StrictInt, model_validator

from rgr_dist.study.axis import CAPACITY, SizeAxis
from rgr_dist.study.spec import Count, Listed, Real, Sizes, Spec, at_most

OF_D_K = ("heads", "max_D_K", "D_K", "keep_heads")
"""Keys that only a search on axis d_k takes."""
OF_D_VO = ("per", "max_d_vo", "d_vo")
"""Keys that only a search on axis d_vo takes."""
OF_THRESHOLDS = ("max_D_K", "max_d_vo", "confirm_seeds", "keep_heads", "transition_seeds")
"""Keys that only mode threshold takes."""
CONFIRM_SEEDS = 20
"""Fresh seeds that confirm a winner if every head count is searched."""
RULES: dict[str, dict[str, Any]] = {
    "paper": {"seeds": 10, "confirm_seeds": 0},
    "confirmed": {"seeds": 10, "confirm_seeds": CONFIRM_SEEDS, "intervals": "best"},
}
"""The values that a rule gives to keys that the study does not set."""


class Settings(Spec):
    """The sizes of a layer of facts other than the searched one; one of them may be a list.

    Attributes:
        d_qk: key width of a head, d_head,qk.
        h: number of heads.
        total: the sum d_qk + d_vo of a head; mode grid then tries every way to split it. For a
            single h only.
    """

    later: ClassVar[frozenset[str]] = frozenset({"total"})

    d_qk: Annotated[Sizes, Listed] = (8,)
    h: Annotated[Sizes, Listed] = (1,)
    total: Annotated[Count, Field(ge=2, le=1000)] | None = None

    @model_validator(mode="after")
    def _one_list(self) -> Self:
        if len(self.d_qk) > 1 and len(self.h) > 1:
            raise ValueError(
                "h: a list beside that of d_qk; list the sizes of one, and give the other a number"
            )
        if self.total and (len(self.h) > 1 or self.d_qk != (8,)):
            raise ValueError("total: takes one h and no d_qk, which is the total less d_vo")
        return self


class Search(Spec):
    """Which widths are tried, and what passes.

    Attributes:
        axis: the width whose smallest passing value is sought: ``d_k``, or ``d_vo`` for model
            facts.
        per: the settings in which d_vo is searched: a list of d_qk, or of h. For axis d_vo only.
        max_d_vo: the largest d_vo to try; by default d_model, since the values of a head cannot
            have more dimensions.
        d_vo: the widths to try in mode grid on axis d_vo.
        rule: a preset for several keys; a key that the study sets itself takes precedence.
            ``paper``: ten seeds and no confirmation, as in App. A.2. ``confirmed``: also 20 fresh
            seeds, and an interval only for the best head count.
        mode: ``threshold`` finds the smallest passing d_k of each head count. ``grid`` trains every
            listed D_K that the head count divides; the threshold is then the smallest listed D_K
            that passes, where the next smaller listed one fails. ``widest`` tries one width for
            each head count, d_k = d_model, beyond which a head gains nothing, to find whether it
            passes at all.
        heads: the head counts to search. ``all`` searches every integer and confirms the winners.
            Among head counts that could have the same d_k, the largest is tried: if it fails, so
            would fewer heads of that width, which more heads contain.
        target: the mean score over the seeds that counts as a pass; by default the paper's, or the
            model's own.
        seeds: number of seeds per probe; they are numbered from 0.
        keep_within: a head count is searched to the end if its D_K lies above the best one by at
            most this share, or by at most one step of its d_k; ``none``, the default for axis d_vo,
            searches every head count to the end.
        max_D_K: the largest total width to try; by default 4 m' log2(m) / d_model, but at least 4
            h.
        intervals: which probes next to a threshold are trained on all seeds, for the intervals of
            App. A.2: those of every head count near the best (``true``), only those of the best and
            of ``keep_heads`` (``best``), or none (``false``).
        extra_seeds: if a pass lies below a fail, this many more seeds are trained at both widths
            before the head count is called ``inconsistent``.
        confirm_seeds: number of fresh seeds on which the threshold of the best head count must also
            pass, as must those of ``keep_heads``, or of all head counts with ``keep_within: none``.
            A threshold that does not pass counts as a fail from then on. 0 is the paper's protocol;
            with ``heads: all`` the default is 20.
        keep_heads: head counts that are searched to the end, however far above the best they lie.
        transition_seeds: number of seeds to train at every width near a threshold; 0 for none.
        transition_window: how far from the threshold those widths may lie, as a share of it.
        retest_steps: also search every cell at this multiple of its step limit; ``limited_by`` then
            says ``budget`` where longer training lowers a threshold. Loading a study replaces the
            key with these cells.
        D_K: the total widths to try in mode grid.
    """

    later: ClassVar[frozenset[str]] = frozenset({"axis", "per", "max_d_vo", "d_vo", "rule"})

    mode: Literal["threshold", "grid", "widest"] = "threshold"
    axis: Literal["d_k", "d_vo"] = "d_k"
    rule: Literal["paper", "confirmed"] | None = None
    per: Settings | None = None
    max_d_vo: Count | None = None
    d_vo: Sizes | None = None
    heads: Sizes | Literal["all"] = (1, 2, 4, 8, 16, 32, 64)
    target: Annotated[Real, Field(gt=0, le=1)] = 0.99
    seeds: Annotated[Count, Field(le=10_000)] = 10
    keep_within: Annotated[Real, Field(ge=0)] | None = 0.10
    max_D_K: Count | None = None
    intervals: StrictBool | Literal["best"] = True
    extra_seeds: Annotated[StrictInt, Field(ge=0, le=10_000)] = 10
    confirm_seeds: Annotated[StrictInt, Field(ge=0, le=10_000)] = 0
    keep_heads: Annotated[tuple[Count, ...], Field(max_length=1000)] = ()
    transition_seeds: Annotated[StrictInt, Field(ge=0, le=10_000)] = 0
    transition_window: Annotated[Real, Field(ge=0, le=10)] = 0.5
    retest_steps: Annotated[StrictInt, Field(ge=2)] | None = None
    D_K: Sizes | None = None

    @property
    def arms(self) -> tuple[int, ...] | Literal["all"]:
        """The settings to search: head counts, or what ``per`` lists."""
        if self.axis == "d_k":
            return self.heads
        per = self.per or Settings()
        if per.total:
            return self.widths
        return per.h if self.sizes.arm == "h" else per.d_qk

    @property
    def sizes(self) -> SizeAxis:
        """Which sizes are the arms and the values of the search."""
        if self.axis == "d_k":
            return CAPACITY
        per = self.per or Settings()
        if len(per.h) > 1:
            return SizeAxis("h", "d_vo", (("d_k", per.d_qk[0]),))
        return SizeAxis("d_k", "d_vo", (("h", per.h[0]),))

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths of mode grid: the listed D_K or d_vo, or every d_vo that splits a total."""
        return self.D_K or self.d_vo or tuple(range(1, self.total or 1))

    @property
    def total(self) -> int | None:
        """The sum d_qk + d_vo that mode grid splits, if any."""
        return self.per.total if self.per else None

    def listed(self, d_qk: int) -> tuple[int, ...]:
        """The d_vo that mode grid tries with a d_qk."""
        return (self.total - d_qk,) if self.total else self.widths

    def written(self) -> dict[str, Any]:
        """Its keys as a study file has them: those of its axis, with their defaults."""
        return self.model_dump(mode="json", exclude=set(OF_D_K) if self.axis == "d_vo" else None)

    def lists(self, arm: int) -> bool:
        """Whether a setting is to be searched."""
        return self.arms == "all" or arm in self.arms

    @model_validator(mode="before")
    @classmethod
    def _defaults_by_search(cls, keys: Any) -> Any:
        """Confirm a winner of ``heads: all``, the least of very many; keep every head on d_vo."""
        if not isinstance(keys, dict):
            return keys
        own: dict[str, Any] = dict(RULES.get(str(keys.get("rule")), {}))
        if str(keys.get("heads")) == "all" and not own:
            own["confirm_seeds"] = CONFIRM_SEEDS
        if keys.get("axis") == "d_vo":
            own["keep_within"] = None
        return {**own, **keys}

    @model_validator(mode="after")
    def _suits_its_axis_and_mode(self) -> Self:
        if self.rule == "confirmed" and self.mode != "threshold":
            raise ValueError(f"rule: confirmed; not for mode {self.mode}; leave it out")
        others, widths = (OF_D_VO, "D_K") if self.axis == "d_k" else (OF_D_K, "d_vo")
        self.leaves_out(others, f"not for axis {self.axis}")
        of_other_mode = [] if self.mode == "threshold" else [*OF_THRESHOLDS]
        if self.mode != "threshold" and self.keep_within is not None:  # null keeps all, as they do
            of_other_mode.append("keep_within")
        of_other_mode += [] if self.mode == "grid" else [widths]
        self.leaves_out(of_other_mode, f"not for mode {self.mode}")
        if not self.transition_seeds:
            self.leaves_out(["transition_window"], "has no use without transition_seeds")
        if self.total and (self.mode == "threshold" or self.d_vo):
            raise ValueError("per.total: only for mode grid, without d_vo, which follows from it")
        if self.mode == "grid" and not self.widths:
            raise ValueError(f"{widths}: missing; mode grid needs a list of widths")
        return self

    @model_validator(mode="after")
    def _heads_have_widths(self) -> Self:
        unknown = [h for h in self.keep_heads if not self.lists(h)]
        if unknown:
            raise ValueError(f"keep_heads: {unknown[0]} is not one of heads; list it there too")
        if self.heads == "all":
            if self.mode != "threshold":
                raise ValueError(
                    f"heads: all; mode {self.mode} needs a list of heads, such as [1, 2, 4]"
                )
            return self
        widths = self.D_K or ()
        largest = max(widths, default=self.max_D_K)
        for h in self.heads:
            at_most("heads", h, largest or h, "with these D_K, as each needs a width of 1")
            if widths and all(width % h for width in widths):
                raise ValueError(
                    f"heads: {h} divides none of D_K {list(widths)}; list a multiple of {h}, or "
                    "leave the head out"
                )
        return self
