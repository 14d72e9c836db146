"""Two studies of one name in a store: the same question goes on, another is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgr_dist.planning import first_guesses
from rgr_dist.planning.same_question import check_same_question, keep_source
from rgr_dist.store.store import Store
from rgr_dist.study.errors import StudyError
from rgr_dist.study.study_file import load_study, parse_study

CELL = {"m": 64, "d_model": 16}


def written(path: Path, *cells: dict[str, Any], **search: Any) -> str:
    """The path of a study's file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"name: mine\ncells: {list(cells)}\nsearch: {search}\n")
    return str(path)


def asked(source: str, store: Store, *overrides: str) -> None:
    check_same_question(load_study(source, overrides), store, source, bool(overrides))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store that has been asked by ``a/mine.yaml``."""
    store, source = Store(tmp_path / "results"), written(tmp_path / "a/mine.yaml", CELL)
    asked(source, store)
    first_guesses.record(load_study(source), store, {})
    keep_source(load_study(source), store, source)
    return store


def test_another_files_question_is_refused_with_both_paths(tmp_path: Path, store: Store) -> None:
    first, other = tmp_path / "a/mine.yaml", tmp_path / "b/mine.yaml"
    for text in (written(other, {"m": 128, "d_model": 16}), written(other, CELL, seeds=3)):
        with pytest.raises(StudyError) as caught:
            asked(text, store)
        assert str(caught.value).startswith(f"{other}: {store.root} has another study")
        assert str(caught.value).endswith("another name, such as --set name=mine-2")
        assert f"from {first}, whose report would be overwritten" in str(caught.value)
    first.unlink()
    asked(str(other), store)


def test_what_goes_on_is_not_refused(tmp_path: Path, store: Store) -> None:
    more = {"m": [64, 128], "d_model": 16}
    asked(written(tmp_path / "b/copy.yaml", CELL), store)
    asked(written(tmp_path / "b/extended.yaml", more), store)
    asked(written(tmp_path / "a/mine.yaml", {"m": 128, "d_model": 16}, seeds=3), store)


def test_a_damaged_note_of_where_a_study_was_read_from_stops_nothing(
    tmp_path: Path, store: Store
) -> None:
    for text in ("x" * 5000, "a\0b", "\n" * 300, ""):
        (tmp_path / "results/studies/mine/source.txt").write_text(text)
        asked(written(tmp_path / "b/mine.yaml", {"m": 128, "d_model": 16}), store)


def test_a_study_in_python_goes_on_only_with_what_it_asked(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    study, other, more = (
        parse_study({"name": "mine", "cells": list(cells), "search": {"seeds": 3}})
        for cells in ([CELL], [{"m": 64, "d_model": 8}], [CELL, {"m": 64, "d_model": 8}])
    )
    check_same_question(study, store, "", False)
    first_guesses.record(study, store, {})
    keep_source(study, store, "")
    for same in (study, more):
        check_same_question(same, store, "", False)
    said = rf"^this study: {store.root} has another study .* from Python, .* as name=mine-2$"
    with pytest.raises(StudyError, match=said):
        check_same_question(other, store, "", False)
    source = written(tmp_path / "a/mine.yaml", {"m": 128, "d_model": 16})
    with pytest.raises(StudyError, match=r"from Python.* such as --set name=mine-2$"):
        asked(source, store)
    source = written(tmp_path / "a/mine.yaml", CELL, seeds=3)
    asked(source, store)
    keep_source(study, store, source)
    keep_source(study, store, "")  # the file is there, and may still be edited
    asked(written(tmp_path / "a/mine.yaml", CELL, seeds=4), store)


def test_set_asks_the_same_or_gives_another_name(tmp_path: Path, store: Store) -> None:
    first = str(tmp_path / "a/mine.yaml")
    asked(first, store, "search.seeds=10")
    with pytest.raises(StudyError, match=r"^--set: changes the search of .* --set name=mine-2$"):
        asked(first, store, "search.seeds=3")
    asked(first, store, "search.seeds=3", "name=mine-2")
