"""A user's own attention layer, or one of the zoo, as a cell names it: by its file's text."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr

from rgr_dist.study.spec import Spec

HOW = "a layer of your own is named by its file, mine.py, and one of the zoo {zoo: NAME}"
"""How a study names a layer that has no record."""

Key = StrictBool | StrictInt | StrictFloat | StrictStr


class Layer(Spec):
    """A layer, identified by the digest of its file's text and by its keys.

    Attributes:
        digest: digest of the text, under which ``study.assets`` keeps it.
        name: name of the class in that text.
        keys: every key of its own, in alphabetical order, including those that have their default.
    """

    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    name: str
    keys: tuple[tuple[str, Key], ...] = ()

    @property
    def shown(self) -> str:
        """``grouped(groups=2)`` or ``tied``: its class in snake case, and its keys if any."""
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.name).lower()
        keys = ", ".join(f"{key}={value}" for key, value in self.keys)
        return f"{name}({keys})" if keys else name
