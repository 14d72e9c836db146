"""Keeps a study's report from being overwritten by that of another question of the same name."""

from __future__ import annotations

from pathlib import Path

from rgr_dist.store.store import Store
from rgr_dist.study.errors import StudyError
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from rgr_dist.study.yaml_document import load_yaml, shipped_studies

PYTHON = "Python"
"""The source of a study that was written in Python: no file says which study it continues."""


def check_same_question(study: Study, store: Store, source: str, is_changed: bool) -> None:
    """Make sure that what the store holds under the study's name asks what the study asks.

    A file may be edited and its study goes on. A copy of the file, or a study in Python, may go on
    with that study if it only adds cells.

    Args:
        source: where the study was read: a file, or the name of a shipped study; empty if nowhere.
        is_changed: whether ``--set`` changed it.

    Raises:
        StudyError: ``--set`` asks for other cells or another search; or the stored study is from
            another file that is still there, a shipped study or Python, and has cells that this
            study lacks, or another search.
    """
    stored = _stored(study, store)
    if stored is None:
        return
    changed = [
        name for name in ("cells", "search") if getattr(stored, name) != getattr(study, name)
    ]
    name = f"--set name={study.name}-2" if source else f"name={study.name}-2"
    if changed and is_changed:
        raise StudyError(
            f"--set: changes the {' and the '.join(changed)} of {study.name}, whose report in "
            f"{store.root} would be overwritten; give this question a name, such as {name}"
        )
    first, here = store.read_text(_path(study, "source.txt")), _whole(source)
    is_extended = stored.search == study.search and {*stored.cells} <= {*study.cells}
    is_another = first == PYTHON or (first != here and _is_there(first))
    if is_another and not is_extended:
        raise StudyError(
            f"{here or 'this study'}: {store.root} has another study named {study.name}, from "
            f"{first}, whose report would be overwritten; give one of them another name, such as "
            f"{name}"
        )


def keep_source(study: Study, store: Store, source: str) -> None:
    """Store where a study was read from, for ``check_same_question``.

    Raises:
        StoreError: it could not be stored.
    """
    path, here = _path(study, "source.txt"), _whole(source)
    kept = store.read_text(path)
    if not source and not _is_there(kept):
        here = PYTHON
    if here and kept != here:
        store.write_text(path, here)


def _whole(source: str) -> str:
    """The whole path of a study's file, or the name of a shipped study; empty if it is gone."""
    if source in shipped_studies():
        return source
    return str(Path(source).resolve()) if source and Path(source).exists() else ""


def _is_there(source: str | None) -> bool:
    """Whether what a study was read from can still be read."""
    return bool(source) and _whole(str(source)) == source


def _path(study: Study, file: str) -> str:
    return f"studies/{study.name}/{file}"


def _stored(study: Study, store: Store) -> Study | None:
    """The study that the store holds under a study's name, if it can be read here."""
    path = _path(study, "study.yaml")
    text = store.read_text(path)
    try:
        return parse_study(load_yaml(text), path) if text else None
    except StudyError:  # of another version, or on a file that is not here
        return None
