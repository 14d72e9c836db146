"""How often each token occurs: from a list of counts, or counted in a text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rgr_dist.study.errors import StudyError

LINES_AT_ONCE = 10_000
"""Lines of text that are split into tokens at once; a bound on memory."""
MISSING = {
    "counts": "give a file of token and count, or a text to count them in as text",
    "text": "the paper counts in WikiText-103, training part: fetch it from "
    "https://huggingface.co/datasets/Salesforce/wikitext and put it there as plain text",
}
"""What to do where a file is not there, by the key that names it."""

Counts = npt.NDArray[np.int64]


def absent(key: str, path: Path) -> str:
    """What to say of a file of ``counts`` or ``text`` that is not there."""
    return f"{path}: is not there; {MISSING[key]}"


def read_counts(path: Path, vocabulary: int) -> Counts:
    """How often each token occurs, int64 [vocabulary], from two columns of token and count.

    Columns are apart by a comma or by blanks; a first line without digits names them.

    Raises:
        StudyError: the file is not there, or is no such list.
    """
    counts = np.zeros(vocabulary, dtype=np.int64)
    seen = np.zeros(vocabulary, dtype=bool)
    for number, line in enumerate(_lines("counts", path), 1):
        row = line.replace(",", " ").split()
        if not row or (number == 1 and not any(sign.isdigit() for sign in line)):
            continue
        place = f"counts: {path}: line {number} is '{line.strip()[:40]}'"
        if len(row) != 2 or not all(value.isdecimal() and len(value) < 19 for value in row):
            raise StudyError(f"{place}; a line is a token's number and its count")
        token = int(row[0])
        if token >= vocabulary:
            raise StudyError(f"{place}; the table has tokens 0 to {vocabulary - 1}")
        if seen[token]:
            raise StudyError(f"{place}; token {token} stands there twice")
        counts[token], seen[token] = int(row[1]), True
    return counts


def count_tokens(text: Path, tokenizer: Path, limit: int, vocabulary: int) -> Counts:
    """How often each token occurs among the first ``limit`` of a text, int64 [vocabulary].

    Raises:
        StudyError: a file is not there, or the tokenizer is of another table.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        wanted = "needs the package tokenizers; pip install 'rgr-dist[gpt2]'"
        raise StudyError(f"text: {wanted}, or give counts") from None
    try:
        split = Tokenizer.from_file(str(tokenizer))
    except Exception as error:  # the library has no narrower one
        raise StudyError(f"source: {tokenizer}: is no tokenizer: {error}") from None
    counts, left, lines = np.zeros(vocabulary, dtype=np.int64), limit, _lines("text", text)
    while left and (block := list(itertools.islice(lines, LINES_AT_ONCE))):
        encoded = split.encode_batch(block, add_special_tokens=False)
        ids = np.fromiter(itertools.chain.from_iterable(e.ids for e in encoded), np.int64)[:left]
        left -= len(ids)
        if len(ids) and ids.max() >= vocabulary:
            raise StudyError(
                f"source: {tokenizer} has a token {ids.max()}, the table {vocabulary} of them; "
                "give the tokenizer of the same model"
            )
        counts += np.bincount(ids, minlength=vocabulary)
    return counts


def _lines(key: str, path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as file:
            yield from file
    except FileNotFoundError:
        raise StudyError(f"{key}: {absent(key, path)}") from None
    except UnicodeDecodeError:
        raise StudyError(f"{key}: {path}: not a text file in UTF-8") from None
    except OSError as error:
        raise StudyError(f"{key}: {path}: cannot be read: {error.strerror}") from None
