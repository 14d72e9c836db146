"""Where compiled kernels are kept on disk: in a folder named after the sources they come from.

Numba inlines functions from other files into a cached function, but checks only the file that
defines the cached function for changes. An edit elsewhere would leave stale code behind, and
silently wrong numbers. Here, editing any source of a kernel changes its folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])
config: Any = numba.config  # its settings are not typed

PACKAGE = Path(__file__).parents[1]
SOURCES = "problem/*.py", "models/f1.py", "engines/schedule.py", "engines/fused/**/*.py"
"""All files with kernels, and with the types and constants compiled into them."""
ROOM = 2**24
"""Bytes that must be free where kernels are kept, since Numba raises where there is no room for
one; all together take 13 million."""


def cached_kernel(**options: Any) -> Callable[[Function], Function]:
    """``numba.njit`` with these options; processes share the compiled code on disk."""

    def decorate(function: Function) -> Function:
        given = config.CACHE_DIR
        folder = cache_folder(kernel_digest())
        config.CACHE_DIR = str(folder or "")  # njit reads it when it decorates
        try:
            compiled: Function = numba.njit(cache=folder is not None, **options)(function)
        finally:
            config.CACHE_DIR = given
        return compiled

    return decorate


@cache
def cache_folder(digest: str) -> Path | None:
    """The folder for code compiled from sources with this digest; None if none is writable.

    It lies in ``NUMBA_CACHE_DIR`` if that is set. Otherwise it lies in the first of these that is
    writable: the package, the user's cache folder, the temporary folder.
    """
    name = f"rgr-{digest}"
    return next((root / name for root in _roots() if _is_writable(root / name)), None)


@cache
def kernel_digest() -> str:
    """Digest of the sources that kernels are compiled from, 16 hex digits."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in SOURCES for path in PACKAGE.glob(pattern)):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(PACKAGE).as_posix()} {len(source)}\n".encode())
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
    """Whether kernels can be written to the folder, which is created if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > ROOM
    except OSError:
        return False
