"""The verb ``construct``: makes weights by the paper's algorithms, or ours, and tests them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import LARGEST, MOST_DRAWS, How, check_output, check_room, drawn_cell
from rgr_dist.faults import UserError

if TYPE_CHECKING:
    from rgr_dist.store.store import Store
    from rgr_dist.study.cell import Cell
    from rgr_dist.study.construction import Construction
    from rgr_dist.study.run import Run
    from rgr_dist.theory.draws import Constructor


AlgorithmName = Literal["1", "2", "3", "4", "5", "ours", "trivial", "limit"]
"""What ``rgr construct`` makes: the paper's algorithms, ours, and two baselines."""
SignatureName = Literal["rademacher", "bernoulli", "orthogonal"]
EmbeddingName = Literal["gaussian", "binary", "onehot"]
"""Embeddings that need no file."""
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
    embedding: Annotated[
        EmbeddingName | None, typer.Option(help="Gaussian by default; one-hot for algorithm 3.")
    ] = None,
    block_size: Annotated[int | None, typer.Option(min=1, help="Most edges of a head.")] = None,
    signatures: Annotated[
        SignatureName | None, typer.Option(help="As printed if left out.")
    ] = None,
    p: Annotated[float | None, typer.Option(help="Chance of a 1 in a Bernoulli entry.")] = None,
    tau: Annotated[
        Literal["printed", "best"], typer.Option(help="Printed, or the best for F1.")
    ] = "printed",
    length: Annotated[
        int | None,
        typer.Option(min=2, help="Algorithm 2: items of a context; by default 16, or m if less."),
    ] = None,
    colouring: Annotated[
        Literal["batched", "equitable"], typer.Option(help="How 5 packs edges into heads.")
    ] = "batched",
    d_k: Annotated[int | None, typer.Option(min=1, help="Key width of a head.")] = None,
    constant: Annotated[
        float | None, typer.Option("--constant", help="C of d_k = C ln m, without --d-k.")
    ] = None,
    find: Annotated[
        float | None, typer.Option(help="Find the least d_k exact in this share of draws.")
    ] = None,
    draws: Annotated[
        int, typer.Option(min=1, max=MOST_DRAWS, help="Draws of graph, embedding, signatures.")
    ] = 100,
    save: Annotated[
        str | None, typer.Option(metavar="FILE.safetensors", help="Keep the weights of draw 0.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--store", "--out", help="A store that keeps every draw as a run."),
    ] = None,
    how: How = Format.TABLE,
) -> None:
    """Make a layer's weights by the paper's constructions, or ours, and test them on every pair."""
    from rgr_dist.theory.bounds import softmax_floor
    from rgr_dist.theory.construct import signatures_of
    from rgr_dist.theory.draws import Constructor, tracked
    from rgr_dist.theory.smallest_width import not_found, smallest_width, why_not_found, widest

    if find is not None and not 0 < find <= 1:
        raise UserError(
            f"--find {find:g}: not a share of the draws; give a number above 0, up to 1"
        )
    if find is not None and (d_k is not None or constant is not None):
        raise UserError("--find: looks for d_k; leave --d-k and --constant out")
    if save is not None:
        check_output("--save", Path(save), ".safetensors")
    if d_k is not None and constant is not None:
        raise UserError("--constant: makes d_k = C ln m, and --d-k gives it; leave one out")
    widths = {"--d-k": d_k, "--constant": constant, "--find": find}
    given = [name for name, value in widths.items() if value is not None]
    if algorithm in ("trivial", "limit") and given:
        raise UserError(f"{given[0]}: {algorithm} has no d_k to choose; leave it out")
    if constant is not None and signatures == "orthogonal":
        raise UserError("--constant: not for orthogonal signatures; give --d-k instead")
    if algorithm == "trivial" and block_size is not None:
        raise UserError("--block-size: trivial has a head for each edge; leave it out")
    if length is not None and algorithm != "2":
        raise UserError("--length: only algorithm 2 has it; the others are tested on every pair")
    parts: dict[str, Any] = {
        "embedding": {"family": embedding or ("onehot" if algorithm == "3" else "gaussian")}
    }
    if length is not None:
        parts["context"] = {"length": length}
    cell = drawn_cell(m, m if d_model is None else d_model, graph, **parts)
    made = Constructor(
        cell, algorithm, _options(algorithm, signatures, p, tau, colouring), block_size
    )
    store = None if out is None else _store_for(made, out)
    _check_memory(cell, 1, 1)  # before a graph is drawn, to count its heads
    h, facts = made.heads(), dict[str, Any]()
    _check_memory(cell, h, widest(made) if find is not None and algorithm == "2" else 1)
    width: int | None
    if find is not None:
        with Console(stderr=True).status("searching") as status:  # only in a terminal

            def trying(d_k: int) -> None:
                _check_memory(cell, h, d_k)
                status.update(f"trying d_k = {d_k}")

            width = smallest_width(made, h, draws, find, trying)
        if width is None:
            facts["not_found"] = why_not_found(made, h)
    elif d_k is not None or algorithm in ("trivial", "limit"):
        width = d_k or 1
    elif signatures == "orthogonal":
        width = made.block
    else:
        if algorithm == "ours":
            raise UserError("--d-k: missing; ours has no printed width: give --d-k, or --find 1")
        law = signatures_of(algorithm, made.options)
        wide = (law.union_bound_constant if constant is None else constant) * math.log(m)
        if not 0 < wide <= LARGEST:
            asked = f"--p {p:g}" if constant is None else f"--constant {constant:g}"
            raise UserError(
                f"{asked}: makes d_k = {wide:g}; give a number that makes it 1 to {LARGEST}"
            )
        width = math.ceil(wide)
    _check_memory(cell, h, width or 1)
    if save is not None and width:
        made.save(Path(save), h, width)
    if store is not None and width:
        made.build(0, h, width)  # refuses invalid options before anything is stored
        _keep(made.runs(h, width, draws), store)
    row = made.measure(h, width, draws, tracked) if width else not_found(made, h, draws, tracked)
    if algorithm == "5":
        facts |= made.promised_heads()
    if algorithm == "2":
        facts["softmax_floor"] = softmax_floor(cell.context.length)
        facts["floor_of"] = "d_k of the template's scores alone (Lemma 8.2), not of softmax"
    print_listing({"rows": [row]}, how, show=ROW_COLUMNS.split(), facts=facts)


def _check_memory(cell: Cell, h: int, d_k: int) -> None:
    """Refuse a draw that would not fit in memory."""
    from rgr_dist.planning.memory import run_memory
    from rgr_dist.study.models import construction_name

    made = cell.model_copy(update={"model": construction_name("1")})
    check_room(run_memory(made, h * d_k), f"h = {h:,} and d_k = {d_k:,} at {cell.name} need")


def _store_for(made: Constructor, out: str) -> Store:
    """The store in which draws are kept.

    Raises:
        UserError: these draws cannot be kept as runs.
    """
    from rgr_dist.store.store import Store

    if made.algorithm in ("trivial", "limit"):
        raise UserError(
            f"--store: draws of {made.algorithm} have no d_k, so they cannot be stored; to store "
            "the limit, give --algorithm 1 --signatures orthogonal --tau best"
        )
    if made.algorithm == "5" and made.options.colouring == "batched":
        raise UserError("--store: runs of algorithm 5 take --colouring equitable")
    if made.algorithm in ("1", "2", "3", "4") and made.cell.graph.family != "permutation":
        raise UserError(
            f"--store: runs of algorithm {made.algorithm} are of permutations that are drawn; "
            "leave --graph or --store out"
        )
    return Store(out)


def _keep(runs: list[Run], store: Store) -> None:
    """Build and store the runs that the store lacks, as a study of them would."""
    from rgr_dist.engines.constructions import ConstructionEngine
    from rgr_dist.running.worker import train_rows

    with store.held("rgr construct"):
        there = store.runs({runs[0].cell.cell_id})
        known = set(there[there["stop_reason"] != "failed"]["run_id"])
        store.append(train_rows(ConstructionEngine(), [r for r in runs if r.run_id not in known]))


def _options(
    algorithm: str, signatures: str | None, p: float | None, tau: str, colouring: str
) -> Construction:
    from rgr_dist.study.construction import Construction, fault_of
    from rgr_dist.study.errors import validated

    keys = {"signatures": signatures, "p": p, "tau": tau, "colouring": colouring}
    options = validated(Construction, keys, "construct: --")
    fault = fault_of(algorithm, options)
    if fault is not None:
        raise UserError(f"construct: --{fault}")
    return options
