"""A temporary folder that nobody else can open, and that does not outlive its process for long."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "rgr-scratch-"
LONGEST = 16
"""Characters of a place, so that the path of a socket of Ray in a folder there has 107 at most."""


@contextmanager
def private_folder(place: str | None = None) -> Iterator[Path]:
    """A folder of mode 0700, removed at the end.

    One whose process was killed is removed by the next that is made beside it: its owner held a
    lock on it, which ends with a process.

    Args:
        place: where it is made; the temporary folder by default.
    """
    place = place or tempfile.gettempdir()
    for left in Path(place).glob(f"{PREFIX}*"):
        with suppress(OSError), _locked(left):  # it is in use, or somebody else's
            if left.stat().st_uid == os.geteuid():
                shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=place))
    with _locked(made):
        folder = made.rename(made.with_name(made.name[1:]))  # by now nobody takes it for one left
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def short_place() -> str:
    """Where a folder for Ray can be: the temporary folder, or /tmp if that is too long a path."""
    asked = os.environ.get("RAY_TMPDIR")  # as Ray has it
    place = asked or tempfile.gettempdir()
    return place if asked or len(place) <= LONGEST else "/tmp"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock.

    Raises:
        OSError: another process holds it, or owns the folder.
    """
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(file)
