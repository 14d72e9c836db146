"""An attention layer of a user's own, or of the zoo, as a cell names it: the text of its file."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from rgr_dist.study.spec import Spec

HOW = "a layer of your own is named by its file, mine.py, and one of the zoo {zoo: NAME}"
"""How a study names a layer that has no record."""

Key = StrictBool | StrictInt | StrictFloat | StrictStr


def _pairs(keys: Any) -> Any:
    """Keys as pairs, in the order of the alphabet, so that equal ones are written alike."""
    return sorted(keys.items()) if isinstance(keys, dict) else keys


class Layer(Spec):
    """A layer by the digest of its file's text and by its keys, which are its identity.

    Attributes:
        digest: of the text, under which ``study.assets`` has it.
        name: of the class in that text.
        keys: every key of its own, defaults too.
    """

    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    name: str
    keys: Annotated[tuple[tuple[str, Key], ...], BeforeValidator(_pairs)] = ()

    @property
    def shown(self) -> str:
        """``grouped(groups=2)`` or ``tied``: its class as a file is named, and its keys if any."""
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.name).lower()
        keys = ", ".join(f"{key}={value}" for key, value in self.keys)
        return f"{name}({keys})" if keys else name
