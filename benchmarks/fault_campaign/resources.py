"""What a driver may run out of: memory, and room on its disk."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def memory_in_use(more: int) -> float:
    """Share of the machine's memory that is in use, with so many MiB more."""
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    kilobytes = {line[0]: int(line[1]) for line in lines}
    total, free = kilobytes["MemTotal:"], kilobytes["MemAvailable:"]
    return (total - free + 1024 * more) / total


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A file system of 4 MiB; None where it cannot be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def write_until_full(path: Path) -> None:
    """Write a file that leaves no room on its disk."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"\0" * 4096):
            pass
