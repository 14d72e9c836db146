"""What ``rgr bounds --database`` lists: a database's sizes, and bounds on its rank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rgr_dist.cli.options import check_room
from rgr_dist.faults import UserError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rgr_dist.study.cell import Cell


def database_rows(
    database: str,
    sizes: dict[str, int | float | None],
    d_model: int,
    seed: int,
    cp: float | None,
    one_value: bool = False,
) -> list[dict[str, Any]]:
    """The row of a database, in a list.

    Args:
        database: a family, or the path of a file of triples.
        sizes: keys of the family, None if not given.
        cp: tolerance of the numerical rank; None to leave it out.
        one_value: also make the layer of ``theory.one_value_layer``, and measure it.

    Raises:
        UserError: there is no such database, ``cp`` is not valid, or memory is too small.
    """
    from rgr_dist.problem.databases import sample_triples, tensor
    from rgr_dist.theory.ranks import least_value_width, triples_rank

    if cp is not None and not 0 < cp < 1:
        raise UserError(f"--cp {cp:g}: not a share of the tensor's norm; give one between 0 and 1")
    cell = _cell(database, sizes, d_model)
    assert cell.database is not None
    shape = cell.database.keys, cell.database.queries, cell.database.values
    entries = 0 if cp is None else math.prod(shape)
    pairs = 0 if cell.database.family == "file" else shape[0] * shape[1]
    ordered = shape[2] if cell.database.family == "predicates" else 0
    needed = PAIR * pairs + TRIPLE * cell.m + ENTRY * entries + VALUE * ordered
    check_room(needed, f"--database {database}: needs")
    triples = sample_triples(cell.database, cell.problem_json, seed)
    rank = triples_rank(triples)
    row: dict[str, Any] = {
        "database": database,
        **dict(zip(("keys", "queries", "values"), shape, strict=True)),
        "triples": len(triples),
        "values_of_keys": rank.values_of_keys,
        "values_of_queries": rank.values_of_queries,
        "rank_lower": rank.lower,
        "rank_upper": rank.upper,
        "d_model": d_model,
        "D_V_lower": least_value_width(shape, rank.lower, d_model, residual=True),
        "D_V_upper": least_value_width(shape, rank.upper, d_model, residual=True),
    }
    if cp is not None:
        from rgr_dist.theory.cp_rank import cp_rank

        row["cp_rank"] = cp_rank(tensor(triples, shape), rank.lower, rank.upper, cp, seed)
    return [row | (_one_value_layer(triples, shape) if one_value else {})]


PAIR, TRIPLE, ENTRY, VALUE = 40, 72, 9, 48
"""Bytes for each pair of key and query while values are drawn, for each triple while ranks are
counted, for each entry of the tensor that ``--cp`` fits, and for each value of which a query has a
few."""


def _one_value_layer(
    triples: npt.NDArray[np.integer], shape: tuple[int, int, int]
) -> dict[str, int]:
    """The layer with one value dimension: widths, ranks, triples that it gets right at τ = 0.95.

    Raises:
        UserError: it has too many logits to be written out.
    """
    import numpy as np
    from scipy.special import softmax

    from rgr_dist.theory.fact_logits import all_logits
    from rgr_dist.theory.one_value_layer import one_value_layer
    from rgr_dist.theory.ranks import logits_rank, triples_rank

    if math.prod(shape) > MOST_ENTRIES:
        raise UserError(
            f"--one-value: {math.prod(shape):,} logits; valid are at most {MOST_ENTRIES:,}"
        )
    weights = one_value_layer(triples, shape, TAU)
    logits = all_logits(weights, 1, residual=True)
    places = np.argwhere(softmax(logits, axis=2) >= TAU)
    held = {*map(tuple, triples.tolist())} & {*map(tuple, places.tolist())}
    return {
        "one_value_d_model": len(weights["W_V"]),
        "one_value_d_qk": weights["W_Q"].shape[1],
        "one_value_right": len(held),
        "one_value_rank_logits": logits_rank(logits),
        "one_value_rank_answers": triples_rank(places).lower,
    }


MOST_ENTRIES = 30_000_000
"""Most entries of a tensor of logits that is written out."""
TAU = 0.95
"""The least probability that ``--one-value`` gives to each right value."""


FACTS = {
    "rank_lower": "largest rank of an unfolding",
    "rank_upper": "min(sum_k |V_k|, sum_q |V_q|), Proposition 2.1 of arXiv:2502.05076",
    "D_V_lower": "least h d_vo at which logits can have that rank (Proposition 3.5, residual); "
    "argmax and softmax may need less",
}


def _cell(database: str, sizes: dict[str, int | float | None], d_model: int) -> Cell:
    """The cell of facts with that database."""
    from rgr_dist.study.cell import Cell
    from rgr_dist.study.database import FactsFile, Function, LowRank, Partial, Predicates
    from rgr_dist.study.errors import StudyError, validated, within
    from rgr_dist.study.triple_list import load_triples

    given = {name: value for name, value in sizes.items() if value is not None}
    families: dict[str, type[Function | Partial | LowRank | Predicates]] = {
        "function": Function, "partial": Partial, "low-rank": LowRank, "predicates": Predicates,
    }  # fmt: skip
    found: Function | Partial | LowRank | Predicates | FactsFile
    if database in families:
        try:
            found = validated(families[database], given, "--")
        except StudyError as error:
            raise UserError(str(error).replace("per_query", "per-query")) from None
    elif given:
        option = next(iter(given)).replace("_", "-")
        raise UserError(f"--{option}: only a family has it, not a file; leave it out")
    else:
        with within(f"--database {database}: is none of {', '.join(families)}, and as a file "):
            found = validated(FactsFile, load_triples(database))
    keys = {"model": "facts", "m": found.n_asked, "d_model": d_model, "database": found}
    return validated(Cell, keys, "bounds: ")
