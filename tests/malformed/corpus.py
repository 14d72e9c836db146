"""Inputs that were once answered with a traceback, a hang, a crash or a silent wrong number.

Each writes what it needs into a folder and returns the arguments of ``rgr``, which refuses it.
"""

from __future__ import annotations

import functools
import io
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tests.malformed.inputs import FACTS, safetensors
from tests.small_study import SMALL

Past = Callable[[Path], list[str]]

CELL = "name: s\ncells: [{m: 64, d_model: 8}]\n"
YAML = [
    "!!binary x", "!!set {a}", "!!map x", "!!timestamp x", "!!int ''", "!!float '_'", "!!bool x",
    "{2026-11-24: 1}", "0x" + "f" * 5000, "1:" * 2500 + "1", "{1: 2}", "{null: 1}", "[*a]", "017",
    "1:30", "!!omap [a]", "&a [*a]", "[" * 100_000, "{? [a] : b}", "'\\ud800'", "\udcff",
    "{" + ", ".join(f"k{i}: 1" for i in range(60_000)) + "}", "[" + "1, " * 300_000 + "]",
    "[&a0 [1], " + "".join(f"&a{i} [{f'*a{i - 1}, ' * 9}], " for i in range(1, 9)) + "]",
]  # fmt: skip
"""Values of a key."""
LISTS = ", ".join(map(str, range(64, 1064)))
STUDIES = [
    f"name: s\ncells: [{{m: [{LISTS}], d_model: [{LISTS}]}}]\n",
    CELL + f"search: {{heads: [{', '.join('x' * 20_000)}]}}\n",
    CELL + "search: {heads: all, max_D_K: 2147483647}\n",
    CELL + "? " + "x" * 500_000 + "\n: 1\n",
]
FLAGS = [
    ["run", "quickstart", "--address", "..:1"], ["plan", "quickstart", "--out", "abfs://x@y"],
    ["verify", "--out", "\udcff"], ["plan", "quickstart", "--set", "model" + ".x" * 3000 + "=1"],
    ["verify", "--out", "hf://x"], ["plan", "quickstart", "--out", "\ud800://x"],
]  # fmt: skip
"""Arguments that need no file."""


def study(text: str, folder: Path) -> list[str]:
    (folder / "s.yaml").write_bytes(text.encode(errors="surrogateescape"))
    return ["plan", "s.yaml"]


def flags(given: list[str], _folder: Path) -> list[str]:
    return given


def geometry(name: str, content: bytes | int | None, folder: Path) -> list[str]:
    """A file of vectors: its content, its size where it has none, or a pipe."""
    _file(folder / name, content)
    return ["geometry", name]


def edges(name: str, content: bytes | int | None, folder: Path) -> list[str]:
    _file(folder / name, content)
    graph = {"family": "edges", "file": name}
    return study(yaml.safe_dump(SMALL | {"graph": graph}), folder)


def triples(name: str, content: bytes | int | None, folder: Path) -> list[str]:
    _file(folder / name, content)
    database = {"family": "file", "file": name}
    return study(yaml.safe_dump(FACTS | {"database": database}), folder)


def table(weights: bytes | int | None, folder: Path) -> list[str]:
    _file(folder / "model.safetensors", weights)
    (folder / "c.txt").write_text("0 1\n")
    embedding = {"family": "table", "source": "model.safetensors", "counts": "c.txt"}
    return study(yaml.safe_dump(SMALL | {"embedding": embedding}), folder)


def _file(path: Path, content: bytes | int | None) -> None:
    if content is None:
        os.mkfifo(path)
    elif isinstance(content, int):
        with path.open("wb") as file:
            file.truncate(content)
    else:
        path.write_bytes(content)


def _npy(shape: str, kind: str = "<f8") -> bytes:
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


@functools.cache
def _many_edges() -> bytes:
    """A small Parquet file of very many equal rows."""
    sink, zeros = io.BytesIO(), pa.array(np.zeros(2_000_000, np.int64))
    columns = pa.table({"source": zeros, "target": zeros})
    with pq.ParquetWriter(sink, columns.schema) as writer:
        for _ in range(50):
            writer.write_table(columns)
    return sink.getvalue()


def _pickled() -> bytes:
    sink: Any = io.BytesIO()
    np.save(sink, np.array([{}], dtype=object), allow_pickle=True)
    return bytes(sink.getvalue())


SPARSE = 2**40
ONE: dict[str, Past] = {
    "an empty .npy": functools.partial(geometry, "v.npy", b""),
    "a .npy of a million by a million": functools.partial(geometry, "v.npy", _npy("(10**6,)*2")),
    "a .npy header that is large": functools.partial(geometry, "v.npy", _npy("(1000000, 1000000)")),
    "a .npy of objects": functools.partial(geometry, "v.npy", _pickled()),
    "very many vectors": functools.partial(
        geometry, "v.npy", _npy("(1000000, 1)", "|i1") + b"\1" * 10**6
    ),
    "a pipe of vectors": functools.partial(geometry, "v.npy", None),
    "a sparse terabyte of vectors": functools.partial(geometry, "v.txt", SPARSE),
    "vectors of F8": functools.partial(
        geometry, "v.safetensors", safetensors("t", "F8_E4M3", [4, 4], bytes(16))
    ),
    "vectors of F4": functools.partial(
        geometry, "v.safetensors", safetensors("t", "F4", [4, 4], bytes(8))
    ),
    "a token table of F8": functools.partial(
        table, safetensors("wte.weight", "F8_E5M2", [4, 16], bytes(64))
    ),
    "a token table of many rows and no columns": functools.partial(
        table, safetensors("wte.weight", "F32", [10**9, 0], b"")
    ),
    "a safetensors header that is large": functools.partial(
        geometry, "v.safetensors", struct.pack("<Q", 5 * 2**20) + b"{" + b" " * 5 * 2**20
    ),
    "a sparse terabyte of weights": functools.partial(table, SPARSE),
    "many edges in a small Parquet": lambda home: edges("e.parquet", _many_edges(), home),
    "a sparse terabyte of edges": functools.partial(edges, "e.txt", SPARSE),
    "a pipe of edges": functools.partial(edges, "e.txt", None),
    "a sparse terabyte of triples": functools.partial(triples, "t.csv", SPARSE),
    "a pipe of triples": functools.partial(triples, "t.parquet", None),
}
PAST: dict[str, Past] = {
    **ONE,
    **{
        f"YAML {n}": functools.partial(study, f"{CELL}training: {one}\n")
        for n, one in enumerate(YAML)
    },
    **{f"study {n}": functools.partial(study, text) for n, text in enumerate(STUDIES)},
    **{f"flags {n}": functools.partial(flags, given) for n, given in enumerate(FLAGS)},
}
"""By what was wrong."""
