"""Addresses of cells and runs: hashes of canonical JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
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


def cell_address(config_json: str) -> str:
    """Address of a cell, from its canonical JSON."""
    return digest_of_text(f'{{"cell":{config_json},"protocol":{PROTOCOL}}}', 16)


def run_json(cell_json: str, own: Mapping[str, Any]) -> str:
    """Canonical JSON of a run, from that of its cell and its own keys."""
    keys = canonical_json({"protocol": PROTOCOL, **own}).removeprefix("{")
    return f'{{"cell":{cell_json},{keys}'  # the key that sorts first


def run_address(config_json: str) -> str:
    """Address of a run, from its canonical JSON."""
    return digest_of_text(config_json, 32)
