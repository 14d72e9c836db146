"""What the report in a store was written from, so that the same report is not written twice."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ValidationError

from rgr_dist import analysis, paper, search
from rgr_dist.analysis.load import StudyResults
from rgr_dist.store.store import Store, table_path

PACKAGES = [Path(file).parent for file in (paper.__file__, search.__file__, analysis.__file__)]
SOURCES = {".py", ".j2", ".css", ".js"}
"""Endings of our files that a report depends on."""
FROM_OTHERS = ("thresholds",)
"""Tables of other studies that the report compares with theory."""


class Written(BaseModel, frozen=True):
    """The record of a report in a store, kept beside it as ``written.json``.

    Attributes:
        address: of the report's page.
        headline: the finding, in a sentence.
        origin: digest of what the report was written from.
        files: digest of each of the report's files, by path within the store.
    """

    address: str
    headline: str
    origin: str
    files: Mapping[str, str]


def written_before(results: StudyResults, store: Store) -> Written | None:
    """The report in the store, if it is whole and would be written the same again; else None."""
    home = f"studies/{results.study.name}"
    text = store.read_bytes(f"{home}/written.json")
    if text is None:
        return None
    try:
        kept = Written.model_validate_json(text)
    except ValidationError:
        return None
    is_whole = all(_stored(store, name) == digest for name, digest in kept.files.items())
    if kept.origin != origin_of(results, store) or not is_whole:
        return None
    return kept.model_copy(update={"address": store.address(f"{home}/report/index.html")})


def origin_of(results: StudyResults, store: Store) -> str:
    """Digest of what a report depends on: the runs, the study, other studies' results, our code.

    Args:
        results: as ``open_results`` gives them, with the store's version.
    """
    study = results.study
    digest = hashlib.sha256(f"{results.version} {_sources()}\n{study.to_yaml()}".encode())
    digest.update(store.read_bytes(f"studies/{study.name}/prior.json") or b"")
    for other in store.studies():
        for table in FROM_OTHERS if other != study.name else FROM_OTHERS[1:]:
            found = _stored(store, table_path(other, table))
            digest.update(f"{other} {table} {found}\n".encode())
    return digest.hexdigest()


def _stored(store: Store, name: str) -> str | None:
    """The digest of a stored file; None if there is none."""
    content = store.read_bytes(name)
    return None if content is None else digest_of(content)


def digest_of(content: bytes) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


@cache
def _sources() -> str:
    """Digest of all our code, since an editable installation changes without a new version."""
    digest = hashlib.sha256()
    for folder in PACKAGES:
        for path in sorted(path for path in folder.rglob("*") if path.suffix in SOURCES):
            digest.update(f"{path.relative_to(folder)} {path.stat().st_size}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
