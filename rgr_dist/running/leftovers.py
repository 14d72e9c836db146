"""What runs keep outside the store, and what is left of it when they are killed.

A run has a scratch folder in the temporary folder, and a Ray of our own a session folder in Ray's.
Both say whose they are, and go when the run ends. The next run removes what belongs to a process
of this machine that has ended; never another user's, and never a living one's.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rgr_dist.store.owner import is_abandoned, mark

OWNER = "rgr-owner"
"""The file in a session folder of Ray that says whose it is."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for as long as it is used."""
    folder = Path(tempfile.mkdtemp(prefix=f"rgr-{mark()}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def session_folder() -> Path | None:
    """Ray's folder of this session, if this process has a Ray that runs on this machine."""
    node = getattr(sys.modules.get("ray._private.worker"), "_global_node", None)
    return None if node is None else Path(node.get_session_dir_path())


@contextmanager
def claimed_session() -> Iterator[None]:
    """Have every Ray that is started meanwhile say, from its folder's first moment, whose it is.

    Ray has no argument for that. Were it said once Ray has started, what a run leaves that is
    killed before would be nobody's.
    """
    from ray._common.utils import get_default_ray_temp_dir
    from ray._private.node import Node

    fill = Node._init_temp

    def claim_and_fill(node: Any, *arguments: Any) -> None:
        if node.head:
            folder = Path(node._ray_params.temp_dir or get_default_ray_temp_dir())
            with suppress(OSError):  # a full disk: it will be left
                _create_claimed(folder / node._session_name)
        fill(node, *arguments)

    with patch.object(Node, "_init_temp", claim_and_fill):
        yield


def _create_claimed(session: Path) -> None:
    session.parent.mkdir(parents=True, exist_ok=True)
    unnamed = Path(tempfile.mkdtemp(prefix=f"rgr-{mark()}-", dir=session.parent))
    (unnamed / OWNER).write_text(mark())
    unnamed.rename(session)


def remove_session(session: Path) -> None:
    """Remove a session folder of Ray, the file that says whose it is last."""
    for inner in session.iterdir() if session.is_dir() else ():
        if inner.is_dir() and not inner.is_symlink():
            shutil.rmtree(inner, ignore_errors=True)
        elif inner.name != OWNER:
            inner.unlink(missing_ok=True)
    shutil.rmtree(session, ignore_errors=True)
    latest = session.parent / "session_latest"
    with suppress(OSError):
        if latest.is_symlink() and not latest.exists():
            latest.unlink()


def sweep(rays_folder: Path) -> None:
    """Remove what killed runs left.

    Args:
        rays_folder: where Ray's session folders are.
    """
    with suppress(OSError):
        temporary = Path(tempfile.gettempdir()).glob("rgr-*"), rays_folder.glob("rgr-*")
        for folder in chain(*temporary):
            if folder.is_dir() and is_abandoned(folder.name) and _is_mine(folder):
                shutil.rmtree(folder, ignore_errors=True)
        for owner in rays_folder.glob(f"session_*/{OWNER}"):
            if _is_mine(owner) and is_abandoned(owner.read_text()):
                remove_session(owner.parent)


def _is_mine(path: Path) -> bool:
    """Whether a file belongs to this user, and is no link to somewhere else."""
    return not path.is_symlink() and path.lstat().st_uid == os.getuid()
