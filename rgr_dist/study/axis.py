"""Which sizes of a layer a study searches: an arm for each setting, the smallest passing width."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from search.axis import Axis
from search.protocol import ProbeKey, Words

Size = Literal["h", "d_k", "d_vo"]
TOTALS = {"d_k": "D_K", "d_vo": "D_V"}
"""The total over the heads of the searched width of a head: what a probe costs."""
SHOWN = {"d_k": "d_qk"}
"""What listings call a stored size where d_vo is searched beside it."""


@dataclass(frozen=True)
class SizeAxis(Axis):
    """The sizes of a layer as the arms and values of a search; each is a column of stored runs.

    Attributes:
        arm: the size that tells the settings apart.
        value: the width of a head whose smallest passing value is searched.
        fixed: sizes that are the same in every setting.
    """

    arm: Size
    value: Size
    fixed: tuple[tuple[Size, int], ...] = ()

    @property
    def total(self) -> str:
        """The column of the total width over the heads, which is the cost."""
        return TOTALS[self.value]

    @property
    def arms(self) -> str:
        """What several settings are called."""
        return "heads" if self.arm == "h" else f"values of {self.shown(self.arm)}"

    @property
    def words(self) -> Words:
        """How the search's texts name them."""
        return Words(value=self.value, cost=self.total, arms=self.arms)

    def setting(self, arm: int) -> dict[str, int]:
        """The sizes of a setting, by their columns."""
        return {**dict(self.fixed), self.arm: arm}

    def key(self, row: Mapping[Any, Any]) -> ProbeKey:
        """The probe that a stored run is of."""
        return ProbeKey(int(row[self.arm]), int(row[self.value]))

    def width(self, arm: int, value: int) -> int:
        """The total width over the heads."""
        return self.setting(arm)["h"] * value

    def shown(self, size: str) -> str:
        """What listings call a size."""
        return SHOWN.get(size, size) if self.value == "d_vo" else size

    def probe_name(self, arm: int, value: int) -> str:
        """``h=4, d_k=5``."""
        return f"{self.shown(self.arm)}={arm}, {self.shown(self.value)}={value}"


CAPACITY = SizeAxis(arm="h", value="d_k")
"""Of relations: the smallest d_k of each head count."""
