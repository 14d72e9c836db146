"""Keeps the report of one question from being overwritten by another's of the same name."""

from __future__ import annotations

from rgr_dist.store.store import Store
from rgr_dist.study.document import load_yaml
from rgr_dist.study.errors import StudyError
from rgr_dist.study.from_yaml import parse_study
from rgr_dist.study.study import Study


def check_same_question(study: Study, store: Store) -> None:
    """Make sure that what the store holds under the study's name asks what the study asks.

    Raises:
        StudyError: it has other cells or another search.
    """
    path = f"studies/{study.name}/study.yaml"
    text = store.read_text(path)
    if not text:
        return
    try:
        stored = parse_study(load_yaml(text), path)
    except StudyError:  # of another version, or on a file that is not here
        return
    changed = [
        name for name in ("cells", "search") if getattr(stored, name) != getattr(study, name)
    ]
    if changed:
        raise StudyError(
            f"--set: {store.root} has {study.name} with other {' and '.join(changed)}; this would "
            f"overwrite its report: name the question, such as --set name={study.name}-2"
        )
