"""The verbs that compare theory with data: ``bounds``, ``geometry``, ``all-pairs``."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import (
    LARGEST,
    MOST_DRAWS,
    How,
    OneCell,
    Out,
    Set,
    StudyName,
    as_typed,
    drawn_cell,
    opened,
    say_error,
)
from rgr_dist.faults import UserError

if TYPE_CHECKING:
    import pandas as pd

    from rgr_dist.analysis.load import StudyResults
    from rgr_dist.study.run import Run

MOST_VECTORS = 10_000
"""Most vectors that are measured: memory grows with their square, time with their cube."""

PrecisionName = StrEnum("PrecisionName", "float32 float16 bfloat16 int8 int7 int6 int5 int4 int3")
"""Formats that weights are rounded to."""


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
    share: Annotated[float | None, typer.Option(help="With partial: share of pairs asked.")] = None,
    rank: Annotated[int | None, typer.Option(help="With low-rank: the tensor's rank.")] = None,
    per_query: Annotated[
        int | None, typer.Option(help="With predicates: values of each query.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="With --database: seed of its draw; 0 by default.")
    ] = None,
    cp: Annotated[
        float | None,
        typer.Option(
            metavar="TOLERANCE",
            help="Estimate the tensor's rank to within this share of its norm (takes minutes).",
        ),
    ] = None,
    one_value: Annotated[
        bool, typer.Option("--one-value", help="Make a layer of d_vo = 1 that holds the database.")
    ] = False,
    one_head: Annotated[
        bool, typer.Option("--one-head", help="Decide whether one head can hold drawn graphs.")
    ] = False,
    draws: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST_DRAWS, help="With --one-head: number of draws; 10 by default."
        ),
    ] = None,
    degree: Annotated[
        int | None,
        typer.Option(min=1, help="With --one-head: r-regular graphs instead of permutations."),
    ] = None,
    graph: Annotated[
        str | None, typer.Option(metavar="FILE", help="With --one-head: an edge list.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE.safetensors", help="With --one-head: keep what proves draw 0."),
    ] = None,
    how: How = Format.TABLE,
) -> None:
    """What theory requires: the D_K of a graph by counting, or the rank of a database of facts.

    With --m, the D_K that counting requires (Sec. 9), one line for each assumed number of bits per
    parameter. No single line is the bound, since how many bits a parameter holds is not known
    beforehand; at the thresholds of base-grid, within Table 2's step limits, it is 0.27 to 0.80. A
    line with a margin also bounds real weights with norms of at most 1 that keep this margin (Thm
    9.2). If m' = m, permutations are listed too. With --one-head, whether one head of any width
    can hold a graph at all, shown by weights that do, or by a proof that there are none.
    With --database, the sizes of a database of facts and bounds on its tensor's rank
    (arXiv:2502.05076, Prop. 2.1); with --one-value, a layer of one value dimension that holds it.
    """
    of_one_head = {"draws": draws, "degree": degree, "graph": graph, "save": save}
    sizes = {
        "keys": keys, "queries": queries, "values": values, "share": share, "rank": rank,
        "per_query": per_query,
    }  # fmt: skip
    if database is not None:
        from rgr_dist.cli.database_bounds import FACTS, database_rows

        if m is not None or edges is not None:
            raise UserError("--database: has no items or edges; leave --m and --edges out")
        _refuse({**of_one_head, "one_head": one_head or None}, "takes a graph, not a --database")
        rows = database_rows(database, sizes, d_model, seed or 0, cp, one_value)
        print_listing({"rows": rows}, how, facts=FACTS)
        return
    if m is None:
        raise UserError("--m: missing; give the items of a graph, or a --database of facts")
    of_database = {**sizes, "seed": seed, "cp": cp, "one_value": one_value or None}
    _refuse(of_database, "needs --database, which is missing")
    if one_head:
        from rgr_dist.cli.one_head_bounds import FACTS as MEANING
        from rgr_dist.cli.one_head_bounds import one_head_rows, share_separable

        _refuse({"edges": edges}, "is for the counting bound; leave it out with --one-head")
        _refuse(
            {"graph": None if degree is None else graph}, "lists its own edges; leave --degree out"
        )
        parts = {} if degree is None else {"graph": {"family": "regular", "degree": degree}}
        rows = one_head_rows(drawn_cell(m, d_model, graph, **parts), draws or 10, save)
        facts = share_separable(rows)
        print_listing({"rows": rows}, how, facts=facts | (MEANING if how is Format.TABLE else {}))
        return
    _refuse(of_one_head, "needs --one-head, which is missing")
    print_listing({"rows": _counting_rows(m, d_model, edges)}, how)


def _refuse(options: dict[str, Any], why: str) -> None:
    """Refuse any of these options that is given, naming the first."""
    given = next((name for name, value in options.items() if value is not None), None)
    if given is not None:
        raise UserError(f"--{given.replace('_', '-')}: {why}")


def _counting_rows(m: int, d_model: int, edges: int | None) -> list[dict[str, Any]]:
    from rgr_dist.theory.bounds import BITS, Graphs, counting_bound, graph_bits, margin_of

    relations = m if edges is None else edges
    if relations > m * (m - 1):
        raise UserError(f"--edges {relations}: at most m (m - 1) = {m * (m - 1)} of m = {m} items")
    kinds: list[Graphs] = ["all", "permutations"] if relations == m else ["all"]
    return [
        {
            "bits_per_parameter": b,
            "margin": margin_of(b),
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

    if not math.isfinite(constant):
        raise UserError(f"--constant {constant:g}: not a number to multiply; give a finite one")
    if tensor is not None and file.suffix != ".safetensors":
        raise UserError("--tensor: needs a .safetensors file; others have one table")
    X = read_vectors(file, tensor, items)
    if len(X) > MOST_VECTORS:
        raise UserError(f"{file}: {len(X):,} vectors; give --items of at most {MOST_VECTORS:,}")
    try:
        found = measure(X, track=tracked)
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
        list[PrecisionName] | None,
        typer.Option(help="Round the weights to this; to each by default."),
    ] = None,
    cell: OneCell = None,
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """Score trained weights at each cell's threshold on all pairs, also rounded to fewer bits.

    Weights are not stored, so the runs are trained again, to the step at which they ended, except
    those already measured at these precisions. The measurements are kept in the store, for the
    study's report.
    """
    import pandas as pd

    from rgr_dist.analysis.load import open_results
    from rgr_dist.analysis.records import graph_bits_per_parameter
    from rgr_dist.analysis.theory.weight_precision import rounded_means
    from rgr_dist.analysis.thresholds.best_heads import best_of
    from rgr_dist.engines.choose import make_engine
    from rgr_dist.engines.recovered import PRECISIONS, recovered
    from rgr_dist.planning.budgets import records
    from rgr_dist.planning.listing import sizes_of
    from rgr_dist.planning.same_question import check_same_question
    from rgr_dist.store.store import table_path
    from rgr_dist.study.select import cell_named
    from rgr_dist.theory.draws import tracked

    with opened(study, set_, out) as (resolved, store):
        scored = [
            one.cell_id
            for one in resolved.cells
            if (record := one.record).task == "edges" and record.has_tau and record.scores_pairs
        ]
        if not scored:
            raise UserError(f"{study}: all-pairs is for model max; other scores need a context")
        check_same_question(resolved, store, study, bool(set_))
        results = open_results(resolved, store)
    best = best_of(results)
    best = best[best["D_K"].notna() & best["cell_id"].isin(scored)]
    at = set(best["cell_id"])
    if cell is not None:
        at &= {cell_named(resolved, cell).cell_id}
    if not at:
        of = study if cell is None else f"{cell} of {study}"
        typed = as_typed(study, out, set_)
        raise UserError(f"{out} holds no threshold of {of}; rgr run {typed} finds them")
    standing = _runs_at(best, results)
    runs = [(run, steps) for run, steps in standing if run.cell.cell_id in at]
    asked = {one.value for one in precision or PrecisionName}
    wanted = [name for name in PRECISIONS if name in asked]
    engine, rows, kept = make_engine("auto"), list[dict[str, Any]](), list[dict[str, Any]]()
    with store.held(f"rgr all-pairs {study}"):
        table = store.read_study_table(resolved.name, "all_pairs")
        path = table_path(resolved.name, "all_pairs")
        if path in store.damaged:
            store.set_aside(path)
            say_error(f"{path} in {out} is damaged; moved to damaged/, and measured again")
        if table is not None:  # what was measured before at thresholds that still stand
            keys = ["run_id", "cell_id", "m", "d_model", "h", "d_k", "seed"]
            known = {
                (
                    run.run_id,
                    run.cell.cell_id,
                    run.cell.m,
                    run.cell.d_model,
                    run.h,
                    run.d_k,
                    run.seed,
                )
                for run, _ in standing
            }
            kept = [row for row in records(table) if tuple(row[key] for key in keys) in known]
        for i in tracked(range(len(runs))):
            run, steps = runs[i]
            if {row["precision"] for row in kept if row["run_id"] == run.run_id} >= set(wanted):
                continue
            rows += recovered(engine, run, steps, wanted)
            again = {(row["run_id"], row["precision"]) for row in rows}
            kept = [row for row in kept if (row["run_id"], row["precision"]) not in again]
            store.write_study_table(resolved.name, "all_pairs", rows + kept)
        order = [run.run_id for run, _ in standing]
        rows = sorted(
            rows + kept,
            key=lambda row: (order.index(row["run_id"]), PRECISIONS.index(row["precision"])),
        )
        store.write_study_table(resolved.name, "all_pairs", rows)
    means = rounded_means(pd.DataFrame(rows), resolved.search.target)
    means = means[means["precision"].isin(asked) & means["cell_id"].isin(at)]
    bits = {row["cell_id"]: graph_bits_per_parameter(row) for row in best.to_dict("records")}
    means["bits_per_parameter"] = means["cell_id"].map(bits)
    cells = {one.cell_id: sizes_of(resolved, one) for one in resolved.cells}
    print_listing({"rows": [cells[row.pop("cell_id")] | row for row in records(means)]}, how)


def _runs_at(best: pd.DataFrame, results: StudyResults) -> list[tuple[Run, int]]:
    """The runs at each cell's threshold, and how many steps each of them trained."""
    from rgr_dist.analysis.runs import scored
    from rgr_dist.study.run import Run

    cells = {cell.cell_id: cell for cell in results.study.cells}
    counted = scored(results.runs, results.study).query("stop_reason != 'diverged'")
    at = best.assign(h=best["h_star"])[["cell_id", "h", "d_k"]].dropna()
    rows = at.astype({"h": int, "d_k": int}).merge(counted, on=["cell_id", "h", "d_k"])
    return [
        (
            Run(cell=cells[row["cell_id"]], h=row["h"], d_k=row["d_k"], seed=row["seed"]),
            row["steps"],
        )
        for row in rows.to_dict("records")
    ]
