"""Damages valid inputs: byte by byte, token by token, and in what they are made of.

Nothing here knows what a reader refuses: a damaged input may well be valid.
"""

from __future__ import annotations

import copy
import random
import re
from typing import Any

TOKEN = re.compile(rb"\w+|\s+|[^\w\s]")
ODD = (
    b"", b"0", b"-1", b"1:30", b"017", b"0x1f", b"1e3", b"1.0e+999", b"9" * 30, b"9" * 5000, b".5",
    b".nan", b"-.inf", b"true", b"null", b"~", b"yes", b"2026-11-24", b"!!binary", b"!!set", b"!x ",
    b"!!int ''", b"&a", b"*a", b"<<", b"? ", b"- ", b"---\n", b"...", b"|\n", b">-", b"%YAML 9.9\n",
    b"[", b"]", b"{", b"}", b"[" * 3000, b": ", b",", b"#", b"'", b'"', b"\\", b"\t", b"\r", b"\0",
    b"\x1b[2J", b"\xff", b"\xef\xbb\xbf", "\u2028\u202e\u0663²".encode(), b"x" * 10_000, b"all",
    b"2147483647", b"2147483648", b"18446744073709551616", b"1_000", b"/dev/zero", b"..", b" ",
)  # fmt: skip
"""Tokens that some reader of some language takes for something."""


def of_bytes(rng: random.Random, content: bytes) -> bytes:
    """A content with some of its bytes changed, left out, repeated or moved."""
    found = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at, length = rng.randint(0, len(found)), rng.choice([1, 1, 4, 64])
        new = rng.choice([rng.randbytes(length), b"\0" * length, b"\xff" * length, rng.choice(ODD)])
        kind = rng.randrange(6)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del found[at : at + length]
        elif kind == 2:
            found[at:at] = found[at : at + length] * rng.choice([1, 100])
        elif kind == 3:
            del found[at:]
        elif kind == 4:
            found[at : at + length] = new
        else:
            found[at:at] = new
    return bytes(found)


def of_tokens(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """A text with some of its words changed, those of other texts and odd ones among them."""
    found = TOKEN.findall(content)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at, other = rng.randint(0, len(found)), TOKEN.findall(rng.choice(others)) or [b""]
        new = rng.choice([rng.choice(ODD), rng.choice(other), rng.choice(found or [b""])])
        kind = rng.randrange(5)
        if kind == 0:
            del found[at : at + 1]
        elif kind == 1:
            found.insert(at, new)
        elif kind == 2:
            start = rng.randrange(len(other))
            found[at:at] = other[start : start + 20]
        else:
            found[at : at + 1] = [new]
    return b"".join(found)


def of_structure(rng: random.Random, document: Any) -> Any:
    """A document with some of its parts left out, renamed, moved or replaced."""
    found = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 2, 4])):
        inner, key = rng.choice(_places(found) or [([None], 0)])
        donor, other = rng.choice(_places(found) or [([None], 0)])
        kind = rng.randrange(5)
        if kind == 0:
            del inner[key]
        elif kind == 1 and isinstance(inner, dict):
            inner[word(rng)] = inner.pop(key)
        elif kind == 2:
            inner[key] = copy.deepcopy(donor[other])
        else:
            inner[key] = value(rng)
    return found


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Where every value of a document is: what holds it, and its key or number."""
    if not isinstance(document, dict | list):
        return []
    keys = list(document) if isinstance(document, dict) else list(range(len(document)))
    return [(document, key) for key in keys] + [
        place for key in keys for place in _places(document[key])
    ]


def word(rng: random.Random) -> str:
    """A word, mostly of letters."""
    odd = rng.choice(ODD).decode(errors="replace")
    return rng.choice(["".join(rng.choices("abcdehkmoxDK_", k=rng.randint(1, 8))), odd])


def value(rng: random.Random, deep: int = 0) -> Any:
    """A value that JSON has."""
    kind = rng.randrange(11 if deep < 4 else 8)
    if kind == 8:
        return [value(rng, deep + 1) for _ in range(rng.choice([0, 1, 2, 3, 200]))]
    if kind == 9:
        return {word(rng): value(rng, deep + 1) for _ in range(rng.randint(0, 3))}
    if kind == 10:
        return [value(rng, 4)] * rng.choice([2, 3000])
    return [
        rng.randint(-3, 40), rng.choice([0, 1, 2**31 - 1, 2**31, 2**63, 2**64, -(2**70), 10**40]),
        rng.choice([0.5, -0.0, 1e-300, 1e300, 0.99, 1.5, 5.0]), word(rng), None, True, False,
        rng.randint(1, 2**31),
    ][kind]  # fmt: skip
