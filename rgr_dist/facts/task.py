"""A run of facts: its triples, the order of its batches, its first weights, and how it is trained.

Cross-entropy of batches of triples, token by token, scored on all triples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import softmax
from torch import Tensor
from torch.nn.functional import cross_entropy, pad

from rgr_dist.engines.api import Outcome
from rgr_dist.engines.tasks import Batch, Theta, TorchTask
from rgr_dist.facts.cell import FactsCell
from rgr_dist.facts.databases import Int32Array, sample_triples
from rgr_dist.facts.layer import all_logits, right_by_argmax, right_by_softmax, token_logits
from rgr_dist.facts.ranks import logits_rank, places_of_largest, triples_rank
from rgr_dist.problem.streams import Stream
from rgr_dist.study.run import Run

TAUS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Thresholds on the probability at which every layer is measured."""


class Triples:
    """The triples of one (cell, seed), the same at every head count and width, and their batches.

    Attributes:
        all: key, query, value, int32 [|D|, 3], sorted.
        size: triples of a batch; the last of an epoch may have fewer.
        per_epoch: steps in which every triple is seen once.
    """

    def __init__(self, cell: FactsCell, seed: int) -> None:
        self.cell, self.seed = cell, seed
        self.all = sample_triples(cell.database, cell.problem_json, seed)
        self.size = min(cell.training.batch_size or len(self.all), len(self.all))
        self.per_epoch = -(-len(self.all) // self.size)
        self._epoch = -1, self.all

    def batch(self, step: int) -> Int32Array:
        """The triples of a training step, int32 [b, 3].

        They are sorted if one batch holds them all, and otherwise shuffled anew in each epoch.
        """
        epoch, part = divmod(step, self.per_epoch)
        if self.per_epoch > 1 and self._epoch[0] != epoch:
            stream = Stream.of(self.cell.problem_json, f"epoch {epoch}", self.seed)
            self._epoch = epoch, self.all[stream.permutation(len(self.all))]
        return self._epoch[1][part * self.size : (part + 1) * self.size]


def first_weights(run: Run) -> dict[str, npt.NDArray[np.float64]]:
    """The layer's parameters at the start, by name (``facts.layer``), float64.

    Entries are normal. Those of the embeddings X_K and X_Q have the deviation
    ``facts.embedding_scale``, those of the unembedding U 1/sqrt(d_model), and the weights of the
    layer 1/sqrt(inputs) times ``training.initial_scale``. A head's columns of W_Q, W_K and W_V and
    its rows of W_O come from the stream in order, so that a wider layer begins with the narrower
    one's, up to the scale of W_O.
    """
    cell = cell_of(run)
    d, scale, embedded = cell.d_model, cell.training.initial_scale, cell.facts.embedding_scale
    D_QK, D_VO = run.h * cell.d_qk(run.d_k), run.h * run.d_k

    def draw(name: str, rows: int, columns: int, deviation: float) -> npt.NDArray[np.float64]:
        stream = Stream.of(cell.problem_json, f"facts {name}", run.seed)
        drawn: npt.NDArray[np.float64] = stream.normals(rows, columns)
        return deviation * drawn

    def columns(name: str, count: int) -> npt.NDArray[np.float64]:
        return np.ascontiguousarray(draw(name, count, d, scale / np.sqrt(d)).T)

    return {
        "X_K": draw("X_K", cell.database.keys, d, embedded),
        "X_Q": draw("X_Q", cell.database.queries, d, embedded),
        "W_Q": columns("W_Q", D_QK),
        "W_K": columns("W_K", D_QK),
        "W_V": columns("W_V", D_VO),
        "W_O": draw("W_O", D_VO, d, scale / np.sqrt(D_VO)),
        "U": np.ascontiguousarray(draw("U", cell.database.values, d, 1 / np.sqrt(d)).T),
    }


def cell_of(run: Run) -> FactsCell:
    """The cell of a run of facts."""
    assert isinstance(run.cell, FactsCell)
    return run.cell


WIDE = 16
"""Widths of heads are filled up to multiples of this."""


def filled(weights: Theta, h: int, fill: bool, d_qk: int, d_vo: int) -> dict[str, Tensor]:
    """The weights with heads filled up to multiples of ``WIDE`` by zeros, which stay zero; or back.

    All widths up to a multiple then share one compiled program.
    """
    changed = dict(weights)
    for name, width in {"W_Q": d_qk, "W_K": d_qk, "W_V": d_vo, "W_O": d_vo}.items():
        p = weights[name] if name != "W_O" else weights[name].T
        p = p.unflatten(1, (h, -1))
        p = pad(p, (0, -width % WIDE)) if fill else p[..., :width]
        changed[name] = p.flatten(1) if name != "W_O" else p.flatten(1).T.contiguous()
    return changed


class Task(TorchTask):
    """A batch smaller than the others is filled up with triples that do not count."""

    block = 20

    def __init__(self, run: Run, device: torch.device, dtype: torch.dtype) -> None:
        self.run, self.device, self.cell = run, device, (cell := cell_of(run))
        self.triples = Triples(cell, run.seed)
        self.widths = cell.d_qk(run.d_k), run.d_k
        start = {
            name: torch.from_numpy(p).to(device, dtype) for name, p in first_weights(run).items()
        }
        start = filled(start, run.h, True, *self.widths)
        frozen = [] if cell.facts.train_embedding else ["X_K", "X_Q"]
        frozen += [] if cell.facts.train_unembedding else ["U"]
        self.data = {name: start.pop(name) for name in frozen}
        self.data["scale"] = torch.tensor(self.widths[0] ** -0.5, device=device, dtype=dtype)
        self.theta = start
        h, residual = run.h, cell.facts.residual
        self.key = (
            cell.database.shape, cell.d_model, h, *(-(-width // WIDE) for width in self.widths),
            residual, *frozen, self.triples.size,
        )  # fmt: skip

        def logits(theta: Theta, data: Theta, triples: Tensor) -> Tensor:
            p = {**theta, **data}
            return token_logits(triples[:, 0], triples[:, 1], p, h, residual, p["scale"])

        def loss(theta: Theta, data: Theta, batch: Batch) -> Tensor:
            triples, counts = batch
            each = cross_entropy(logits(theta, data, triples), triples[:, 2], reduction="none")
            return (each * counts).sum() / counts.sum()

        self.logits, self.loss = logits, loss

    def batches(self, first: int, count: int) -> Batch:
        """Triples, [B, b, 3], and 1 where they count, else 0, [B, b]."""
        drawn = np.zeros((count, self.triples.size, 3), dtype=np.int64)
        counts = np.zeros((count, self.triples.size))
        for at in range(count):
            own = self.triples.batch(first + at)
            drawn[at, : len(own)], counts[at, : len(own)] = own, 1
        some = next(iter(self.theta.values()))
        return torch.from_numpy(drawn).to(self.device), torch.from_numpy(counts).to(some)

    def accuracies(self, theta: Theta) -> dict[str, float]:
        """The shares of the triples that are right by argmax and by softmax≥τ."""
        triples = torch.from_numpy(self.triples.all).long().to(self.device)
        with torch.no_grad():
            logits = self.logits(theta, self.data, triples)
            argmax = int(right_by_argmax(logits, triples[:, 2]).sum())
            right = int(right_by_softmax(logits, triples[:, 2], self.cell.facts.tau).sum())
        return {"argmax": argmax / len(triples), "softmax": right / len(triples)}

    def check(self, theta: Theta, above: float | None) -> float:
        """The accuracy by which the run is judged."""
        return self.accuracies(theta)[self.cell.facts.score]

    def outcome(self, theta: Theta, **ended: Any) -> Outcome:
        """How a run ended, with what its layer predicts for all pairs; L is its logits.

        ``details``: the accuracies by argmax and by softmax; the largest rank of an unfolding of L
        and of argmax(L), lower bounds on their tensor ranks (``facts.ranks``); and for each tau of
        ``TAUS``, in this order, the share of the triples whose value has a probability of at least
        tau, and the largest rank of an unfolding of softmax≥tau(L).
        """
        accuracies = self.accuracies(theta)
        every = filled({**theta, **self.data}, self.run.h, False, *self.widths)
        weights = {name: p.detach().cpu().numpy() for name, p in every.items()}
        logits = all_logits(weights, self.run.h, self.cell.facts.residual)
        chances = softmax(logits, axis=2)
        right = chances[tuple(self.triples.all.T)]
        ranks: dict[bytes, int] = {}  # a layer often predicts the same at several tau

        def at(tau: float) -> tuple[float, float, int]:
            places = np.argwhere(chances >= tau)
            known = places.tobytes()
            if known not in ranks:
                ranks[known] = triples_rank(places).lower
            return tau, float(np.mean(right >= tau)), ranks[known]

        score = accuracies[self.cell.facts.score]
        details = {
            "argmax_accuracy": accuracies["argmax"],
            "softmax_accuracy": accuracies["softmax"],
            "rank_logits": logits_rank(logits),
            "rank_argmax": triples_rank(places_of_largest(logits)).lower,
            "by_tau": [at(tau) for tau in TAUS],
        }
        return Outcome(**{**ended, "val_score": score}, score=score, details=details)
