"""What runs keep outside the store, and what is left of it when they are killed.

A run has a scratch folder in the temporary folder, and a Ray of our own a session folder in Ray's,
with a claim beside it. The scratch folder and the claim say whose they are. All go when the run
ends. The next run removes what belongs to a process of this machine that has ended; never another
user's, and never a living one's.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rgr_dist.store.owner import MARK, is_abandoned, mark

LINGER = 60.0
"""Seconds in which every process of a Ray has gone whose driver was killed."""


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
    """Have every Ray that is started meanwhile say whose it is, before its session folder is made.

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
                folder.mkdir(parents=True, exist_ok=True)
                _claim(folder / node._session_name).touch()
        fill(node, *arguments)

    with patch.object(Node, "_init_temp", claim_and_fill):
        yield


def _claim(session: Path) -> Path:
    """The file that says that a session folder is that of this process."""
    return session.with_name(f"rgr-{mark()}-{session.name}")


def remove_session(session: Path) -> None:
    """Remove a session folder of Ray, and the link to it."""
    shutil.rmtree(session, ignore_errors=True)
    latest = session.parent / "session_latest"
    with suppress(OSError):
        if latest.is_symlink() and not latest.exists():
            latest.unlink()


def give_up_session(session: Path) -> None:
    """Remove the session folder of a Ray of this process that has ended, and its claim."""
    remove_session(session)
    _claim(session).unlink(missing_ok=True)


def remove_leftovers(rays_folder: Path) -> None:
    """Remove what killed runs left.

    Processes of a Ray outlive their driver, and those that just start make its session folder anew.
    So the claim stays for ``LINGER`` seconds after the folder was removed.

    Args:
        rays_folder: where Ray's session folders are.
    """
    with suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob("rgr-*"):
            if folder.is_dir() and is_abandoned(folder.name) and _is_mine(folder):
                shutil.rmtree(folder, ignore_errors=True)
        for claim in rays_folder.glob("rgr-*-session_*"):
            if is_abandoned(claim.name) and _is_mine(claim):
                session = rays_folder / MARK.sub("", claim.name, count=1).removeprefix("rgr--")
                if session.is_dir():
                    remove_session(session)
                    os.utime(claim)
                elif time.time() - claim.stat().st_mtime > LINGER:
                    claim.unlink()


def _is_mine(path: Path) -> bool:
    """Whether a file belongs to this user, and is no link to somewhere else."""
    return not path.is_symlink() and path.lstat().st_uid == os.getuid()
