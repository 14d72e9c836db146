"""Data of the shipped studies: found from anywhere, and what the studies say that they are."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from rgr_dist.study import assets
from rgr_dist.study.edges import read_edges
from rgr_dist.study.select import cell_named
from rgr_dist.study.study_file import load_study
from rgr_dist.study.vectors import read_vectors
from rgr_dist.study.yaml_document import STUDIES

DATA = STUDIES / "data"


@pytest.mark.parametrize("file", sorted(DATA.glob("[as]*-*.csv")), ids=lambda file: file.stem)
def test_words_are_permuted_and_have_vectors(file: Path) -> None:
    kind, m = file.stem.split("-")[:2]
    found = read_edges(file)
    assert len(found.names) == int(m)
    assert found.edges[:, 0].tolist() == [*range(int(m))] == sorted(found.edges[:, 1])
    to = found.edges[:, 1]
    assert (to[to] == np.arange(int(m))).all() == (kind == "antonyms")
    assert {*found.names} <= {*(read_vectors(DATA / "glove.parquet").names or [])}
    if kind == "shuffled":
        assert found.names == read_edges(DATA / f"antonyms-{m}.csv").names


@pytest.mark.parametrize("name", ["karate", "women", "miserables"])
def test_copies_of_real_graphs_have_as_many_edges_and_one_has_their_degrees(name: str) -> None:
    real, rewired, random = (
        nx.Graph(read_edges(DATA / f"{kind}-{name}.csv").edges.tolist())
        for kind in ("real", "rewired", "random")
    )
    assert sorted(dict(real.degree()).values()) == sorted(dict(rewired.degree()).values())
    assert real.number_of_edges() == random.number_of_edges()
    assert len({*map(frozenset, real.edges)} - {*map(frozenset, rewired.edges)}) > 10


@pytest.mark.parametrize("name", ["antonyms", "real-graphs"])
def test_a_shipped_study_finds_its_files_from_anywhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = load_study(name)
    assert all(cell_named(study, study.name_of(cell)) == cell for cell in study.cells)
    assert not any("digest" in one for one in study.cell_names.values())
    assert {Path(one["file"]).parent for one in study.files.values()} == {DATA}


def test_a_file_that_does_not_ship_is_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(1).normal(size=(1024, 16)).astype(np.float32)
    np.save("mine.npy", rows)
    own = ["embedding={family: vectors, file: mine.npy}", "cells=[{m: 64, d_model: 16}]"]
    (cell,) = load_study("quickstart", own).cells
    assert (assets.get(*cell.assets) == rows[:64]).all()
