"""The verbs of the theory: ``construct``, ``bounds``, ``geometry``, ``all-pairs``."""

from __future__ import annotations

import math
import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import CELL, LARGEST, How, Out, Set, StudyName, opened
from rgr_dist.faults import UserError

if TYPE_CHECKING:
    import pandas as pd

    from analysis.load import StudyResults
    from rgr_dist.store.store import Store
    from rgr_dist.study.cell import Cell, Run
    from rgr_dist.study.construction import Construction
    from rgr_dist.theory.draws import Constructor


class AlgorithmName(StrEnum):
    """What ``rgr construct`` makes: the paper's algorithms, ours, and two baselines."""

    ONE = "1"
    TWO = "2"
    THREE = "3"
    FOUR = "4"
    FIVE = "5"
    OURS = "ours"
    TRIVIAL = "trivial"
    LIMIT = "limit"


class SignatureName(StrEnum):
    """Laws of signatures."""

    RADEMACHER = "rademacher"
    BERNOULLI = "bernoulli"
    ORTHOGONAL = "orthogonal"


class EmbeddingName(StrEnum):
    """Embeddings that need no file."""

    GAUSSIAN = "gaussian"
    BINARY = "binary"
    ONEHOT = "onehot"


class TauName(StrEnum):
    """Which threshold decides."""

    PRINTED = "printed"
    BEST = "best"


class ColouringName(StrEnum):
    """How Algorithm 5 packs edges into heads."""

    BATCHED = "batched"
    EQUITABLE = "equitable"


class PrecisionName(StrEnum):
    """Formats that weights are rounded to."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"
    INT7 = "int7"
    INT6 = "int6"
    INT5 = "int5"
    INT4 = "int4"
    INT3 = "int3"


ROW_COLUMNS = (
    "algorithm m d_model h d_k D_K success_rate success_low success_high draws mean_f1"
    " mean_failed_pairs least_margin present_right absent_right"
)


def construct(
    algorithm: Annotated[AlgorithmName, typer.Option(help="Which construction.")],
    m: Annotated[int, typer.Option("--m", min=2, max=LARGEST, help="Items.")],
    d_model: Annotated[
        int | None, typer.Option(min=1, max=LARGEST, help="Embedding width; m if left out.")
    ] = None,
    graph: Annotated[
        str | None, typer.Option(metavar="FILE", help="An edge list; a permutation if left out.")
    ] = None,
    embedding: Annotated[EmbeddingName | None, typer.Option(help="Gaussian, one-hot in 3.")] = None,
    block_size: Annotated[int | None, typer.Option(min=1, help="Most edges of a head.")] = None,
    signatures: Annotated[
        SignatureName | None, typer.Option(help="As printed if left out.")
    ] = None,
    p: Annotated[float | None, typer.Option(help="Chance of a 1 in a Bernoulli entry.")] = None,
    tau: Annotated[TauName, typer.Option(help="Printed, or the best for F1.")] = TauName.PRINTED,
    colouring: Annotated[
        ColouringName, typer.Option(help="How 5 packs edges into heads.")
    ] = ColouringName.BATCHED,
    d_k: Annotated[int | None, typer.Option(min=1, help="Key width of a head.")] = None,
    constant: Annotated[
        float | None, typer.Option("--constant", help="C of d_k = C ln m, without --d-k.")
    ] = None,
    find: Annotated[
        float | None, typer.Option(help="Find the least d_k exact in this share of draws.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Draws of graph, embedding, signatures.")] = 100,
    save: Annotated[
        str | None, typer.Option(metavar="FILE.safetensors", help="Keep the weights of draw 0.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", help="Keep every draw as a run in this store, for its reports."),
    ] = None,
    how: How = Format.TABLE,
) -> None:
    """Make a layer's weights by the paper's constructions, or ours, and test them on every pair."""
    from rgr_dist.theory.bounds import softmax_floor
    from rgr_dist.theory.construct import signatures_of
    from rgr_dist.theory.draws import Constructor, tracked

    if find is not None and not 0 < find <= 1:
        raise UserError(
            f"--find {find:g}: not a share of the draws; give a number above 0, up to 1"
        )
    if find is not None and (d_k is not None or constant is not None):
        raise UserError("--find: looks for d_k; leave --d-k and --constant out")
    if save is not None and not save.endswith(".safetensors"):
        raise UserError(f"--save {save}: give a name that ends in .safetensors")
    cell = _cell(algorithm, m, d_model, graph, embedding)
    made = Constructor(cell, algorithm.value, _options(signatures, p, tau, colouring), block_size)
    store = None if out is None else _store_for(made, out)
    h, track = made.heads(), partial(tracked, shown=sys.stderr.isatty())
    facts: dict[str, Any] = {}
    width: int | None
    if find is not None:
        width = _find(made, h, draws, find)
        if width is None:
            facts["not_found"] = made.why_not_found(h)
    elif d_k is not None or algorithm in ("trivial", "limit"):
        width = d_k or 1
    elif signatures == "orthogonal":
        width = made.block
    else:
        if algorithm == "ours":
            raise UserError("--d-k: missing; ours has no printed width: give --d-k, or --find 1")
        law = signatures_of(algorithm.value, made.options)
        width = math.ceil((constant or law.union_bound_constant) * math.log(m))
    row = made.measure(h, width, draws, track) if width else made.not_found(h, draws)
    if algorithm == "5":
        facts |= made.promised_heads()
    if algorithm == "2":
        facts["softmax_floor"] = softmax_floor(cell.context.length)
        facts["floor_of"] = "d_k of the template's scores alone (Lemma 8.2), not of softmax"
    if save is not None and width:
        made.save(Path(save), h, width)
    if store is not None and width:
        _keep(made.runs(h, width, draws), store)
    print_listing({"rows": [row]}, how, show=ROW_COLUMNS.split(), facts=facts)


def _store_for(made: Constructor, out: str) -> Store:
    """The store that draws are kept in.

    Raises:
        UserError: they cannot be kept as runs.
    """
    from rgr_dist.store.store import Store

    if made.algorithm in ("trivial", "limit"):
        raise UserError(
            f"--out: {made.algorithm} has no d_k, so its draws are no runs; the limit is also "
            "--algorithm 1 --signatures orthogonal --tau best"
        )
    if made.algorithm == "5" and made.options.colouring == "batched":
        raise UserError("--out: runs of algorithm 5 take --colouring equitable")
    store = Store(out)
    store.check_writable()
    return store


def _keep(runs: list[Run], store: Store) -> None:
    """Store the runs that it lacks, as a study of them would."""
    from rgr_dist.engines.constructions import ConstructionEngine
    from rgr_dist.running.worker import train_rows

    held = store.runs({runs[0].cell.cell_id})
    known = set(held[held["stop_reason"] != "failed"]["run_id"])
    store.append(train_rows(ConstructionEngine(), [r for r in runs if r.run_id not in known]))


def _find(made: Constructor, h: int, draws: int, share: float) -> int | None:
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        return made.find(h, draws, share)
    with console.status("searching") as status:
        return made.find(h, draws, share, lambda d_k: status.update(f"trying d_k = {d_k}"))


def _cell(
    algorithm: str, m: int, d_model: int | None, graph: str | None, embedding: str | None
) -> Cell:
    from rgr_dist.study.cell import Cell
    from rgr_dist.study.edge_list import load_edges
    from rgr_dist.study.errors import validated

    family = embedding or ("onehot" if algorithm == "3" else "gaussian")
    keys: dict[str, Any] = {
        "m": m,
        "d_model": m if d_model is None else d_model,
        "embedding": {"family": family},
        "context": {"length": min(16, m)},
    }
    if graph is not None:
        try:
            keys["graph"] = load_edges(graph)
        except UserError as error:
            raise UserError(f"--graph {error}") from None
    return validated(Cell, keys, "construct", "")


def _options(signatures: str | None, p: float | None, tau: str, colouring: str) -> Construction:
    from rgr_dist.study.construction import Construction
    from rgr_dist.study.errors import validated

    keys = {"signatures": signatures and str(signatures), "p": p, "tau": str(tau)}
    return validated(Construction, keys | {"colouring": str(colouring)}, "construct", "--")


def bounds(
    d_model: Annotated[int, typer.Option(min=1, max=LARGEST, help="Embedding width.")],
    m: Annotated[
        int | None, typer.Option("--m", min=2, max=LARGEST, help="Items of a graph.")
    ] = None,
    edges: Annotated[int | None, typer.Option(min=0, help="Relations m'; m if left out.")] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="FAMILY|FILE",
            help="Facts: function, partial, low-rank, predicates, or a file of triples.",
        ),
    ] = None,
    keys: Annotated[int | None, typer.Option(help="Keys of the database.")] = None,
    queries: Annotated[int | None, typer.Option(help="Queries of the database.")] = None,
    values: Annotated[int | None, typer.Option(help="Values of the database.")] = None,
    share: Annotated[float | None, typer.Option(help="Of partial: pairs that are asked.")] = None,
    rank: Annotated[int | None, typer.Option(help="Of low-rank: the tensor's rank.")] = None,
    per_query: Annotated[
        int | None, typer.Option(help="Of predicates: values that a query has.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the database's draw.")] = 0,
    cp: Annotated[
        float | None,
        typer.Option(
            metavar="TOLERANCE", help="Fit the tensor's rank to this share of its norm; minutes."
        ),
    ] = None,
    how: How = Format.TABLE,
) -> None:
    """What theory requires: the D_K of a graph by counting, or the rank of a database of facts.

    With --m, the D_K that counting requires (Sec. 9), a line for each number of bits per parameter.
    None of the lines is the bound: how many bits a parameter holds is not known beforehand, and
    trained layers hold 0.27 to 0.80. Permutations are listed where m' = m. With --database, the
    sizes of a database of facts and bounds on its tensor's rank (arXiv:2502.05076, Prop. 2.1).
    """
    sizes = {
        "keys": keys, "queries": queries, "values": values, "share": share, "rank": rank,
        "per_query": per_query,
    }  # fmt: skip
    if database is not None:
        from rgr_dist.cli.database_bounds import FACTS, database_rows

        if m is not None or edges is not None:
            raise UserError("--database: has no items or edges; leave --m and --edges out")
        print_listing({"rows": database_rows(database, sizes, d_model, seed, cp)}, how, facts=FACTS)
        return
    if m is None:
        raise UserError("--m: missing; give the items of a graph, or a --database of facts")
    of_facts = next(
        (name for name, given in {**sizes, "cp": cp}.items() if given is not None), None
    )
    if of_facts is not None:
        raise UserError(f"--{of_facts.replace('_', '-')}: is of a --database, which is missing")
    print_listing({"rows": _counting_rows(m, d_model, edges)}, how)


def _counting_rows(m: int, d_model: int, edges: int | None) -> list[dict[str, Any]]:
    from rgr_dist.theory.bounds import BITS, Graphs, counting_bound, graph_bits

    relations = m if edges is None else edges
    if relations > m * (m - 1):
        raise UserError(f"--edges {relations}: at most m (m - 1) = {m * (m - 1)} of m = {m} items")
    kinds: list[Graphs] = ["all", "permutations"] if relations == m else ["all"]
    return [
        {
            "bits_per_parameter": b,
            "graphs": kind,
            "D_K": counting_bound(graph_bits(m, relations, kind), d_model, b),
        }
        for kind in kinds
        for b in BITS
    ]


def geometry(
    file: Annotated[Path, typer.Argument(help="Vectors in rows: .npy, .safetensors, CSV or text.")],
    items: Annotated[int | None, typer.Option(min=2, help="Only the first so many rows.")] = None,
    tensor: Annotated[str | None, typer.Option(help="Which tensor of a .safetensors file.")] = None,
    block_size: Annotated[
        list[int] | None, typer.Option(min=1, help="Block sizes B; powers of two if left out.")
    ] = None,
    constant: Annotated[float, typer.Option(min=0, help="c of Theorem B.5's conditions.")] = 1.0,
    how: How = Format.TABLE,
) -> None:
    """Restricted self-incoherence of vectors (Def. B.4), and the B that Theorem B.5 allows."""
    from rgr_dist.theory.draws import tracked
    from rgr_dist.theory.geometry import geometry as measure
    from rgr_dist.theory.vectors import read_vectors

    X = read_vectors(file, tensor)[:items]
    try:
        found = measure(X, track=partial(tracked, shown=sys.stderr.isatty()))
    except ValueError as error:
        raise UserError(f"{file}: {error}") from None
    sizes = block_size or sorted({*(2**i for i in range(found.m.bit_length())), found.m})
    beyond = next((size for size in sizes if size > found.m), None)
    if beyond is not None:
        raise UserError(f"--block-size {beyond}: there are {found.m} vectors; give at most as many")
    rows = [
        {
            "m": found.m,
            "d_model": found.d_model,
            "block_size": size,
            "mu": found.mu,
            "epsilon_d": found.epsilon_d,
            "rho": float(found.rho[size - 1]),
            "gamma": float(found.gamma[size - 1]),
        }
        for size in sizes
    ]
    facts = {
        "constant": constant,
        "largest_block_size": found.largest_block(constant),
        "condition": "epsilon_d ≤ c, rho ≤ c / ln m, gamma ≤ c / ln m; the theorem names no c",
    }
    print_listing({"rows": rows}, how, facts=facts)


def all_pairs(
    study: StudyName,
    out: Out = "results",
    precision: Annotated[
        list[PrecisionName] | None, typer.Option(help="Round the weights; every one if left out.")
    ] = None,
    cell: Annotated[str | None, typer.Option(metavar=CELL, help="Only this cell.")] = None,
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """Score trained weights at each cell's threshold on all pairs, also rounded to fewer bits.

    Weights are not stored: the runs are trained again, to the step at which they ended. What is
    measured is kept in the store, for the study's report.
    """
    import pandas as pd

    from analysis.load import open_results
    from analysis.records import graph_bits_per_parameter
    from analysis.rounding import rounded_means
    from analysis.thresholds import best_of
    from rgr_dist.engines.choose import make_engine
    from rgr_dist.engines.recovered import recovered
    from rgr_dist.models.precision import PRECISIONS
    from rgr_dist.study.select import cell_named
    from rgr_dist.theory.draws import tracked

    with opened(study, set_, out) as (resolved, store):
        if any(cell.model != "max" for cell in resolved.cells):
            raise UserError(f"{study}: all-pairs is for model max; other scores need a context")
        results = open_results(resolved, store)
    best = best_of(results)
    best = best[best["D_K"].notna()]
    at = set(best["cell_id"])
    if cell is not None:
        at &= {cell_named(resolved, cell).cell_id}
    if not at:
        of = study if cell is None else f"{cell} of {study}"
        raise UserError(f"{out} holds no threshold of {of}; rgr run {study} finds them")
    store.check_writable()
    standing = _runs_at(best, results)
    runs = [(run, steps) for run, steps in standing if run.cell.cell_id in at]
    asked = {one.value for one in precision or PrecisionName}
    wanted = [name for name in PRECISIONS if name in asked]
    engine, rows = make_engine("auto"), []
    for i in tracked(range(len(runs)), shown=sys.stderr.isatty()):
        run, steps = runs[i]
        rows += [one.row() for one in recovered(engine, run, steps, wanted)]
    kept = store.read_study_table(resolved.name, "all_pairs")
    if kept is not None:  # what was measured before at thresholds that still stand
        again = {(row["run_id"], row["precision"]) for row in rows}
        now = {run.run_id for run, _ in standing}
        rows += [
            row
            for row in _records(kept)
            if row["run_id"] in now and (row["run_id"], row["precision"]) not in again
        ]
    store.write_study_table(resolved.name, "all_pairs", rows)
    means = rounded_means(pd.DataFrame(rows), resolved.search.target)
    means = means[means["precision"].isin(asked) & means["cell_id"].isin(at)]
    bits = {row["cell_id"]: graph_bits_per_parameter(row) for row in best.to_dict("records")}
    means["bits_per_parameter"] = means.pop("cell_id").map(bits)
    print_listing({"rows": _records(means)}, how)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def _runs_at(best: pd.DataFrame, results: StudyResults) -> list[tuple[Run, int]]:
    """The runs at each cell's threshold, and the steps that each did."""
    from analysis.runs import scored
    from rgr_dist.study.cell import Run

    cells = {cell.cell_id: cell for cell in results.study.cells}
    counted = scored(results.runs, results.study).query("stop_reason != 'diverged'")
    at = best.assign(h=best["h_star"])[["cell_id", "h", "d_k"]].astype({"h": int, "d_k": int})
    rows = at.merge(counted, on=["cell_id", "h", "d_k"])
    return [
        (
            Run(cell=cells[row["cell_id"]], h=row["h"], d_k=row["d_k"], seed=row["seed"]),
            row["steps"],
        )
        for row in rows.to_dict("records")
    ]
