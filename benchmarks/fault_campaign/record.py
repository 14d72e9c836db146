"""What was done to a study: one line of JSON for each fault."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any


class Record:
    """A file that several processes append to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, what: str, how: str, rpc_faults: bool, **more: Any) -> None:
        """Add a fault.

        Args:
            what: what was killed or harmed: driver, worker, raylet, node, disk, part.
            how: by which signal, or in what other way.
            rpc_faults: whether Ray's calls were failing too.
        """
        line = {"what": what, "how": how, "rpc_faults": rpc_faults, "at": time.time(), **more}
        append(self.path, line)

    def faults(self) -> list[dict[str, Any]]:
        """All faults, in order."""
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def count(self, *what: str) -> int:
        """How many faults of these kinds there were."""
        return sum(fault["what"] in what for fault in self.faults())

    def table(self) -> list[dict[str, Any]]:
        """How many faults of each kind there were, and how many while Ray's calls were failing."""
        kinds = [(fault["what"], fault["how"]) for fault in self.faults()]
        failing = Counter(
            (fault["what"], fault["how"]) for fault in self.faults() if fault["rpc_faults"]
        )
        return [
            {"what": what, "how": how, "times": times, "with_rpc_faults": failing[what, how]}
            for (what, how), times in sorted(Counter(kinds).items())
        ]


def append(path: Path, line: dict[str, Any]) -> None:
    """Add a line to a file in one write, so that lines of several processes stay whole."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, f"{json.dumps(line)}\n".encode())
    finally:
        os.close(handle)
