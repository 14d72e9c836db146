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
"""Most characters of a place that keep the path of a Ray socket in a folder there within 107."""


@contextmanager
def private_folder(place: str | None = None) -> Iterator[Path]:
    """A folder of mode 0700, removed at the end.

    A folder whose process was killed is removed when the next one is made in the same place: its
    owner held a lock on it, which ends with the process.

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
        folder = made.rename(made.with_name(made.name[1:]))  # locked by now, so nobody removes it
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def short_place() -> str:
    """Where to put Ray's folder: RAY_TMPDIR, else the temporary folder, or /tmp if that is long."""
    asked = os.environ.get("RAY_TMPDIR")  # the variable that Ray reads too
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
