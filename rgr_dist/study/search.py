"""How a study is searched."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, model_validator

from rgr_dist.study.spec import Count, Real, Sizes, Spec, at_most

OF_THRESHOLDS = ("max_D_K", "confirm_seeds", "keep_within")
"""Keys that only mode threshold takes."""


class Search(Spec):
    """Which widths are tried, and what passes.

    Attributes:
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
            most this share, or by at most one step of its d_k; ``null`` searches
            every head count to the end.
        max_D_K: the largest total width to try; by default 4 m' log2(m) / d_model, but at least 4
            h.
        D_K: the total widths to try in mode grid.
    """

    mode: Literal["threshold", "grid"] = "threshold"
    heads: Sizes = (1, 2, 4, 8, 16, 32, 64)
    target: Annotated[Real, Field(gt=0, le=1)] = 0.99
    seeds: Annotated[Count, Field(le=10_000)] = 10
    confirm_seeds: Annotated[StrictInt, Field(ge=0, le=10_000)] = 20
    keep_within: Annotated[Real, Field(ge=0)] | None = 0.10
    max_D_K: Count | None = None
    D_K: Sizes | None = None

    @model_validator(mode="after")
    def _suits_its_mode(self) -> Self:
        if self.mode == "threshold":
            self.leaves_out(["D_K"], "not for mode threshold")
            return self
        given = [key for key in OF_THRESHOLDS if getattr(self, key) is not None]
        self.leaves_out(given, "not for mode grid")
        if self.D_K is None:
            raise ValueError("D_K: missing; mode grid needs a list of widths")
        return self

    @model_validator(mode="after")
    def _heads_have_widths(self) -> Self:
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
