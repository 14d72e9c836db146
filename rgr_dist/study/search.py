"""How a study is searched."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StrictInt, model_validator

from rgr_dist.study.axis import CAPACITY, SizeAxis
from rgr_dist.study.spec import Count, Listed, Real, Sizes, Spec, at_most

OF_D_K = ("heads", "max_D_K", "D_K")
"""Keys that only a search on axis d_k takes."""
OF_D_VO = ("per", "max_d_vo", "d_vo")
"""Keys that only a search on axis d_vo takes."""
OF_THRESHOLDS = ("max_D_K", "max_d_vo", "confirm_seeds", "keep_within")
"""Keys that only mode threshold takes."""


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
        mode: ``threshold`` finds the smallest passing d_k of each head count. ``grid`` trains every
            listed D_K that the head count divides; the threshold is then the smallest listed D_K
            that passes, where the next smaller listed one fails.
        heads: the head counts to search.
        target: the mean score over the seeds that counts as a pass; by default the paper's, or the
            model's own.
        seeds: number of seeds per probe; they are numbered from 0.
        confirm_seeds: number of fresh seeds on which the threshold of the best head count must also
            pass, or of all head counts with ``keep_within: null``. A threshold that does not pass
            counts as a fail from then on. 0 is the paper's protocol.
        keep_within: a head count is searched to the end if its D_K lies above the best one by at
            most this share, or by at most one step of its d_k; ``null``, the default for axis d_vo,
            searches every head count to the end.
        max_D_K: the largest total width to try; by default 4 m' log2(m) / d_model, but at least 4
            h.
        D_K: the total widths to try in mode grid; ``widest`` tries d_k = d_model alone, beyond
            which a head gains nothing.
    """

    later: ClassVar[frozenset[str]] = frozenset({"axis", "per", "max_d_vo", "d_vo"})

    mode: Literal["threshold", "grid"] = "threshold"
    axis: Literal["d_k", "d_vo"] = "d_k"
    per: Settings | None = None
    max_d_vo: Count | None = None
    d_vo: Sizes | None = None
    heads: Sizes = (1, 2, 4, 8, 16, 32, 64)
    target: Annotated[Real, Field(gt=0, le=1)] = 0.99
    seeds: Annotated[Count, Field(le=10_000)] = 10
    confirm_seeds: Annotated[StrictInt, Field(ge=0, le=10_000)] = 20
    keep_within: Annotated[Real, Field(ge=0)] | None = 0.10
    max_D_K: Count | None = None
    D_K: Sizes | Literal["widest"] | None = None

    @property
    def arms(self) -> tuple[int, ...]:
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
        if self.D_K == "widest":
            return ()
        return self.D_K or self.d_vo or tuple(range(1, self.total or 1))

    @property
    def total(self) -> int | None:
        """The sum d_qk + d_vo that mode grid splits, if any."""
        return self.per.total if self.per else None

    def listed(self, d_qk: int) -> tuple[int, ...]:
        """The d_vo that mode grid tries with a d_qk."""
        return (self.total - d_qk,) if self.total else self.widths

    @model_validator(mode="before")
    @classmethod
    def _keeps_every_setting_of_facts(cls, keys: Any) -> Any:
        if isinstance(keys, dict) and keys.get("axis") == "d_vo":
            return {"keep_within": None, **keys}
        return keys

    @model_validator(mode="after")
    def _suits_its_axis_and_mode(self) -> Self:
        others, widths = (OF_D_VO, "D_K") if self.axis == "d_k" else (OF_D_K, "d_vo")
        self.leaves_out(others, f"not for axis {self.axis}")
        if self.mode == "grid":
            self.leaves_out(
                [key for key in OF_THRESHOLDS if getattr(self, key) is not None],
                "not for mode grid",
            )
        else:
            self.leaves_out([widths], "not for mode threshold")
        if self.total and (self.mode == "threshold" or self.d_vo):
            raise ValueError("per.total: only for mode grid, without d_vo, which follows from it")
        if self.mode == "grid" and not (self.widths or self.D_K):
            raise ValueError(f"{widths}: missing; mode grid needs a list of widths")
        return self

    @model_validator(mode="after")
    def _heads_have_widths(self) -> Self:
        widths = self.widths if self.axis == "d_k" else ()
        largest = max(widths, default=self.max_D_K)
        for h in self.heads:
            at_most("heads", h, largest or h, "with these D_K, as each needs a width of 1")
            if widths and all(width % h for width in widths):
                raise ValueError(
                    f"heads: {h} divides none of D_K {list(widths)}; list a multiple of {h}, or "
                    "leave the head out"
                )
        return self
