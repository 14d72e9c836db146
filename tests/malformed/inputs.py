"""Makes malformed inputs: studies, flags, tables of vectors, edge lists, stores.

Each maker takes a random generator and an empty folder, writes what it needs there, and returns the
arguments of ``rgr``, which is run in that folder. Nothing that a maker returns may be valid.
"""

from __future__ import annotations

import json
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from rgr_dist.store.schema import RUNS, SCHEMA_VERSION
from rgr_dist.store.store import Store

Maker = Callable[[random.Random, Path], list[str]]

VALID: dict[str, Any] = {
    "name": "s",
    "model": "max",
    "cells": [{"m": 16, "d_model": 8}],
    "graph": {"family": "permutation"},
    "embedding": {"family": "gaussian"},
    "context": {"length": 8, "positive_rate": 0.5},
    "training": {"learning_rate": 0.01, "max_steps": 2000, "check_every": 100, "patience": 2},
    "search": {"heads": [1, 2], "seeds": 3, "target": 0.99},
}
NUMBERS = (
    "cells.0.m", "cells.0.d_model", "context.length", "context.positive_rate",
    "training.learning_rate", "training.max_steps", "training.check_every", "training.patience",
    "search.seeds", "search.target",
)  # fmt: skip
PARTS = ("graph", "embedding", "context", "training", "search", "cells.0")
SIGNS = "\x00\x07\x1b[31m\x7f\u202e\u2028\ud7ff€ü\n\t\\'\"{}[]:,#&*!|>%@`-"


HUGE = "a whole number of 5,000 digits"


def text(rng: random.Random, longest: int = 30) -> str:
    """Some text, control characters and all; sometimes very long."""
    length = rng.choice([rng.randint(1, longest), rng.randint(1, longest), 100_000])
    return "".join(rng.choices("abcxyz019" + SIGNS, k=length))


def printable(rng: random.Random) -> str:
    """A word that no key, family or file has."""
    return "q" + "".join(rng.choices("abcdefgh", k=rng.randint(3, 12)))


def not_a_number(rng: random.Random) -> Any:
    """What no number of a study may be."""
    return rng.choice([
        -rng.randint(1, 10**9), -rng.random(), float("nan"), float("inf"), -float("inf"), HUGE,
        2**63, 2**31 + rng.randint(0, 99), 1e308 * 10, None, True, False, text(rng),
        [], {}, [[rng.randint(1, 9)]], {printable(rng): 1}, "1" * 5000,
    ])  # fmt: skip


def put(document: dict[str, Any], path: str, value: Any) -> None:
    """Set a value at a dotted path."""
    *parts, last = path.split(".")
    at: Any = document
    for part in parts:
        at = at[int(part)] if isinstance(at, list) else at[part]
    at[last] = value


def written(folder: Path, document: Any) -> str:
    """A study file of a document; returns its name."""
    shown = yaml.safe_dump(document, sort_keys=False).replace(HUGE, "9" * 5000)
    Path(folder, "s.yaml").write_text(shown, "utf-8")
    return "s.yaml"


def copy() -> dict[str, Any]:
    """The valid study, to be spoilt."""
    return json.loads(json.dumps(VALID))  # type: ignore[no-any-return]


def study_value(rng: random.Random, folder: Path) -> list[str]:
    """A number that is none."""
    document, path, value = copy(), rng.choice(NUMBERS), not_a_number(rng)
    if path == "training.learning_rate" and type(value) is int and value > 0:
        value = 0  # any number above it is one
    put(document, path, value)
    return ["plan", written(folder, document)]


def study_key(rng: random.Random, folder: Path) -> list[str]:
    """A key that there is not, at any place."""
    document, place = copy(), rng.choice([*PARTS, ""])
    put(document, f"{place}.{printable(rng)}" if place else printable(rng), rng.random())
    return ["plan", written(folder, document)]


def study_part(rng: random.Random, folder: Path) -> list[str]:
    """A part that is not a mapping, or a family that there is not."""
    document, part = copy(), rng.choice([*PARTS[:5], "cells", "name", "model"])
    bad: list[Any] = [rng.randint(-9, 0), 1.5, [text(rng)], [[]], True, {printable(rng): 1}]
    if part in ("graph", "embedding"):
        bad += [{"family": text(rng)}, {"family": printable(rng)}, {"family": None}]
    put(document, part, rng.choice(bad))
    return ["plan", written(folder, document)]


def study_file(rng: random.Random, folder: Path) -> list[str]:
    """No study at all: bytes, torn YAML, deep or endless YAML, a pipe, a folder, no file."""
    path, deep = folder / "s.yaml", rng.randint(200, 2000)
    whole = yaml.safe_dump(VALID).encode()
    alias = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    kind = rng.randrange(11)
    if kind == 0:
        path.write_bytes(b"\xff" + rng.randbytes(rng.randint(1, 2000)))
    elif kind == 1:
        path.write_bytes(whole[: rng.randint(0, whole.index(b"cells"))] + b"\n{[")
    elif kind == 2:
        path.write_text("name: s\ncells: " + "[" * deep + "]" * deep)
    elif kind == 3:
        path.write_text("name: s\ncells: " + "{a: " * deep + "1" + "}" * deep)
    elif kind == 4:
        path.write_text("a0: &a0 [x]\n" + alias + f"cells: *a{rng.randint(6, 11)}\n")
    elif kind == 5:
        os.mkfifo(path)
    elif kind == 6:
        path.mkdir()
    elif kind == 7:
        return ["plan", rng.choice(["/dev/zero", "/dev/full", "/dev/tty", "/dev/stdin", "/"])]
    elif kind == 8:
        return ["plan", text(rng) + rng.choice([".yaml", "/s.yaml"])]
    elif kind == 9:
        path.write_text(f"name: s\nname: {printable(rng)}\ncells: [{{m: 16, d_model: 8}}]\n")
    else:
        path.write_text(f"name: s\ncells: &a [{{m: 16, d_model: 8}}, {{{printable(rng)}: *a}}]\n")
    return ["plan", "s.yaml"]


def flag_set(rng: random.Random, folder: Path) -> list[str]:
    """An override that is none."""
    study = written(folder, VALID)
    key = rng.choice(NUMBERS[2:])
    value = rng.choice(
        ["", "-1", "nan", "9" * 5000, "[", "{a", text(rng), "!!python/object:os.x 1"]
    )
    given = rng.choice([
        f"{key}={value}", f"{key}", f"={value}", f".={value}", f"{key}.{printable(rng)}=1",
        f"{printable(rng)}={value}", f"training={{{printable(rng)}: 1}}", text(rng),
        f"training={{patience: 2, patience: {rng.randint(1, 9)}}}",
    ])  # fmt: skip
    return ["plan", study, "--set", given]


def flag_value(rng: random.Random, folder: Path) -> list[str]:
    """A flag that there is not, or a value that it does not take."""
    study, word = written(folder, VALID), printable(rng)
    number = rng.choice(["-1", "0", "nan", "1e9", "", word, "9" * 400, text(rng).replace("\0", "")])
    return rng.choice([
        ["plan", study, f"--{word}"],
        ["plan", study, "--format", word],
        ["plan", study, word],
        [word, study],
        ["run", study, "--engine", word],
        ["run", study, "--cpus", number if number != "9" * 400 else "0"],
        ["run", study, "--gpus", rng.choice(["-1", word, ""])],
        ["run", study, "--address", rng.choice([word, "ray://", "ray://x", f"127.0.0.1:{word}"])],
        ["explain", study, "--cell", rng.choice([word, "m=1", "m=", f"{word}=1", "m=x", ""])],
        ["runs", study, "--cell", rng.choice([word, "m=1", "m=", f"{word}=1", text(rng)])],
        ["explain", study, "--cell", "m=16", "--heads", rng.choice(["3", "-1", "0", word])],
        ["predict", "--m", number, "--d-model", "8"],
        ["predict", "--m", "16", "--d-model", "8", "--edges", rng.choice(["0", "257", "-1", word])],
        ["bounds", "--m", number, "--d-model", "16"],
        ["construct", "--m", "16", "--d-model", "8", "--algorithm", word],
        ["tune", study, "--cell", word],
        ["geometry", f"{word}.npy"],
    ])  # fmt: skip


def table_file(rng: random.Random, folder: Path) -> list[str]:
    """Vectors that are none: other formats of number, torn files, wrong shapes, no files."""
    document = copy()
    document["embedding"] = {"family": "table", "source": "t", "counts": "c.txt"}
    home, counts = folder / "t", folder / "c.txt"
    counts.write_text("".join(f"{token} {token + 1}\n" for token in range(40)))
    kind = rng.randrange(7)
    if kind != 0:
        home.mkdir()
    weights = home / "model.safetensors"
    width = {"BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F16": 2, "F32": 4}
    dtype = rng.choice(["BF16", "F8_E4M3", "F8_E5M2"]) if kind == 1 else "F32"
    data = safetensors("wte.weight", dtype, (40, 8), bytes(40 * 8 * width[dtype]))
    if kind == 2:
        data = data[: rng.randint(0, len(data) - 1)]
    elif kind == 3:
        data = struct.pack("<Q", rng.choice([2**63, 10**9, 3])) + data[8:]
    elif kind == 4:
        data = safetensors(text(rng).replace("\0", ""), "F32", (40, 8), bytes(40 * 8 * 4))
    elif kind == 5:
        data = safetensors("wte.weight", "F32", (40, 8), struct.pack("<f", float("nan")) * 320)
    if kind == 6:
        rng.choice([os.mkfifo, os.mkdir])(weights)
    elif kind != 0:
        weights.write_bytes(data)
    if rng.random() < 0.3:
        counts.unlink()
        spoilt = rng.randrange(4)
        if spoilt == 0:
            os.mkfifo(counts)
        elif spoilt == 1:
            counts.mkdir()
        elif spoilt == 2:
            counts.write_text(f"0 {text(rng)}\nx\n")
    return ["plan", written(folder, document)]


def safetensors(name: str, dtype: str, shape: tuple[int, ...], data: bytes) -> bytes:
    """A file of one tensor."""
    entry = {"dtype": dtype, "shape": list(shape), "data_offsets": [0, len(data)]}
    header = json.dumps({name: entry}).encode()
    return struct.pack("<Q", len(header)) + header + data


SPOILT_EDGES: list[dict[str, list[Any]]] = [
    {"a": [1.5], "b": [1]},
    {"a": [1]},
    {"a": [1, None], "b": [1, 2]},
    {"a": ["x"], "b": ["y"]},
    {"a": [-1], "b": [0]},
    {"a": [2**40], "b": [0]},
    {"a": [1, 1], "b": [2, 2]},
    {"a": [1], "b": [2], "c": [3]},
    {"a": [16], "b": [0]},
]
"""Columns of no edge list of 16 items."""
SPOILT_TRIPLES: list[dict[str, list[Any]]] = [
    {"key": [1.5], "query": [1], "value": [1]},
    {"key": [1], "query": [1]},
    {"key": [1, None], "query": [1, 2], "value": [1, 2]},
    {"key": [1], "query": [1], "values": [1]},
    {"key": ["a", "a"], "query": [1, 1], "value": ["x", "y"]},
    {"key": ["a", "a"], "query": [1, 1], "value": ["x", "x"]},
    {"key": ["a", ""], "query": [1, 2], "value": ["x", "y"]},
    {"key": ["a", "b"], "query": [1, 2], "value": ["x", "x"]},
    {"key": [True, False], "query": [1, 2], "value": [1, 2]},
    {"key": [1], "query": [1], "value": [1], "weight": [1]},
    {"key": [], "query": [], "value": []},
]
"""Columns of no database."""


def list_file(
    rng: random.Random, folder: Path, columns: list[dict[str, list[Any]]], lines: list[str]
) -> str:
    """No list: a pipe, a folder, no file, bytes, spoilt columns, a spoilt line; returns its name.

    Args:
        lines: the first, one that is good, then those that are not.
    """
    name = rng.choice(["e.txt", "e.csv", "e.parquet"])
    path, kind = folder / name, rng.randrange(8)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind == 2:
        return rng.choice(["/dev/zero", "/dev/full", printable(rng), "x" * 5000])
    elif kind == 3:
        path.write_bytes(lines[0].encode() + b"\xff\xfe" + rng.randbytes(rng.randint(1, 500)))
    elif kind == 4 or name == "e.parquet":
        path = path.with_suffix(".parquet")
        pq.write_table(pa.table(rng.choice(columns)), path)
        if rng.random() < 0.3:
            path.write_bytes(path.read_bytes()[: rng.randint(0, 50)])
    else:
        head, good, *bad = lines
        head = head if rng.random() < 0.9 else printable(rng) + "\n"
        path.write_text(f"{head}{good}\n{rng.choice(bad)}\n" if rng.random() < 0.9 else head)
    return path.name


def edge_list(rng: random.Random, folder: Path) -> list[str]:
    """A list of edges that is none."""
    bad = ["0", "0 1 2", "0,1", "x y", "0 -1", f"0 {'9' * 30}", f"0 {text(rng)}", "1 2\n1 2",
           f"0 {rng.randint(16, 10**6)}", "\x1b[2J 1", "0 1.5"]  # fmt: skip
    file: Any = list_file(rng, folder, SPOILT_EDGES, ["# nothing\n", "0 1", *bad])
    if rng.random() < 0.1:
        file = rng.choice(["", text(rng), 5, None])
    document = copy()
    document["graph"] = {"family": "edges", "file": file}
    return ["plan", written(folder, document)]


def triple_list(rng: random.Random, folder: Path) -> list[str]:
    """A file of triples that is none."""
    bad = ["a,b", "a,b,c,d", "a,,c", "a,b,", "p,q,r", "p,q,z", " p , q , r ", text(rng), "\"a,b,c",
           "\x1b[2J,b", "," * rng.randint(0, 9) + "x,x", "x" * 10**5]  # fmt: skip
    named = list_file(rng, folder, SPOILT_TRIPLES, ["key,query,value\n", "p,q,r", *bad])
    if rng.random() < 0.5:
        return ["bounds", "--d-model", "8", "--database", named]
    database = {"family": "file", "file": named}
    document = {"name": "s", "model": "facts", "cells": [{"d_model": 8}], "database": database}
    return ["plan", written(folder, document)]


def store(rng: random.Random, folder: Path) -> list[str]:
    """A store that is none, or of a newer rgr-dist."""
    study, out = written(folder, VALID), "out"
    kind = rng.randrange(6)
    verb = rng.choice(["plan", "status", "thresholds", "runs", "report", "run"])
    if kind == 0:
        (folder / "out").write_text("a file")
        out = rng.choice(["out", "out/x"]) if verb in ("report", "run") else "out/x"
        verb = "run"
    elif kind == 1:
        (folder / "out").mkdir()
        (folder / "out/runs").write_text("a file where a folder should be")
    elif kind == 2:
        table = RUNS.empty_table().replace_schema_metadata(
            {"version": str(SCHEMA_VERSION + rng.randint(1, 99))}
        )
        Store(folder / "out").write_part(table)
    elif kind == 3:
        verb = "plan" if verb == "runs" else verb  # which reads no expectations
        home = folder / "out/studies/s"
        home.mkdir(parents=True)
        bad = rng.choice(
            ['{"x": 1}', "{", "[]", '{"c": {"D_K": -1}}', "\x00", f'"{printable(rng)}"']
        )
        (home / "prior.json").write_text(bad)
    elif kind == 4:
        out = rng.choice(["", " ", "s3://", "://", f"{printable(rng)}://x/y", "file://", "mock://",
                          f"hdfs+{printable(rng)}://x"])  # fmt: skip
    else:
        out, verb = (
            rng.choice(["\0", "a\0b", "x/" * 3000, "y" * 300 + "/z", "/dev/null/x", "/proc/x"]),
            "run",
        )
    return [verb, study, "--out", out]


MAKERS: dict[str, tuple[Maker, ...]] = {
    "studies": (study_value, study_key, study_part, study_file),
    "flags": (flag_set, flag_value),
    "tables": (table_file,),
    "edge lists": (edge_list,),
    "databases": (triple_list,),
    "stores": (store,),
}
"""What makes the inputs of each kind."""
