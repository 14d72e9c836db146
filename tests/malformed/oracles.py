"""What other readers read in an input that ours took: a silent difference is a fault."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from rgr_dist.study.document import load_yaml
from rgr_dist.study.edge_list import read_edges
from rgr_dist.study.errors import StudyError
from rgr_dist.study.triple_list import read_triples
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
            lines = csv.DictReader(text.splitlines(keepends=True), skipinitialspace=False)
            named = [{key.strip(): line[key] for key in line} for line in lines]
            rows = [[line[name] for name in ("key", "query", "value")] for line in named]
        counts = [len({_entry(entry) for entry in column}) for column in zip(*rows, strict=True)]
        if len(ours) != len(rows) or (ours.max(axis=0) + 1).tolist() != counts:
            yield f"read {len(ours)} triples {ours.max(axis=0)}, the file has {len(rows)} {counts}"


def _entry(entry: Any) -> str:
    text = str(entry).strip()
    return str(int(text)) if re.fullmatch("-?[0-9]+", text) else text


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
            text = re.sub("#.*", "", content.decode())
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
