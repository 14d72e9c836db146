"""Refuses paths that are no readable file before anything waits for them."""

from __future__ import annotations

import stat
from pathlib import Path

from rgr_dist.study.errors import StudyError

LARGEST_STUDY = 10 * 2**20
"""Bytes of the largest study file."""


def check_file(path: Path, wanted: str, largest: int | None = None) -> None:
    """Make sure that a path is a regular file: a pipe or a device may never end.

    Args:
        wanted: what would be valid.
        largest: most bytes it may have.

    Raises:
        StudyError: it is none, is too large, or the path cannot be one.
    """
    try:
        found = path.stat()
    except ValueError:
        raise StudyError(f"{str(path)!r}: not a path, since it holds a zero byte") from None
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror}; {wanted}") from None
    if stat.S_ISDIR(found.st_mode):
        raise StudyError(f"{path}: cannot be read: Is a directory; {wanted}")
    if not stat.S_ISREG(found.st_mode):
        raise StudyError(f"{path}: cannot be read: a pipe or a device; {wanted}")
    if largest is not None and found.st_size > largest:
        raise StudyError(f"{path}: cannot be read: larger than {largest >> 20} MiB; {wanted}")
