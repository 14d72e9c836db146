"""Token embeddings that people bring: a model's table, its most frequent tokens, EOS as NULL.

A table is the tensor ``wte.weight`` of a safetensors file, as GPT-2 has it, whose last row is
the end-of-text token. It and the tokenizer lie in a local folder, or are fetched by their
model's name from the Hugging Face hub, where a machine can reach it.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, StrictStr, model_validator

from rgr_dist.spec import Count, Spec
from rgr_dist.study_faults import StudyError
from rgr_dist.token_counts import count_tokens, read_counts

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
TENSORS = ("wte.weight", "transformer.wte.weight")
HUB = "https://huggingface.co"
GPT_2 = "openai-community/gpt2"
INSTALL = "pip install 'rgr-dist[gpt2]'"

Table = npt.NDArray[np.float32]


class TableFile(Spec):
    """An embedding of the family ``table`` as written; paths are relative to the study file.

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
        self.table = read_table(written.source, home)
        if written.counts is not None:
            counts = read_counts(home / written.counts, len(self.table))
        else:
            assert written.text is not None
            tokenizer = _file(written.source, home, TOKENIZER)
            counts = count_tokens(home / written.text, tokenizer, written.tokens, len(self.table))
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


def read_table(source: str, home: Path) -> Table:
    """The token table of a model, float32 [tokens, width].

    Raises:
        StudyError: it is not there, or not such a file.
    """
    path = _file(source, home, WEIGHTS)
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise StudyError(f"source: {path}: needs the package safetensors; {INSTALL}") from None
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            name = next((name for name in TENSORS if name in names), None)
            if name is None:
                raise StudyError(
                    f"source: {path}: has no tensor {' or '.join(TENSORS)}; "
                    "give the weights of a GPT-2"
                )
            values = np.asarray(file.get_tensor(name), dtype=np.float32)
    except (SafetensorError, OSError) as error:
        raise StudyError(
            f"source: {path}: cannot be read: {error}; give a safetensors file"
        ) from None
    if values.ndim != 2 or len(values) < 2 or not np.isfinite(values).all():
        raise StudyError(f"source: {path}: {name} is not a table of numbers")
    return values


def _file(source: str, home: Path, name: str) -> Path:
    """A file of a model: beside the weights where they are local, else from the hub.

    Raises:
        StudyError: it is in neither place.
    """
    local = home / source
    if local.is_file():
        local = local.parent if name != WEIGHTS else local
    if local.is_dir():
        if not (local / name).is_file():
            raise StudyError(f"source: {local}: has no {name}; {_fetch(GPT_2, name, local)}")
        return local / name
    if local.is_file():
        return local
    try:
        from huggingface_hub import hf_hub_download

        # It tells of every retry; one line will say what failed.
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        return Path(hf_hub_download(source, name))
    except ImportError:
        reason = f"the hub needs {INSTALL}"
    except Exception as error:  # no network, no permission, no such name: the hub raises many
        reason = f"the hub gives none ({type(error).__name__})"
    raise StudyError(
        f"source: {source}: no {name} in a folder {local}, and {reason}; "
        f"{_fetch(source, name, local)}"
    )


def _fetch(model: str, name: str, folder: Path) -> str:
    return f"fetch {HUB}/{model}/resolve/main/{name} and put it into {folder}/"
