"""What a study's search expects of each of its cells, as kept beside its tables: ``prior.json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, TypeAdapter

Positive = Annotated[float, Field(ge=1e-9, le=1e12)]
"""As far from 0 and infinity as any expected width: their quotients are numbers, too."""


@dataclass(frozen=True)
class Expectation:
    """What to expect of one cell; the keys of ``prior.json``.

    Attributes:
        D_K: expected smallest passing total width: D_K, or D_V of facts.
        h: head count, or other setting, at which it is expected.
        spread: factor from ``D_K`` to the end of its 95 % prediction interval.
        source: what the expectation rests on.
    """

    D_K: Positive
    h: Positive
    spread: Annotated[float, Field(gt=1, le=1e12)]
    source: str


def parse_prior(text: str) -> dict[str, Expectation]:
    """What ``prior.json`` says of each cell, by cell_id; raises ValueError if it is damaged."""
    return TypeAdapter(dict[str, Expectation]).validate_json(text)
