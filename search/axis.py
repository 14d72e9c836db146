"""The axis of a search: which value is searched, in which settings, and at what cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from rgr_dist.search.protocol import Words


class Axis(ABC):
    """What the arms and the values of a search stand for."""

    @property
    @abstractmethod
    def words(self) -> Words:
        """How the search's texts name the value, its cost and several arms."""

    @abstractmethod
    def setting(self, arm: int) -> Mapping[str, Any]:
        """The keys that an arm stands for, with their values."""

    def config(self, arm: int, value: int) -> dict[str, Any]:
        """The keys of a probe: those of its setting, and the value."""
        return {**self.setting(arm), self.words.value: value}
