"""Addresses of cells and runs: hashes of canonical JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Any

PROTOCOL = 1
"""Version of the training protocol. Raise it when the same study would give other numbers."""


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any, length: int) -> str:
    """First ``length`` hex digits of the SHA-256 of the canonical JSON of ``value``."""
    return digest_of_text(canonical_json(value), length)


def digest_of_text(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
