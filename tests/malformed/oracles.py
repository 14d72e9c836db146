"""What other readers read in an input that ours took: a silent difference is a fault."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from rgr_dist.study.edge_list import read_edges
from rgr_dist.study.errors import StudyError
from rgr_dist.study.triple_list import read_triples
from rgr_dist.study.yaml_document import load_yaml
from rgr_dist.theory.vectors import read_vectors


def studies(home: Path) -> Iterator[str]:
    """PyYAML's own loader, which takes more and reads that alike."""
    try:
        text = (home / "s.yaml").read_text("utf-8")
        ours = load_yaml(text)
    except (StudyError, UnicodeDecodeError):
        return
    theirs = yaml.safe_load(text)
    if repr(ours) != repr(theirs):
        yield f"read {ours!r:.200}, and PyYAML {theirs!r:.200}"


def edge_lists(home: Path) -> Iterator[str]:
    """Every number of every line without its comment, or pandas for Parquet."""
    for path in home.glob("e.*"):
        ours = _taken(read_edges, path)
        if ours is None:
            continue
        if path.suffix == ".parquet":
            theirs = pd.read_parquet(path).to_numpy()
        else:
            text = re.sub("#.*", "", path.read_text("utf-8"))
            theirs = np.array(re.findall(r"-?\d+", text), dtype=np.int64).reshape(-1, 2)
        if sorted(map(tuple, ours.tolist())) != sorted(map(tuple, theirs.tolist())):
            yield f"read {ours.tolist()!r:.200}, and the file has {theirs.tolist()!r:.200}"


def databases(home: Path) -> Iterator[str]:
    """The triples by name, as ``csv`` and pandas have them."""
    for path in home.glob("t.*"):
        ours = _taken(read_triples, path)
        if ours is None:
            continue
        if path.suffix == ".parquet":
            rows = pd.read_parquet(path)[["key", "query", "value"]].to_numpy().tolist()
        else:
            text = path.read_text("utf-8-sig")
            lines = csv.DictReader(io.StringIO(text, newline=""))
            named = [{key.strip(): line[key] for key in line} for line in lines]
            rows = [[line[name] for name in ("key", "query", "value")] for line in named]
        counts = [_distinct([*map(str, column)]) for column in zip(*rows, strict=True)]
        read = [len(ours), *(ours.max(axis=0) + 1).tolist()]
        if read != [len(rows), *counts]:
            yield f"read {read} triples, keys, queries and values; the file has {counts}"


def _distinct(column: list[str]) -> int:
    """How many entries a column has: numbers where all are, else text without spaces around it."""
    texts = [entry.strip() for entry in column]
    are_numbers = all(re.fullmatch("-?[0-9]{1,18}", text) for text in texts)
    return len({int(text) if are_numbers else text for text in texts})


def vectors(home: Path) -> Iterator[str]:
    """``np.load``, and a reader of safetensors in five lines."""
    for path in home.glob("v.*"):
        ours = _taken(read_vectors, path)
        if ours is None:
            continue
        content = path.read_bytes()
        if path.suffix == ".npy":
            theirs = np.load(path)
        elif path.suffix == ".safetensors":
            at = 8 + int.from_bytes(content[:8], "little")
            (entry,) = [
                e for e in json.loads(content[8:at]).values() if len(e.get("shape", ())) == 2
            ]
            kind = {"F": "f", "I": "i", "U": "u"}[entry["dtype"][0]]
            kind = f"<{kind}{int(entry['dtype'][1:]) // 8}"
            first, last = entry["data_offsets"]
            theirs = np.frombuffer(content[at:][first:last], kind).reshape(entry["shape"])
        else:
            text = re.sub("#.*", "", content.decode("utf-8-sig"))
            theirs = np.array([float(one) for one in re.split(r"[\s,]+", text) if one])
        if not np.array_equal(ours.ravel(), theirs.ravel()):
            yield f"read {ours!r:.200}, and the file has {theirs!r:.200}"


def _taken(read: Callable[[Path], Any], path: Path) -> Any:
    """What a reader reads; None if it refuses."""
    try:
        return read(path)
    except StudyError:
        return None


ORACLES: dict[str, Callable[[Path], Iterator[str]]] = {
    "studies": studies,
    "edge lists": edge_lists,
    "databases": databases,
    "vectors": vectors,
}
"""By the kind of an input."""
