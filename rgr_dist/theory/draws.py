"""How often a construction succeeds, over draws of graph, embedding and signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import track
from safetensors import SafetensorError
from scipy import stats

from rgr_dist.problem.contexts import draw_contexts
from rgr_dist.problem.graphs import sample_graph
from rgr_dist.study.cell import Cell
from rgr_dist.study.construction import Algorithm, Construction
from rgr_dist.study.errors import StudyError
from rgr_dist.study.models import construction_name
from rgr_dist.study.run import Run
from rgr_dist.theory.all_pairs import Recovery, score_all_pairs
from rgr_dist.theory.construct import (
    Baseline,
    Problem,
    build,
    default_block,
    head_count,
    problem_of,
    signatures_of,
)
from rgr_dist.theory.layer import Built
from rgr_dist.theory.matchings import edges_of, max_degree
from rgr_dist.theory.softmax_contexts import InContexts, score_contexts_softmax

CONFIDENCE = 0.95

PRINTED = Construction()
"""Free parameters as the paper prints them."""

Progress = Callable[[Sequence[int]], Iterable[int]]


@dataclass(frozen=True)
class Constructor:
    """A construction for a cell, with one draw for each seed.

    Attributes:
        block_size: most edges of a head; None for ``default_block``.
        n_contexts: sampled contexts for Algorithm 2.
    """

    cell: Cell
    algorithm: Algorithm | Baseline
    options: Construction = PRINTED
    block_size: int | None = None
    n_contexts: int = 200

    @property
    def block(self) -> int:
        """Most edges of a head."""
        graph = sample_graph(self.cell, 0)
        return self.block_size or default_block(self.algorithm, graph, self.cell.d_model)

    def heads(self) -> int:
        """The number of heads in draw 0; for a permutation or a file, the same in every draw."""
        graph = sample_graph(self.cell, 0)
        return head_count(self.algorithm, graph, self.block, self.options.colouring)

    def build(self, seed: int, h: int, d_k: int) -> tuple[Problem, Built]:
        """The layer of one draw."""
        problem = problem_of(self.cell, seed)
        block = self.block if self.options.colouring == "batched" else None
        return problem, build(self.algorithm, self.options, problem, h, d_k, block)

    def runs(self, h: int, d_k: int, draws: int) -> list[Run]:
        """The draws as runs of a study, which builds the same weights from them."""
        assert self.algorithm != "trivial"
        assert self.algorithm != "limit"
        made = {"model": construction_name(self.algorithm), "construction": self.options}
        cell = self.cell.model_copy(update=made).canonical()
        return [Run(cell=cell, h=h, d_k=d_k, seed=seed) for seed in range(draws)]

    def score(self, seed: int, h: int, d_k: int) -> Recovery | InContexts:
        """One draw, scored on all pairs, or on sampled contexts for Algorithm 2."""
        problem, built = self.build(seed, h, d_k)
        if self.algorithm == "2":
            context = self.cell.context
            which = problem.stream("test"), 0, self.n_contexts, problem.graph
            contexts = draw_contexts(*which, context.length, context.positive_rate)
            return score_contexts_softmax(built.layer, problem.X, problem.graph, contexts)
        return score_all_pairs(built.layer, problem.X, problem.graph)

    def measure(self, h: int, d_k: int, draws: int, steps: Progress = iter) -> dict[str, Any]:
        """The row of a width, with how often it is exact and a Clopper-Pearson interval."""
        scored = [self.score(seed, h, d_k) for seed in steps(range(draws))]
        exact = sum(one.exact for one in scored)
        interval = stats.binomtest(exact, draws).proportion_ci(CONFIDENCE, method="exact")
        if self.algorithm in ("trivial", "limit"):
            d_k = self.build(0, h, d_k)[1].layer.d_k
        row: dict[str, Any] = {
            "algorithm": self.algorithm,
            "m": self.cell.m,
            "d_model": self.cell.d_model,
            "h": h,
            "d_k": d_k,
            "D_K": h * d_k,
            "success_rate": exact / draws,
            "draws": draws,
            "mean_f1": sum(one.f1 for one in scored) / draws,
            "success_low": float(interval.low),
            "success_high": float(interval.high),
            "mean_failed_pairs": sum(one.failed_pairs for one in scored) / draws,
            "least_margin": min(one.margin for one in scored),
        }
        contexts = [one for one in scored if isinstance(one, InContexts)]
        for kind in ("present", "absent") if contexts else ():
            total = sum(getattr(one, kind) for one in contexts)
            right = sum(getattr(one, f"{kind}_right") for one in contexts)
            row[f"{kind}_right"] = right / total if total else None
        return row

    @property
    def limit(self) -> Constructor:
        """The limit d_k → ∞ of the same heads and signatures, at its best tau."""
        own: dict[str, Any] = {"tau": "best"}
        if self.options.signatures != "orthogonal":
            law = signatures_of(self.algorithm, self.options)
            own |= {"signatures": law.kind, "p": law.p if law.kind == "bernoulli" else None}
        best = self.options.model_copy(update=own)
        return Constructor(self.cell, "limit", best, self.block)

    def promised_heads(self) -> dict[str, int]:
        """The most heads that Lemma B.8 promises, and the number with an equitable colouring."""
        graph, block = sample_graph(self.cell, 0), self.block
        delta, least = max_degree(graph), -(-graph.targets.size // block)
        return {"promised_heads": least + delta, "equitable_heads": max(delta, least)}

    def save(self, path: Path, h: int, d_k: int) -> None:
        """Write the weights of draw 0, its embedding and its edges as a safetensors file.

        Tensors: W_Q, W_K [d_model, h * d_k], tau, embedding [m, d_model], edges [m', 2].

        Raises:
            StudyError: the file cannot be written.
        """
        problem, built = self.build(0, h, d_k)
        layer = built.layer
        tensors = {
            "W_Q": np.ascontiguousarray(layer.W_Q),
            "W_K": np.ascontiguousarray(layer.W_K),
            "tau": np.array([layer.tau]),
            "embedding": np.ascontiguousarray(problem.X),
            "edges": edges_of(problem.graph),
        }
        about = {"algorithm": self.algorithm, "heads": str(layer.h), "d_k": str(layer.d_k)}
        save_tensors(path, tensors, about)


def save_tensors(
    path: Path, tensors: dict[str, npt.NDArray[Any]], about: dict[str, str] | None = None
) -> None:
    """Write tensors, and metadata about them, as a safetensors file.

    Raises:
        StudyError: the file cannot be written.
    """
    from safetensors.numpy import save_file

    try:
        save_file(tensors, path, metadata=about)
    except (OSError, SafetensorError) as error:
        said = str(error).partition(" at path ")[0]  # that of a temporary file
        raise StudyError(f"--save {path}: cannot be written: {said}") from None


def tracked(steps: Sequence[int]) -> Iterable[int]:
    """The steps, with a progress bar on standard error if that is a terminal."""
    console = Console(stderr=True)
    hidden = not console.is_terminal
    return track(steps, "draws", console=console, transient=True, disable=hidden)
