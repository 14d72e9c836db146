"""What a store must still hold: every row that was ever seen in it, and none trained again.

It reads the parts with pandas alone, not with the code whose faults it looks for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

Row = tuple[int, str]
"""When a run ended, in microseconds since 1970, and its score: a second training ends later."""


@dataclass
class Ledger:
    """The rows of one store, as they were at each look.

    Attributes:
        rows: each run that has been stored, failed tries aside, by its address.
        lost: runs that were there at one look and missing at a later one.
        twice: runs that were trained a second time.
        again: for each of those, the time and score of its rows, the previously known one first.
        backwards: how many looks found fewer runs than the look before.
        torn: how many runs were only in parts that the campaign tore; they may be trained again.
    """

    store: Path
    rows: dict[str, Row] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    twice: set[str] = field(default_factory=set)
    again: list[str] = field(default_factory=list)
    backwards: int = 0
    torn: int = 0
    _read: dict[tuple[Path, int, int], dict[str, Row]] = field(default_factory=dict)

    def stored(self) -> int:
        """How many runs the store holds just now, while a driver may be writing it."""
        return len(set().union(*(self._rows(part) for part in self.parts())))

    def look(self) -> int:
        """Compare the store, which nothing writes now, with what it held; returns its run count."""
        now: dict[str, set[Row]] = {}
        for part in self.parts():
            for run, row in self._rows(part).items():
                now.setdefault(run, set()).add(row)
        for run, rows in now.items():
            known = self.rows.get(run)
            if run not in self.twice and (len(rows) > 1 or known not in (None, *rows)):
                self.twice.add(run)
                self.again.append(f"{run} was {known}, is {sorted(rows)}")
        self.lost |= self.rows.keys() - now.keys()
        self.backwards += len(now) < len(self.rows)
        self.rows = {run: min(rows) for run, rows in now.items()}
        return len(now)

    def tear(self, part: Path, keep: int) -> None:
        """Cut a part down to so many bytes; what only it held is no longer expected."""
        others: set[str] = set()
        for other in self.parts():
            if other != part:
                others |= self._rows(other).keys()
        gone = self._rows(part).keys() - others
        part.write_bytes(part.read_bytes()[:keep])
        for run in gone:
            self.rows.pop(run, None)
        self.torn += len(gone)

    def parts(self) -> list[Path]:
        """The files that hold the store's rows."""
        return sorted(self.store.glob("runs/part-*.parquet"))

    def _rows(self, part: Path) -> dict[str, Row]:
        """The runs of a part that did not fail; none where it is damaged or was merged away."""
        try:
            written = part.stat()
            key = (part, written.st_size, written.st_mtime_ns)
            if key not in self._read:
                self._read[key] = _rows(part)
        except (OSError, ValueError):  # an ArrowInvalid is a ValueError
            return {}
        return self._read[key]


def _rows(part: Path) -> dict[str, Row]:
    table = pd.read_parquet(part, columns=["run_id", "finished_at", "score", "stop_reason"])
    table = table[table["stop_reason"] != "failed"]
    ended = table["finished_at"].astype("datetime64[us, UTC]").astype("int64")
    values = zip(ended.tolist(), map(repr, table["score"]), strict=True)
    return dict(zip(table["run_id"].tolist(), values, strict=True))
