"""Loads user-supplied token embeddings: a model's most frequent tokens, and EOS as NULL.

A table is the tensor ``wte.weight`` of a safetensors file, as GPT-2 has it, whose last row is
the end-of-text token. The table and its tokenizer are read from a local folder, or fetched by the
model's name from the Hugging Face hub.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, StrictStr, model_validator

from rgr_dist.study.errors import StudyError
from rgr_dist.study.input_file import check_file
from rgr_dist.study.spec import Count, Spec

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
TENSORS = ("wte.weight", "transformer.wte.weight")
HUB = "https://huggingface.co"
GPT_2 = "openai-community/gpt2"
INSTALL = "pip install 'rgr-dist[gpt2]'"

FLOATS = ("F16", "F32", "F64")
"""Formats of number that a table may have; numpy has no others."""
HUB_WITHIN = 5.0
"""Seconds that the hub has to answer."""
LINES_AT_ONCE = 10_000
"""Lines of text that are split into tokens at once; a bound on memory."""
MISSING = {
    "counts": "give a file of token and count, or a text to count them in as text",
    "text": "the paper counts in WikiText-103, training part: fetch it from "
    "https://huggingface.co/datasets/Salesforce/wikitext and put it there as plain text",
}
"""What to do about a missing file, by the key that names it."""


Table = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]


class TableFile(Spec):
    """Rows of a model's token table (Sec. 7.3), unchanged; paths are relative to the study file.

    Attributes:
        source: a folder with ``model.safetensors``, such a file, or a model's name on the hub.
        counts: how often each token occurs: two columns of whole numbers, token and count.
        text: instead of ``counts``, a text to be split into tokens by the source's tokenizer.
        tokens: how many tokens of the text count; the paper takes the first 10 million.
    """

    family: Literal["table"]
    source: Annotated[StrictStr, Field(min_length=1)]
    counts: Annotated[StrictStr, Field(min_length=1)] | None = None
    text: Annotated[StrictStr, Field(min_length=1)] | None = None
    tokens: Count = 10_000_000

    @model_validator(mode="after")
    def _counts_or_text(self) -> TableFile:
        if (self.counts is None) == (self.text is None):
            raise ValueError(
                "counts: give either counts, a file of token and count, or text, "
                "a text file to count them in"
            )
        return self

    def located(self, home: Path) -> dict[str, Any]:
        """Its keys, with paths that do not depend on where the study file lies."""
        keys = self.model_dump(mode="json", exclude={"family"}, exclude_none=True)
        paths = [name for name in ("source", "counts", "text") if name in keys]
        here = [name for name in paths if name != "source" or (home / self.source).exists()]
        return keys | {name: str((home / keys[name]).absolute()) for name in here}


class Vocabulary:
    """A table of token vectors and the order of its tokens by how often they occur."""

    def __init__(self, written: TableFile, home: Path) -> None:
        """Read the files that a study names.

        Raises:
            StudyError: naming the key, what is missing, where to fetch it and where to put it.
        """
        key = "text" if written.counts is None else "counts"
        path = home / str(getattr(written, key))
        try:
            files = _locate(written.source, home, [WEIGHTS] + [TOKENIZER] * (key == "text"))
        except StudyError as fault:
            if path.exists():
                raise
            raise StudyError(f"{fault}; {key}: {absent(key, path)}") from None
        self.table = read_table(files[0])
        if key == "counts":
            counts = read_counts(path, len(self.table))
        else:
            counts = count_tokens(path, files[1], written.tokens, len(self.table))
        counts[-1] = 0  # end of text is NULL, never an item
        by_count = np.lexsort((np.arange(len(counts)), -counts))
        self.ranked = by_count[: int((counts > 0).sum())]

    def rows(self, m: int, d_model: int, null: bool) -> Table:
        """Vectors of the m most frequent tokens, most frequent first, and then of NULL.

        Raises:
            StudyError: the table is of another width, or has too few tokens that occur.
        """
        width = self.table.shape[1]
        if width != d_model:
            raise StudyError(f"source: its vectors have width {width}; give d_model: {width}")
        if len(self.ranked) < m:
            raise StudyError(
                f"counts: {len(self.ranked)} tokens occur, and m = {m} needs as many; "
                "give a smaller m, or counts of more text"
            )
        chosen = [*self.ranked[:m], len(self.table) - 1] if null else self.ranked[:m]
        return self.table[chosen]


def read_table(path: Path) -> Table:
    """The token table in a model's weights, float32 [tokens, width].

    Raises:
        StudyError: the file has no such table.
    """
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise StudyError(f"source: {path}: needs the package safetensors; {INSTALL}") from None
    check_file(path, "give a safetensors file")
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            name = next((name for name in TENSORS if name in names), None)
            if name is None:
                raise StudyError(
                    f"source: {path}: has no tensor {' or '.join(TENSORS)}; "
                    "give the weights of a GPT-2"
                )
            kind = file.get_slice(name).get_dtype()
            if kind not in FLOATS:
                raise StudyError(
                    f"source: {path}: {name} is of type {kind}; valid: {', '.join(FLOATS)}"
                )
            values = np.asarray(file.get_tensor(name), dtype=np.float32)
    except (SafetensorError, OSError) as error:
        raise StudyError(
            f"source: {path}: cannot be read: {error}; give a safetensors file"
        ) from None
    if values.ndim != 2 or len(values) < 2 or not np.isfinite(values).all():
        raise StudyError(f"source: {path}: {name} is not a table of numbers")
    return values


def _locate(source: str, home: Path, names: Sequence[str]) -> list[Path]:
    """The paths of a model's files: local ones, else fetched from the hub.

    Raises:
        StudyError: some are in neither; each is named.
    """
    local = home / source
    if local.exists():
        folder = local.parent if local.is_file() else local
        paths = [local if name == WEIGHTS and local.is_file() else folder / name for name in names]
        missing = [path.name for path in paths if not path.is_file()]
        if missing:
            none = " and no ".join(missing)
            raise StudyError(f"source: {folder}: has no {none}; {_fetch(GPT_2, missing, folder)}")
        return paths
    try:
        from huggingface_hub import hf_hub_download, model_info
        from huggingface_hub.errors import LocalEntryNotFoundError

        # It tells of every retry; one line will say what failed.
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        with suppress(LocalEntryNotFoundError):
            return [Path(hf_hub_download(source, name, local_files_only=True)) for name in names]
        model_info(source, timeout=HUB_WITHIN)  # a download alone would try for minutes
        return [Path(hf_hub_download(source, name)) for name in names]
    except ImportError:
        reason = f"the hub needs {INSTALL}"
    except Exception as error:  # no network, no permission, no such name: the hub raises many
        reason = f"the hub gives none ({type(error).__name__})"
    raise StudyError(
        f"source: {source}: no {' and no '.join(names)} in a folder {local}, and {reason}; "
        f"{_fetch(source, names, local)}"
    )


def _fetch(model: str, names: Sequence[str], folder: Path) -> str:
    urls = " and ".join(f"{HUB}/{model}/resolve/main/{name}" for name in names)
    return f"fetch {urls} and put {'them' if len(names) > 1 else 'it'} into {folder}/"


def absent(key: str, path: Path) -> str:
    """What to say of a missing file of ``counts`` or ``text``."""
    return f"{path}: does not exist; {MISSING[key]}"


def read_counts(path: Path, vocabulary: int) -> Counts:
    """How often each token occurs, int64 [vocabulary], from two columns of token and count.

    Columns are separated by a comma or spaces; a first line without digits is a header.

    Raises:
        StudyError: the file is missing, or is not such a list.
    """
    counts = np.zeros(vocabulary, dtype=np.int64)
    seen = np.zeros(vocabulary, dtype=bool)
    for number, line in enumerate(_lines("counts", path), 1):
        row = line.replace(",", " ").split()
        if not row or (number == 1 and not any(sign.isdigit() for sign in line)):
            continue
        line_named = f"counts: {path}: line {number} is '{line.strip()[:40]}'"
        if len(row) != 2 or not all(value.isdecimal() and len(value) < 19 for value in row):
            raise StudyError(f"{line_named}; a line is a token's number and its count")
        token = int(row[0])
        if token >= vocabulary:
            raise StudyError(f"{line_named}; the table has tokens 0 to {vocabulary - 1}")
        if seen[token]:
            raise StudyError(f"{line_named}; token {token} is listed twice")
        counts[token], seen[token] = int(row[1]), True
    return counts


def count_tokens(text: Path, tokenizer: Path, limit: int, vocabulary: int) -> Counts:
    """How often each token occurs among the first ``limit`` of a text, int64 [vocabulary].

    Raises:
        StudyError: a file is missing, or the tokenizer belongs to another table.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        wanted = "needs the package tokenizers; pip install 'rgr-dist[gpt2]'"
        raise StudyError(f"text: {wanted}, or give counts") from None
    try:
        split = Tokenizer.from_file(str(tokenizer))
    except Exception as error:  # the library has no narrower one
        raise StudyError(f"source: {tokenizer}: is not a tokenizer: {error}") from None
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
        if path.exists():
            check_file(path, "give a text file")
        with path.open(encoding="utf-8") as file:
            yield from file
    except FileNotFoundError:
        raise StudyError(f"{key}: {absent(key, path)}") from None
    except UnicodeDecodeError:
        raise StudyError(f"{key}: {path}: not a text file in UTF-8") from None
    except OSError as error:
        raise StudyError(f"{key}: {path}: cannot be read: {error.strerror}") from None
