"""The sizes of a layer that a study searches: an arm for each setting, with a width as its value.

Whatever is counted in the searched width is named after it here: columns of tables, keys of JSON,
labels of axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rgr_dist.search.threshold import Key

Size = Literal["h", "d_k", "d_vo"]
TOTALS = {"d_k": "D_K", "d_vo": "D_V"}
"""The name of each searched width's total over the heads, which is what a probe costs."""
SHOWN = {"d_k": "d_qk"}
"""What listings call a stored size if d_vo is the searched width."""


@dataclass(frozen=True)
class SizeAxis:
    """The sizes of a layer as the arms and values of a search; each is a column of stored runs.

    Attributes:
        arm: the size that tells the settings apart.
        value: the width of a head whose smallest passing value is sought.
        fixed: sizes that are the same in every setting.
    """

    arm: Size
    value: Size
    fixed: tuple[tuple[Size, int], ...] = ()

    @property
    def columns(self) -> tuple[Size, ...]:
        """The columns that identify a probe in its cell: ``h, d_k``, and ``d_vo`` if searched."""
        return ("h", "d_k") if self.value == "d_k" else ("h", "d_k", "d_vo")

    @property
    def total(self) -> str:
        """The column of the total width over the heads, which is the cost."""
        return TOTALS[self.value]

    @property
    def low(self) -> str:
        """The column of a threshold's optimistic total width (App. A.2)."""
        return f"{self.total}_low"

    @property
    def high(self) -> str:
        """The column of a threshold's conservative total width."""
        return f"{self.total}_high"

    @property
    def first(self) -> str:
        """The column of the smallest total width that passes on the first seeds alone."""
        return f"{self.total}_first"

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of a threshold's sizes in listings: ``h, d_k, D_K, D_K_low, D_K_high``."""
        return (*map(self.shown, self.columns), self.total, self.low, self.high)

    @property
    def whole(self) -> tuple[str, ...]:
        """The columns of a threshold's widths, whole numbers that may be missing."""
        return (self.value, self.total, self.low, self.high, self.first)

    @property
    def shown_arm(self) -> str:
        """What listings call the arm: ``h``, or ``d_qk``."""
        return self.shown(self.arm)

    @property
    def has_rivals(self) -> bool:
        """Whether the best setting is sought, so that it is in doubt while any setting is."""
        return self.value == "d_k"

    @property
    def best_arm(self) -> str:
        """The column of a cell's best setting: ``h_star``, or ``d_qk_star``."""
        return f"{self.shown_arm}_star"

    @property
    def arms(self) -> str:
        """What settings are called in the plural."""
        return "heads" if self.arm == "h" else f"values of {self.shown_arm}"

    @property
    def arms_key(self) -> str:
        """The key of a list of settings in JSON."""
        return "heads" if self.arm == "h" else "settings"

    def setting(self, arm: int) -> dict[str, int]:
        """The sizes of a setting, by their columns."""
        return {**dict(self.fixed), self.arm: arm}

    def config(self, arm: int, value: int) -> dict[str, int]:
        """The sizes of a probe, by their columns."""
        return {**self.setting(arm), self.value: value}

    def key(self, row: Mapping[Any, Any]) -> Key:
        """The key of the probe that a stored run belongs to."""
        return Key(int(row[self.arm]), int(row[self.value]))

    def width(self, arm: int, value: int) -> int:
        """The total width over the heads."""
        return self.setting(arm)["h"] * value

    def shown(self, size: str) -> str:
        """What listings call a column; only sizes may have another name."""
        return SHOWN.get(size, size) if self.value == "d_vo" else size

    def probe_name(self, arm: int, value: int) -> str:
        """The name of a probe, such as ``h=4, d_k=5``."""
        return f"{self.shown_arm}={arm}, {self.shown(self.value)}={value}"


CAPACITY = SizeAxis(arm="h", value="d_k")
"""For relations: the smallest d_k of each head count."""
