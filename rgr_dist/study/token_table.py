"""Loads user-supplied token embeddings: a model's most frequent tokens, and EOS as NULL.

A table is the tensor ``wte.weight`` of a safetensors file, as in GPT-2; its last row is the
end-of-text token. The table and its tokenizer are read from a local folder, or fetched by the
model's name from the Hugging Face hub.
"""

from __future__ import annotations

import io
import itertools
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import model_validator

from rgr_dist.study.errors import StudyError, within
from rgr_dist.study.input_file import LIST, TABLE, FileName, exists, opened, read_pairs, read_tensor
from rgr_dist.study.spec import Count, Spec

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
TENSORS = ("wte.weight", "transformer.wte.weight")
WANTED = f"give the weights of a GPT-2 as a safetensors file, with the table {TENSORS[0]}"
HUB = "https://huggingface.co"
GPT_2 = "openai-community/gpt2"
INSTALL = "pip install 'rgr-dist[gpt2]'"

HUB_WITHIN = 5.0
"""Seconds within which the hub must answer."""
LINES_AT_ONCE = 500
"""Lines of text that are split into tokens at once; a bound on memory."""
LONGEST_LINE = 2**20
"""Most characters of a line, so that a text without line breaks is not split all at once."""
COUNTS = "give two columns of whole numbers, token and count, or a text to count them in as text"
TEXT = (
    "the paper counts in WikiText-103, training part: fetch it from "
    "https://huggingface.co/datasets/Salesforce/wikitext and put it there as plain text"
)

Table = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]


class TableFile(Spec):
    """Rows of a model's token table (Sec. 7.3), unchanged; paths are relative to the study file.

    Attributes:
        source: a folder that holds ``model.safetensors``, such a file itself, or a model's name on
            the hub.
        counts: a file that says how often each token occurs: two columns of whole numbers, token
            and count.
        text: in place of ``counts``, a text that the source's tokenizer splits into tokens.
        tokens: how many tokens of the text are counted; the paper takes the first 10 million.
    """

    family: Literal["table"]
    source: FileName
    counts: FileName | None = None
    text: FileName | None = None
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
        keys = self.model_dump(exclude={"family"}, exclude_none=True)
        paths = [name for name in ("source", "counts", "text") if name in keys]
        here = [name for name in paths if name != "source" or exists(home / self.source)]
        return keys | {name: str((home / keys[name]).absolute()) for name in here}


class Vocabulary:
    """A table of token vectors, and its tokens ordered by how often they occur."""

    def __init__(self, written: TableFile, home: Path) -> None:
        """Read the files that a study names.

        Raises:
            StudyError: naming the key, what is missing, where to fetch it and where to put it.
        """
        needed = [WEIGHTS] if written.text is None else [WEIGHTS, TOKENIZER]
        try:
            files = _locate(written.source, home, needed)
            self.table = read_table(files[0])
            if written.text is None:
                counts = read_counts(home / str(written.counts), len(self.table))
            else:
                text = home / written.text
                counts = count_tokens(text, files[1], written.tokens, len(self.table))
        except ImportError as error:
            raise StudyError(f"source: needs the package {error.name}; {INSTALL}") from None
        counts[-1] = 0  # end of text is NULL, never an item
        by_count = np.lexsort((np.arange(len(counts)), -counts))
        self.ranked = by_count[: int((counts > 0).sum())]

    def rows(self, m: int, d_model: int, null: bool) -> Table:
        """Vectors of the m most frequent tokens, most frequent first, and then of NULL.

        Raises:
            StudyError: the table has another width, or too few of its tokens occur.
        """
        width = self.table.shape[1]
        if width != d_model:
            raise StudyError(f"source: its vectors have width {width}; give d_model: {width}")
        if len(self.ranked) < m:
            raise StudyError(
                f"counts: {len(self.ranked)} tokens occur besides the last, which is NULL, and "
                f"m = {m} needs as many; give a smaller m, or counts of more text"
            )
        chosen = [*self.ranked[:m], len(self.table) - 1] if null else self.ranked[:m]
        return self.table[chosen]


def read_table(path: Path) -> Table:
    """The token table in a model's weights, float32 [tokens, width].

    Raises:
        StudyError: the file has no such table.
    """
    with within("source: "), opened(path, WANTED, None) as file:
        with np.errstate(over="ignore"):  # what float32 cannot hold is then infinite
            values = np.asarray(read_tensor(file, TENSORS), dtype=np.float32)
        if len(values) < 2 or not values.size or not np.isfinite(values).all():
            raise ValueError(
                "its table is empty, has one row, or an entry is not finite in float32"
            )
    return values


def _locate(source: str, home: Path, names: Sequence[str]) -> list[Path]:
    """The paths of a model's files: local ones, else fetched from the hub.

    Raises:
        StudyError: some are in neither place; the message says where to fetch each of them.
    """
    local = home / source
    if exists(local):
        folder = local.parent if local.is_file() else local
        paths = [local if name == WEIGHTS and local.is_file() else folder / name for name in names]
        missing = [path.name for path in paths if not path.is_file()]
        if not missing:
            return paths
        raise StudyError(_to_fetch(f"source: {folder}", GPT_2, missing, folder))
    try:
        from huggingface_hub import hf_hub_download, model_info
        from huggingface_hub.errors import LocalEntryNotFoundError

        # It warns at every retry; one line will say what failed.
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        with suppress(LocalEntryNotFoundError):
            return [Path(hf_hub_download(source, name, local_files_only=True)) for name in names]
        model_info(source, timeout=HUB_WITHIN)  # a download alone would try for minutes
        return [Path(hf_hub_download(source, name)) for name in names]
    except ImportError:
        place = f"source: {source}: no folder {local}, and the hub needs {INSTALL}"
    except Exception as error:  # no network, no permission, no such name: the hub raises many
        place = f"source: {source}: no folder {local}, and the hub failed ({type(error).__name__})"
    raise StudyError(_to_fetch(place, source, names, local))


def _to_fetch(place: str, model: str, names: Sequence[str], folder: Path) -> str:
    urls = " and ".join(f"{HUB}/{model}/resolve/main/{name}" for name in names)
    return f"{place}: has no {' and no '.join(names)}; fetch {urls} and put it into {folder}/"


def read_counts(path: Path, vocabulary: int) -> Counts:
    """How often each token occurs, int64 [vocabulary], from two columns of token and count.

    Raises:
        StudyError: the file is missing, or is not such a list.
    """
    counts = np.zeros(vocabulary, dtype=np.int64)
    with within("counts: "), opened(path, COUNTS, LIST) as file:
        tokens, times = read_pairs(file, path.suffix, (("token",), ("count",))).T
        listed, first = np.unique(tokens, return_index=True)
        if len(listed) < len(tokens):
            twice = np.delete(tokens, first)[0]
            raise ValueError(f"token {twice} is listed twice")
        if len(tokens) and (tokens.min() < 0 or tokens.max() >= vocabulary):
            raise ValueError(f"the table has tokens 0 to {vocabulary - 1}")
        if (times < 0).any():
            raise ValueError("a count is below 0")
        counts[tokens] = times
    return counts


def count_tokens(text: Path, tokenizer: Path, limit: int, vocabulary: int) -> Counts:
    """How often each token occurs among the first ``limit`` of a text, int64 [vocabulary].

    Raises:
        StudyError: a file is missing, or the tokenizer belongs to another table.
        ImportError: tokenizers is not installed.
    """
    from tokenizers import Tokenizer

    with within("source: "), opened(tokenizer, "give a model's tokenizer.json", TABLE) as file:
        split = Tokenizer.from_buffer(file.read())
    split.no_truncation()  # a model's own limits are not those of a text
    split.no_padding()
    counts, left = np.zeros(vocabulary, dtype=np.int64), limit
    with (
        within("text: "),
        opened(text, TEXT, TABLE) as file,
        io.TextIOWrapper(file, "utf-8") as lines,
    ):
        pieces = iter(partial(lines.readline, LONGEST_LINE), "")
        while left and (block := [*itertools.islice(pieces, LINES_AT_ONCE)]):
            if max(map(len, block)) == LONGEST_LINE:
                raise ValueError(f"it has a line of {LONGEST_LINE:,} characters or more; break it")
            encoded = split.encode_batch(block, add_special_tokens=False)
            ids = itertools.chain.from_iterable(one.ids for one in encoded)
            taken = np.fromiter(ids, np.int64)[:left]
            left -= len(taken)
            if len(taken) and taken.max() >= vocabulary:
                raise ValueError(
                    f"{tokenizer} has a token {taken.max()}, and the table {vocabulary} of them"
                )
            counts += np.bincount(taken, minlength=vocabulary)
    return counts
