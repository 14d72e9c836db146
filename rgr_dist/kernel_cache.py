"""Where compiled kernels are kept on disk: in a folder named after the sources of all kernels.

Numba inlines functions of other files into a cached one, but checks for changes only the file
that defines the cached one. So an edit elsewhere would leave stale code behind, and silently
wrong numbers. Here an edit of any kernel's source changes the folder.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])
config: Any = numba.config  # its settings are not typed

PACKAGE = Path(__file__).parent
ROOMS = ("problem", "engines", "engines/fused", "engines/fused/facts")
"""Folders whose files hold kernels, or types and constants that are compiled into them."""


def cached_kernel(**options: Any) -> Callable[[Function], Function]:
    """``numba.njit`` with these options; processes share the compiled code on disk."""

    def decorate(function: Function) -> Function:
        given = config.CACHE_DIR
        config.CACHE_DIR = str(cache_folder() or "")  # read by njit, as it decorates
        try:
            compiled: Function = numba.njit(cache=cache_folder() is not None, **options)(function)
        finally:
            config.CACHE_DIR = given
        return compiled

    return decorate


@cache
def cache_folder() -> Path | None:
    """The folder of the compiled code, or None if no folder can be written.

    It lies in ``NUMBA_CACHE_DIR`` if that is set. Otherwise it lies in the package, in the user's
    cache folder, or in the temporary folder: the first of these that can be written.
    """
    name = f"rgr-{kernel_digest()}"
    return next((root / name for root in _roots() if _is_writable(root / name)), None)


def kernel_digest() -> str:
    """Digest of every file in ``ROOMS``, 16 hex digits."""
    digest = hashlib.sha256()
    for room in ROOMS:
        for path in sorted(PACKAGE.joinpath(room).glob("*.py")):
            source = path.read_bytes()
            digest.update(f"{room}/{path.name} {len(source)}\n".encode())
            digest.update(source)
    return digest.hexdigest()[:16]


def _roots() -> Iterator[Path]:
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
        return
    yield PACKAGE / "__pycache__"
    with suppress(RuntimeError):  # this user has no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "rgr-dist").expanduser()
    with suppress(OSError):
        temporary = Path(tempfile.gettempdir(), f"rgr-dist-{os.getuid()}")
        temporary.mkdir(mode=0o700, exist_ok=True)
        if temporary.stat().st_uid == os.getuid():  # never run code that another user left there
            yield temporary


def _is_writable(folder: Path) -> bool:
    """Whether files can be written to the folder, which is created if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
