"""What a run starts from: its graph, embedding, context streams and initial weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rgr_dist.problem.contexts import draw_contexts
from rgr_dist.problem.embeddings import sample_embedding
from rgr_dist.problem.graphs import Int32Array, Neighbours, sample_graph
from rgr_dist.problem.streams import Stream
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run


@dataclass(frozen=True)
class Task:
    """The problem of one (cell, seed, relation): the same at every head count and key width.

    Attributes:
        graph: the relations to be recovered.
        embedding: rows x_i, float64 [m, d_model].
        train: the stream that training contexts are drawn from.
        validation, test: fixed contexts, int32 [n_contexts, l].
    """

    cell: Cell
    seed: int
    graph: Neighbours
    embedding: npt.NDArray[np.float64]
    train: Stream
    validation: npt.NDArray[np.int32]
    test: npt.NDArray[np.int32]

    @classmethod
    def of(cls, cell: Cell, seed: int, relation: int = 0) -> Task:
        """Build the task of a seed; all its relations are on the same embedding."""
        graph = sample_graph(cell, seed, relation)
        length, rate = cell.context.length, cell.context.positive_rate

        def stream(role: str) -> Stream:
            return Stream.of(cell.problem_json, role, seed, relation)

        return cls(
            cell=cell,
            seed=seed,
            graph=graph,
            embedding=sample_embedding(cell, seed),
            train=stream("train"),
            validation=draw_contexts(
                stream("validation"), 0, cell.training.validation_contexts, graph, length, rate
            ),
            test=draw_contexts(stream("test"), 0, cell.training.test_contexts, graph, length, rate),
        )

    @property
    def targets(self) -> Int32Array:
        """Targets of all edges, source by source, int32 [m']; for a permutation, pi itself."""
        return self.graph.targets

    @property
    def messages(self) -> npt.NDArray[np.float64]:
        """The message of each item in model ``value``: y_i = x_i W_V, float64 [m, d_model].

        W_V is frozen, its entries have variance 1/d_model, and messages are as wide as
        embeddings, so that |y_i|^2 is |x_i|^2 on average. The paper states neither the variance
        nor the width (Sec. 7.2).
        """
        d_model = self.cell.d_model
        stream = Stream.of(self.cell.problem_json, "W_V", self.seed)
        W_V = stream.normals(d_model, d_model) / np.sqrt(d_model)
        messages: npt.NDArray[np.float64] = self.embedding @ W_V
        return messages

    def training_contexts(self, first: int, count: int) -> npt.NDArray[np.int32]:
        """Training contexts ``first`` … ``first + count - 1``, int32 [count, l]."""
        context = self.cell.context
        return draw_contexts(
            self.train, first, count, self.graph, context.length, context.positive_rate
        )


def initial_projections(
    run: Run, relation: int = 0
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """W_Q and W_K at the start, each float64 [d_model, D_K].

    Entries are normal. Their deviation is 1/sqrt(d_model), or its square root if
    ``training.initial`` takes 1/sqrt(d_model) as their variance, times ``training.initial_scale``.
    Columns come from the stream in order, so that a wider layer begins with the narrower one's
    columns and the widths of one seed are paired as closely as possible.
    """
    training, inverse = run.cell.training, np.sqrt(run.cell.d_model)
    if training.initial == "variance":
        inverse = np.sqrt(inverse)

    def draw(role: str) -> npt.NDArray[np.float64]:
        stream = Stream.of(run.cell.problem_json, role, run.seed, relation)
        columns = stream.normals(run.D_K, run.cell.d_model).T / inverse
        return np.ascontiguousarray(training.initial_scale * columns)

    return draw("W_Q"), draw("W_K")


def initial_parameters(
    run: Run, shapes: Mapping[str, tuple[tuple[int, ...], float]], relation: int = 0
) -> dict[str, npt.NDArray[np.float64]]:
    """The parameters at the start of a layer that a file defines, float64.

    Entries are normal with the deviation that the file gives times ``training.initial_scale``. Each
    parameter has its own stream, addressed by its name, whose values fill a matrix [d_model, D]
    column by column, so that it keeps its first columns as D grows. W_Q and W_K are those of
    ``initial_projections`` if their deviations agree.

    Args:
        shapes: the shape and the deviation of each parameter, by name.
    """

    def draw(name: str, shape: tuple[int, ...], scale: float) -> npt.NDArray[np.float64]:
        stream = Stream.of(run.cell.problem_json, name, run.seed, relation)
        values = stream.normals(*reversed(shape)).T * (scale * run.cell.training.initial_scale)
        return np.asarray(values, dtype=np.float64, order="C")

    return {name: draw(name, shape, scale) for name, (shape, scale) in shapes.items()}
