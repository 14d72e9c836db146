"""What the studies of facts found: thresholds by setting, splits of a total, statements."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from tables.markdown import table
from tables.results import FOLDER

STUDIES = (
    "facts", "facts-routing", "facts-tau", "facts-total", "facts-queries", "facts-many",
    "facts-settings",
)  # fmt: skip
"""``STUDY.facts.json`` has each one's thresholds, statements and splits."""
KEPT = (
    "database", "facts", "keys", "queries", "values", "d_model", "h", "d_qk", "d_vo", "D_V",
    "D_V_low", "D_V_high", "status", "confirmed", "D_V_first", "mean_score", "rank_low",
    "rank_high",
)  # fmt: skip

Record = dict[str, Any]


def read(store: str, study: str) -> None:
    """Keep the tables of a store in which the study is finished.

    Raises:
        StudyError, StoreError: the store cannot be read.
    """
    from rgr_dist.analysis.facts.statements import statements
    from rgr_dist.analysis.facts.tables import by_split, rows_of_facts, runs
    from rgr_dist.analysis.laws.families import laws
    from rgr_dist.analysis.load import open_results
    from rgr_dist.store.store import Store
    from rgr_dist.study.study_file import load_study

    loaded = load_study(study)
    results = open_results(loaded, Store(store))
    cells = {cell.cell_id: cell for cell in loaded.cells}
    rows = rows_of_facts(results)
    splits = by_split(results) if loaded.search.total else None
    kept = {
        "study": study,
        "runs": len(results.runs),
        "thresholds": [
            {name: row[name] for name in KEPT}
            | cells[row["cell_id"]].database.model_dump()
            | {"tau": cells[row["cell_id"]].facts.tau}
            | {"setting": loaded.differences[row["cell_id"]]}
            for row in rows
        ],
        "powers": {
            law.name: [law.exponent, law.exponent_low, law.exponent_high, law.n]
            for law in laws(rows, loaded)
        },
        "statements": statements(
            [] if loaded.search.total else rows, runs(results), loaded.search.sizes.shown_arm
        ),
        "splits": []
        if splits is None
        else json.loads(
            splits.assign(
                database=[cells[one].database.family for one in splits["cell_id"]]
            ).to_json(orient="records")
        ),
    }
    path = FOLDER / f"{study}.facts.json"
    path.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


RANKS = FOLDER / "facts.ranks.json"
"""What ``rgr bounds --database … --cp 0.01`` printed of databases of 200 facts, and of more."""
ASKED = (
    "function --keys 50 --queries 4 --values 32",
    "predicates --per-query 4 --keys 25 --queries 8 --values 32",
    "low-rank --rank 16 --keys 25 --queries 8 --values 32",
    *(
        f"predicates --per-query {each} --keys {keys} --queries 4 --values 16"
        for keys in (50, 500, 5000)
        for each in (2, 4, 8)
    ),
)


def read_ranks() -> None:
    """Ask for the ranks again; minutes.

    Raises:
        SystemExit: a command failed.
    """
    from rgr_dist.cli import call

    kept = []
    for asked in ASKED:
        command = ["bounds", "--d-model", "32", "--cp", "0.01", "--database", *asked.split()]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            status = call([*command, "--format", "json"])
        if status:
            raise SystemExit(status)
        row = json.loads(out.getvalue())["rows"][0]
        kept.append({"command": " ".join(["rgr", *command]), "family": asked.split()[0], **row})
        RANKS.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


def ranks() -> str:
    """The CP rank of each database beside its bounds."""
    rows = [
        [
            row["command"].partition("--database ")[2].replace("--", ""),
            f"{row['triples']:,}",
            *(row[name] for name in ("rank_lower", "cp_rank", "rank_upper")),
        ]
        for row in json.loads(RANKS.read_text("utf-8"))
    ]
    header = ["database", "facts", "rank at least", "CP rank, estimated", "rank at most"]
    return table(header, rows)


@cache
def _kept(study: str) -> Record:
    result: Record = json.loads((FOLDER / f"{study}.facts.json").read_text("utf-8"))
    return result


def _by(study: str, *names: str) -> Iterator[tuple[tuple[Any, ...], list[Record]]]:
    """The thresholds of a study by some of their keys, in the order of the study."""
    rows = _kept(study)["thresholds"]
    for key, own in groupby(rows, lambda row: tuple(row.get(name) for name in names)):
        yield key, list(own)


CELL = ("family", "keys", "queries", "values", "share", "rank", "per_query")


def _named(row: Record) -> str:
    """``200 facts, 8 queries, random``."""
    how = {
        "function": "random",
        "partial": "half of the pairs asked",
        "predicates": f"{row.get('per_query')} values to a query",
        "low-rank": f"tensor rank {row.get('rank')}",
    }[row["family"]]
    queries = "1 query" if row["queries"] == 1 else f"{row['queries']} queries"
    return f"{row['facts']:,} facts, {queries}, {how}"


def _width(row: Record) -> str:
    return str(row["d_vo"]) if row["status"] == "found" else STATUS[row["status"]]


STATUS = {"censored": "none", "inconsistent": "unclear", "open": "not finished"}


def _rank(rows: Sequence[Record]) -> str:
    low, high = (
        f(round(row[k]) for row in rows) for f, k in ((min, "rank_low"), (max, "rank_high"))
    )
    return str(low) if low == high else f"{low}–{high}"


def frontier(study: str) -> str:
    """The smallest d_vo of every d_qk, a row for each database."""
    cells = [own for _, own in _by(study, *CELL)]
    settings = [str(row["d_qk"]) for row in cells[0]]
    rows = [[_named(own[0]), *map(_width, own), _rank(own)] for own in cells]
    first, *others = settings
    return table(["database", f"d_qk = {first}", *others, "rank of the database"], rows)


def by_facts() -> str:
    """D_V* of each structure by the number of facts, beside the bounds on the rank."""
    cells = sorted((row for _, (row,) in _by("facts", *CELL)), key=itemgetter("facts"))
    sizes = sorted({row["facts"] for row in cells})
    families = list(dict.fromkeys(row["family"] for _, (row,) in _by("facts", *CELL)))
    rows = []
    for family in families:
        own = [row for row in cells if row["family"] == family]
        name = _named(own[0]).split(", ", 2)[2]
        rows.append(
            [name, *map(_width, own), f"{own[0]['rank_high']:.0f} to {own[-1]['rank_high']:.0f}"]
        )
    heads = [f"{size:,}" for size in sizes]
    return table(
        ["database", *heads[:-1], f"{heads[-1]} facts", "rank bound, from first to last"], rows
    )


def by_tau() -> str:
    """The smallest d_vo by the threshold on the probability."""
    cells = [own for _, own in _by("facts-tau", *CELL)]
    taus = [f"{row['tau']:g}" for row in cells[0]]
    return table(
        ["database", f"τ = {taus[0]}", *taus[1:]],
        [[_named(own[0]), *map(_width, own)] for own in cells],
    )


def least_routing() -> str:
    """The smallest d_qk at which d_vo = 1, 2 and 3 hold a database, and the largest."""
    rows = []
    for _, own in _by("facts-queries", *CELL):
        told = []
        for d_vo in (1, 2, 3):
            held = [row["d_qk"] for row in own if row["d_vo"] and row["d_vo"] <= d_vo]
            span = f"{held[0]} (to {held[-1]})" if held else "none"
            told.append(span)
        rows.append([_named(own[0]), *told, _rank(own)])
    return table(["database", *(f"d_vo = {d_vo}" for d_vo in (1, 2, 3)), "rank"], rows)


def splits() -> str:
    """The mean score along a fixed total, a column for each database."""
    rows = _kept("facts-total")["splits"]
    cells = list(dict.fromkeys((row["database"], row["m"]) for row in rows))
    shown = (1, 2, 4, 8, 12, 16, 17, 20, 24, 28, 31, 32)
    at = {(row["database"], row["m"], row["d_vo"]): row for row in rows}
    names = {
        (row["family"], row["facts"]): _named(row) for row in _kept("facts-total")["thresholds"]
    }
    return table(
        ["database", f"d_vo = {shown[0]}", *map(str, shown[1:])],
        [
            [names[cell], *(f"{at[*cell, d_vo]['mean_score']:.3f}" for d_vo in shown)]
            for cell in cells
        ],
    )


def many() -> str:
    """The smallest d_vo by the number of facts at a rank that hardly changes."""
    rows: list[list[Any]] = []
    key = ("family", "per_query")
    for _, own in groupby(
        sorted(
            _kept("facts-many")["thresholds"], key=lambda row: [str(row.get(name)) for name in key]
        ),
        lambda row: [row.get(name) for name in key],
    ):
        cells = list(own)
        found = {row["facts"]: _width(row) for row in cells}
        rows.append(
            [
                _named(cells[0]).split(", ", 2)[2],
                *(found.get(size, "–") for size in (200, 2000, 20000)),
                _rank(cells),
            ]
        )
    return table(["database, 4 queries, 16 values", "200 facts", "2,000", "20,000", "rank"], rows)


def settings() -> str:
    """The smallest d_vo of one database by what is changed, with its interval."""
    rows = []
    for row in _kept("facts-settings")["thresholds"]:
        low, high = row["D_V_low"], row["D_V_high"] or "…"
        width = _width(row) if row["status"] == "censored" else f"{_width(row)} [{low}–{high}]"
        changed = f"`{row['setting']}`" if row["setting"] else "nothing"
        rows.append([changed, width])
    return table(["changed", "smallest d_vo"], rows)


def number(study: str, statement: int, name: str, form: str = ",") -> str:
    """A number of one of the statements."""
    return format(_kept(study)["statements"][statement][name], form).replace("-", "−")


def power(of: str) -> str:
    """``0.62 [0.25 to 1.04]``: the power by which D_V* grows in study ``facts``."""
    exponent, low, high, _ = _kept("facts")["powers"][f"D_V_{of}"]
    return f"{exponent:.2f} [{low:.2f} to {high:.2f}]".replace("-", "−")


def runs(study: str) -> str:
    """How many runs a study has."""
    return f"{_kept(study)['runs']:,}"


PIECES: dict[str, Callable[[], str]] = {
    "facts-routing frontier": partial(frontier, "facts-routing"),
    "facts by-facts": by_facts,
    "facts-tau by-tau": by_tau,
    "facts-queries least": least_routing,
    "facts-total splits": splits,
    "facts-many by-facts": many,
    "facts ranks": ranks,
    "facts-settings widths": settings,
    **{f"{study} runs": partial(runs, study) for study in STUDIES},
    **{
        f"{study} inflated": partial(number, study, 3, "above")
        for study in ("facts", "facts-routing")
    },
    **{
        f"{study} layers": partial(number, study, 3, "layers")
        for study in ("facts", "facts-routing")
    },
    **{
        f"{study} most": partial(number, study, 3, "most", ".1f")
        for study in ("facts", "facts-routing")
    },
    "facts power facts": partial(power, "facts_d_qk=8"),
    "facts power rank": partial(power, "rank_d_qk=8"),
    "facts power low-rank": partial(power, "facts_d_qk=8_low-rank"),
    "facts power predicates": partial(power, "facts_d_qk=8_predicates"),
    "facts power partial": partial(power, "facts_d_qk=8_partial"),
    "facts-tau gap": partial(number, "facts-tau", 2, "gap", ".2f"),
    "facts-tau claimed": partial(number, "facts-tau", 2, "claimed_gap", ".2f"),
    "facts-tau best": partial(number, "facts-tau", 2, "best_tau", ""),
    "facts-routing change": partial(number, "facts-routing", 0, "change", "+.0%"),
}
