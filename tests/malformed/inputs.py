"""Makes inputs for every reader: from valid ones that are damaged, and from each format's grammar.

A maker takes a random generator and an empty folder, writes what it needs there, and returns the
arguments of ``rgr``, which is run in that folder. It knows nothing of what is refused.
"""

from __future__ import annotations

import io
import json
import random
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer
import yaml

from rgr_dist.cli import app
from rgr_dist.store.parts import part_name, written
from rgr_dist.store.schema import RUNS
from rgr_dist.study.cell import Cell
from rgr_dist.study.yaml_document import shipped_studies, shipped_text
from tests.malformed.mutations import ODD, of_bytes, of_structure, of_tokens, value, word
from tests.small_study import SMALL
from tests.store.made_up_runs import run_row

Maker = Callable[[random.Random, Path], list[str]]

FACTS = {
    "name": "f", "model": "facts", "cells": [{"d_model": 8}],
    "database": {"family": "function", "keys": 8, "queries": 4, "values": 8},
    "search": {"axis": "d_vo", "per": {"d_qk": [1, 2]}},
}  # fmt: skip
GRID = {
    "name": "g", "model": "transformer", "cells": [{"m": 16, "d_model": 8}],
    "search": {"mode": "grid", "D_K": [8], "heads": [1, 2]}, "context": {"length": 4},
}  # fmt: skip
SMALL_STUDIES: list[dict[str, Any]] = [SMALL, FACTS, GRID]
TAGS = (
    "binary", "set", "omap", "pairs", "map", "seq", "str", "int", "float", "bool", "null",
    "timestamp",
)  # fmt: skip
READING = ("plan", "status", "runs", "thresholds", "fit")
"""Verbs that read a study and write nothing."""
NEVER_END = ("run", "tune", "watch")
"""Verbs that train, or serve until they are interrupted, where their arguments are good."""


@cache
def texts() -> list[bytes]:
    """The shipped studies, and small ones of every kind."""
    small = [yaml.safe_dump(one, sort_keys=False) for one in SMALL_STUDIES]
    flow = [yaml.safe_dump(one, default_flow_style=True) for one in SMALL_STUDIES]
    return [text.encode() for text in [*small, *flow, *map(shipped_text, shipped_studies())]]


def damaged(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """A valid content, damaged."""
    return of_bytes(rng, content) if rng.random() < 0.5 else of_tokens(rng, content, others)


def save(folder: Path, name: str, content: bytes) -> str:
    """Write a file; returns its name."""
    (folder / name).write_bytes(content)
    return name


def study_text(rng: random.Random, folder: Path) -> list[str]:
    """A study whose text is damaged, or has an odd sentence of YAML in it."""
    text = damaged(rng, rng.choice(texts()), texts())
    if rng.random() < 0.3:
        text = rng.choice(texts()[:3]) + b"\n" + _yaml(rng, 0).encode()
    return [rng.choice(READING), save(folder, "s.yaml", text)]


def _yaml(rng: random.Random, deep: int) -> str:
    """A sentence of YAML's grammar: flow and block, tags, anchors, quotes, plain words."""
    kind = rng.randrange(9 if deep < 5 else 4)
    plain = rng.choice(ODD[:30]).decode() if rng.random() < 0.5 else word(rng)
    if kind < 3:
        return [plain, f"'{plain}'", json.dumps(plain)][kind]
    if kind == 3:
        return f"*{rng.choice('ab')}"
    inner = [_yaml(rng, deep + 1) for _ in range(rng.randint(0, 3))]
    if kind == 4:
        return f"[{', '.join(inner)}]"
    if kind == 5:
        return "{" + ", ".join(f"{word(rng)}: {one}" for one in inner) + "}"
    if kind == 6:
        return f"&{rng.choice('ab')} {_yaml(rng, deep + 1)}"
    if kind == 7:
        tag = rng.choice(TAGS)
        return f"!!{tag} {_yaml(rng, deep + 1)}"
    blanks = "\n" + "  " * deep
    return blanks + blanks.join(f"{word(rng)}: {one}" for one in inner)


def study_structure(rng: random.Random, folder: Path) -> list[str]:
    """A study some parts of which are left out, renamed, moved or replaced."""
    document = of_structure(rng, rng.choice(SMALL_STUDIES))
    text = yaml.safe_dump(document, sort_keys=False, default_flow_style=rng.choice([None, True]))
    return [rng.choice(READING), save(folder, "s.yaml", text.encode())]


def flag_set(rng: random.Random, folder: Path) -> list[str]:
    """An override, or several."""
    document = rng.choice(SMALL_STUDIES)
    parts = [f"{part}.{key}" for part, keys in SMALL.items() if type(keys) is dict for key in keys]
    given = []
    for _ in range(rng.randint(1, 3)):
        key = rng.choice([*parts, *document, word(rng), ".".join(map(str, range(200)))])
        whole = f"{key}={rng.choice([_yaml(rng, 2), json.dumps(value(rng))])}"
        shown = (
            whole
            if rng.random() < 0.6
            else damaged(rng, whole.encode(), texts()).decode("utf-8", "replace")
        )
        given += ["--set", shown[:90_000]]
    return [rng.choice(READING), _good(folder, document), *given]


def _good(folder: Path, document: dict[str, Any] = SMALL) -> str:
    return save(folder, "s.yaml", yaml.safe_dump(document).encode())


def flags(rng: random.Random, folder: Path) -> list[str]:
    """Any verb with any of its options, as the command line lists them itself."""
    verbs: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    verb = rng.choice(list(verbs))
    study = "none.yaml" if verb in NEVER_END else _good(folder, rng.choice(SMALL_STUDIES))
    given = [verb]
    for parameter in verbs[verb].params:
        if parameter.param_type_name == "argument":
            given += [study if rng.random() < 0.95 else word(rng)]
        elif parameter.required or rng.random() < 2 / len(verbs[verb].params):
            name = rng.choice(parameter.opts)
            is_flag = getattr(parameter, "is_flag", False)
            given += [name] if is_flag else [name, _argument(rng, name)]
    return given if rng.random() < 0.9 else [*given, word(rng)]


def _argument(rng: random.Random, name: str) -> str:
    """A value for an option."""
    numbers = [str(rng.randint(1, 40)), str(value(rng, 4)), str(rng.random())]
    cells = ["m=16", "m=16,d_model=8", f"{word(rng)}={word(rng)}", "m=16,m=16", ",,", "d_model=8"]
    words = ["table", "json", "csv", "auto", "fused", "ours", "1", "function", "partial", "int8"]
    places = [
        "out", "../..", "/", "/proc/1/x", "s3://", "file://", "://", "a\0b", "\udcff", "x" * 5000,
        "mock://x/y", "ray://", "..:1", "[::1]:x", "127.0.0.1:1", "abfs://x@y", "x://u:p@h/",
    ]  # fmt: skip
    of_names = {"--out": places, "--address": places, "--cell": cells, "--format": words}
    likely = of_names.get(name, ["1", "2", "4", "8", "16"])
    kinds = [likely, numbers, words, cells, places, [word(rng)]]
    return rng.choice(rng.choices(kinds, [30, 6, 3, 1, 1, 1])[0])


def edges(rng: random.Random, folder: Path) -> list[str]:
    """A study of an edge list in a file."""
    rows = [(rng.randrange(16), rng.randrange(16)) for _ in range(rng.randint(1, 30))]
    name = rng.choice(["e.txt", "e.csv", "e.parquet"])
    _list(rng, folder, name, {"source": [a for a, _ in rows], "target": [b for _, b in rows]})
    graph = {"family": "edges", "file": name}
    return [rng.choice(READING), _good(folder, SMALL | {"graph": graph})]


def triples(rng: random.Random, folder: Path) -> list[str]:
    """A file of triples: of a study, or for its bounds."""
    name = rng.choice(["t.csv", "t.parquet"])
    pairs = [(k, q) for k in range(rng.randint(1, 6)) for q in range(rng.randint(1, 5))]
    kind = rng.choice(["{}", "name {}"]).format
    columns = {"key": [kind(k) for k, _ in pairs], "query": [kind(q) for _, q in pairs]}
    _list(rng, folder, name, columns | {"value": [kind(rng.randrange(4)) for _ in pairs]})
    if rng.random() < 0.5:
        return ["bounds", "--d-model", "8", "--database", name]
    return [
        rng.choice(READING),
        _good(folder, FACTS | {"database": {"family": "file", "file": name}}),
    ]


def _list(rng: random.Random, folder: Path, name: str, columns: dict[str, list[Any]]) -> None:
    """A list in columns, as text or Parquet, damaged in one of many ways or not at all."""
    if rng.random() < 0.4:
        for _ in range(rng.randint(1, 3)):
            column = rng.choice(list(columns.values()))
            column[rng.randrange(len(column))] = value(rng, 4)
    if name.endswith(".parquet"):
        content = _parquet(rng, columns)
        save(folder, name, of_bytes(rng, content) if rng.random() < 0.5 else content)
        return
    between = rng.choice([",", ",", " ", "\t", ", ", ";"])
    lines = [columns.keys(), *zip(*columns.values(), strict=True)]
    text = "\n".join(between.join(map(str, line)) for line in lines).encode(errors="replace")
    save(folder, name, damaged(rng, text, texts()) if rng.random() < 0.5 else text)


def _parquet(rng: random.Random, columns: dict[str, list[Any]]) -> bytes:
    """A Parquet file of columns of any types and encodings, sometimes of very many equal rows."""
    kinds = [
        pa.int64(), pa.int8(), pa.uint64(), pa.string(), pa.large_string(), pa.binary(),
        pa.float64(), pa.bool_(), pa.date32(), pa.list_(pa.int32()), pa.timestamp("us"),
        pa.decimal128(38), pa.dictionary(pa.int32(), pa.string()), pa.null(),
    ]  # fmt: skip
    arrays = {}
    for name, entries in columns.items():
        kind = None if rng.random() < 0.7 else rng.choice(kinds)
        try:
            arrays[name] = pa.array(entries, kind, from_pandas=True)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            arrays[name] = pa.nulls(len(entries), kind)
    table = pa.table(arrays)
    if rng.random() < 0.1:
        table = pa.concat_tables([table] * rng.choice([10, 3000]))
    if rng.random() < 0.2:
        table = table.rename_columns([word(rng) for _ in columns])
    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        compression=rng.choice(["zstd", "snappy", "gzip", "none"]),
        use_dictionary=rng.random() < 0.5,
        store_schema=rng.random() < 0.5,
        version=rng.choice(["1.0", "2.6"]),
    )
    return sink.getvalue()


def vectors(rng: random.Random, folder: Path) -> list[str]:
    """A table of vectors for its geometry."""
    name = rng.choice(["v.npy", "v.safetensors", "v.txt", "v.csv"])
    table = np.random.default_rng(rng.randrange(2**32)).normal(size=(6, 3))
    if name == "v.npy":
        content = _npy(rng, table)
    elif name == "v.safetensors":
        content = _safetensors(rng, "t", table.astype(np.float32))
    else:
        between = rng.choice([" ", ",", "\t"])
        content = "\n".join(between.join(map(str, row)) for row in table).encode()
    save(folder, name, damaged(rng, content, texts()) if rng.random() < 0.5 else content)
    return ["geometry", name, *rng.choice([[], [], ["--tensor", word(rng)], ["--items", "4"]])]


def _npy(rng: random.Random, table: np.ndarray[Any, Any]) -> bytes:
    """A .npy file: of numpy, or with a header of its grammar."""
    if rng.random() < 0.4:
        kinds = ["f2", "f4", ">f8", "i1", "u8", "c16", "?", "S3", "U3", "M8[s]", "f4,f4", "O"]
        sink = io.BytesIO()
        np.save(sink, np.zeros((4, 3), rng.choice(kinds)), allow_pickle=True)
        return sink.getvalue()
    entry = {
        "descr": rng.choice(["<f8", "<f4", "|O", "|V8", "<i1", [("a", "<f8")], value(rng)]),
        "fortran_order": rng.choice([False, True, value(rng, 4)]),
        "shape": rng.choice([table.shape, (10**6, 10**6), (), (0, 3), (-1, 3), value(rng)]),
    }
    header = (repr(of_structure(rng, entry) if rng.random() < 0.3 else entry) + "\n").encode()
    size = struct.pack("<H", min(len(header), 65535))
    return b"\x93NUMPY\x01\x00" + size + header + table.tobytes()


def _safetensors(rng: random.Random, name: str, table: np.ndarray[Any, Any]) -> bytes:
    """A safetensors file of one tensor, with a header of its grammar."""
    entry = {
        "dtype": rng.choice(
            ["F32", "F32", "F16", "BF16", "F8_E4M3", "F4", "I64", "BOOL", word(rng)]
        ),
        "shape": rng.choice(
            [[*table.shape], [*table.shape], [2**32, 2**32], [1, 9, 2], value(rng)]
        ),
        "data_offsets": rng.choice([[0, table.nbytes], [0, table.nbytes], [8, 4], value(rng)]),
    }
    document = {name: entry, **rng.choice([{}, {}, {"__metadata__": value(rng)}, {"u": entry}])}
    header = json.dumps(of_structure(rng, document) if rng.random() < 0.2 else document).encode()
    size = rng.choice([len(header)] * 9 + [2**63, 10**9, 3])
    return struct.pack("<Q", size) + header + table.tobytes()


def token_table(rng: random.Random, folder: Path) -> list[str]:
    """A study of a model's token vectors, its counts, or a text and a tokenizer."""
    table = np.random.default_rng(rng.randrange(2**32)).normal(size=(40, 8)).astype(np.float32)
    weights = (
        _safetensors(rng, "wte.weight", table)
        if rng.random() < 0.5
        else safetensors("wte.weight", "F32", [*table.shape], table.tobytes())
    )
    save(
        folder,
        "model.safetensors",
        damaged(rng, weights, texts()) if rng.random() < 0.2 else weights,
    )
    keys = {"family": "table", "source": "."}
    if rng.random() < 0.5:
        tokens = {"token": list(range(40)), "count": [rng.randrange(99) for _ in range(40)]}
        keys["counts"] = rng.choice(["c.txt", "c.parquet"])
        _list(rng, folder, keys["counts"], tokens)
    else:
        words = {f"w{i}": i for i in range(40)}
        split: dict[str, Any] = {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None,
            "decoder": None, "model": {"type": "WordLevel", "vocab": words, "unk_token": "w0"},
        }  # fmt: skip
        split = of_structure(rng, split) if rng.random() < 0.4 else split
        tokenizer = json.dumps(split).encode()
        save(
            folder, "tokenizer.json", of_bytes(rng, tokenizer) if rng.random() < 0.2 else tokenizer
        )
        text = " ".join(f"w{rng.randrange(40)}" for _ in range(200)).encode()
        keys["text"] = save(folder, "x.txt", damaged(rng, text, texts()))
    document = SMALL | {"cells": [{"m": 16, "d_model": 8}], "embedding": keys}
    return [rng.choice(READING), _good(folder, document)]


def safetensors(name: str, kind: str, shape: list[int], data: bytes) -> bytes:
    """A safetensors file of one tensor."""
    entry = {"dtype": kind, "shape": shape, "data_offsets": [0, len(data)]}
    header = json.dumps({name: entry}).encode()
    return struct.pack("<Q", len(header)) + header + data


def store(rng: random.Random, folder: Path) -> list[str]:
    """A store some files of which are damaged."""
    cell = Cell(m=16, d_model=8)
    rows = [run_row(h=1, d_k=d_k, seed=seed, cell=cell) for d_k in (3, 4) for seed in range(3)]
    if rng.random() < 0.3:
        row, column = rng.choice(rows), rng.choice(RUNS.names)
        row[column] = rng.choice([value(rng, 4), None, float("nan"), float("inf"), -1, 1e300, "{}"])
    try:
        content = written(pa.Table.from_pylist(rows, schema=RUNS))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):  # no such column can be
        content = written(RUNS.empty_table())
    (folder / "out/runs").mkdir(parents=True)
    name = part_name(content)
    kind = rng.randrange(4)
    if kind == 0:
        content = of_bytes(rng, content)
    elif kind == 1:
        content = of_bytes(rng, content)
        name = rng.choice(
            [
                part_name(content),
                "part.parquet",
                f"{word(rng).strip('/.') or 'x'}.parquet".replace("/", "").replace("\0", "")[:99],
            ]
        )
    save(folder / "out/runs", name, content)
    if kind == 2:
        other = folder / f"out/studies/{SMALL['name']}"
        other.mkdir(parents=True)
        file = rng.choice(["study.yaml", "prior.json", "thresholds.parquet", "decisions.parquet"])
        save(
            other,
            file,
            damaged(rng, rng.choice([*texts()[:3], b'{"a": {"D_K": 3}}', content]), texts()),
        )
    if kind == 3:
        (folder / "out/drivers").mkdir()
        driver = json.dumps(of_structure(rng, {
            "does": "rgr run s", "host": "h", "machine": "m", "process": 1, "born": "1",
            "since": "2026-01-02 03:04:05 UTC", "holds": True,
        })).encode()  # fmt: skip
        save(folder / "out/drivers", "0123456789ab.json", damaged(rng, driver, texts()))
    changed = SMALL | {"cells": [{"m": 16, "d_model": 8}], "context": {}, "training": {}}
    verb = rng.choice([*READING, "verify"])
    study = [] if verb == "verify" else [_good(folder, changed)]
    how = ["--format", rng.choice(["table", "json", "csv"])]
    return [verb, *study, "--out", "out", *how]


MAKERS: dict[str, tuple[Maker, ...]] = {
    "studies": (study_text, study_structure),
    "flags": (flag_set, flags),
    "edge lists": (edges,),
    "databases": (triples,),
    "vectors": (vectors,),
    "token tables": (token_table,),
    "stores": (store,),
}
"""What makes the inputs of each kind."""
