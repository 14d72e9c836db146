"""The paper's loop in numpy and float64, with the gradient of each model derived by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from rgr_dist.problem.edge_task import Task, initial_projections
from rgr_dist.study.cell import Run

Array = np.ndarray[Any, np.dtype[np.float64]]


class PlainTraining:
    """App. A.1 and A.3, Sec. 7.1 and 7.2: loss and gradient of a context, textbook AdamW."""

    def __init__(self, run: Run) -> None:
        self.run, self.task = run, Task.of(run.cell, run.seed)
        graph = self.task.graph
        self.edges = set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
        W_Q, W_K = initial_projections(run)
        self.theta: dict[str, Array] = {"Q": W_Q, "K": W_K, "tau": np.zeros(())}
        self.first = {name: np.zeros_like(value) for name, value in self.theta.items()}
        self.second = {name: np.zeros_like(value) for name, value in self.theta.items()}
        self.steps = 0

    def weight(self, nodes: Array) -> float:
        """Of a positive: l - 1 (App. A.1), or the negatives to a positive (App. A.3, Eq. 30)."""
        if self.run.cell.graph.family == "permutation":
            return len(nodes) - 1
        positives = sum((p, q) in self.edges for p in nodes for q in nodes)
        return (len(nodes) ** 2 - positives) / positives if positives else 0.0

    def loss(self, theta: dict[str, Array], nodes: Array) -> float:
        """Of one context, pair by pair or position by position."""
        S = self.combined(self.head_scores(theta, nodes))
        if self.run.cell.record.loss == "messages":
            pi = self.task.targets
            retrieving = [i for i in range(len(nodes)) if pi[nodes[i]] in nodes]
            errors = [self.error(S, nodes, i) for i in retrieving]
            return float(sum(error @ error for error in errors) / max(1, len(retrieving)))
        total, length, weight = 0.0, len(nodes), self.weight(nodes)
        for i, p in enumerate(nodes):
            for j, q in enumerate(nodes):
                z = self.run.cell.training.sharpness * (S[i, j] - theta["tau"])
                edge = (p, q) in self.edges
                total += weight * np.logaddexp(0, -z) if edge else np.logaddexp(0, z)
        return float(total / length**2)

    def gradient(self, nodes: Array) -> dict[str, Array]:
        """Of the loss of one context."""
        X, d_k = self.task.embedding[nodes], self.run.d_k
        heads = self.head_scores(self.theta, nodes)
        grad = self.grad_scores(self.combined(heads), nodes)
        result = {name: np.zeros_like(value) for name, value in self.theta.items()}
        if self.run.cell.record.has_tau:
            result["tau"] = -grad.sum()
        for h, slope in enumerate(self.heads_backward(heads, grad)):
            own = slice(d_k * h, d_k * (h + 1))
            result["Q"][:, own] = X.T @ slope @ X @ self.theta["K"][:, own]
            result["K"][:, own] = X.T @ slope.T @ X @ self.theta["Q"][:, own]
        return result

    def step(self) -> None:
        """One step of AdamW."""
        gradient = self.gradient(self.task.training_contexts(self.steps, 1)[0])
        self.steps += 1
        for name, g in gradient.items():
            self.first[name] = 0.9 * self.first[name] + 0.1 * g
            self.second[name] = 0.999 * self.second[name] + 0.001 * g**2
            mean = self.first[name] / (1 - 0.9**self.steps)
            square = self.second[name] / (1 - 0.999**self.steps)
            self.theta[name] = self.theta[name] - self.rate() * mean / (np.sqrt(square) + 1e-8)

    def rate(self) -> float:
        """Learning rate of the present step, the first of which is 1."""
        training = self.run.cell.training
        if training.schedule == "warmup" and self.steps < training.warmup_steps:
            return training.learning_rate * self.steps / training.warmup_steps
        if training.schedule == "cosine":  # cos^2 of half the angle
            angle = (self.steps - 1) / training.max_steps * np.pi / 2
            return float(training.learning_rate * np.cos(angle) ** 2)
        return training.learning_rate

    def head_scores(self, theta: dict[str, Array], nodes: Array) -> Array:
        """Of every head and pair, [h, l, l]."""
        X, h = self.task.embedding[nodes], self.run.h
        queries, keys = ((X @ theta[name]).reshape(len(nodes), h, -1) for name in "QK")
        return np.einsum("phk,qhk->hpq", queries, keys)

    def combined(self, heads: Array) -> Array:
        """Combined scores, [l, l]."""
        return (
            self.attention(heads).sum(0)
            if self.run.cell.record.heads == "softmax"
            else heads.max(0)
        )

    def attention(self, heads: Array) -> Array:
        """Softmax of scaled scores over the second item."""
        shares = np.exp(heads / np.sqrt(self.run.d_k))
        return shares / shares.sum(2, keepdims=True)

    def grad_scores(self, S: Array, nodes: Array) -> Array:
        """dL/dS of combined scores."""
        length, weight, alpha = len(nodes), self.weight(nodes), self.run.cell.training.sharpness
        result = np.zeros_like(S)
        if self.run.cell.record.loss == "messages":
            pi = self.task.targets
            retrieving = [i for i in range(length) if pi[nodes[i]] in nodes]
            for i in retrieving:
                result[i] = (
                    2 / len(retrieving) * self.task.messages[nodes] @ self.error(S, nodes, i)
                )
            return result
        for i, p in enumerate(nodes):
            for j, q in enumerate(nodes):
                sigmoid = 1 / (1 + np.exp(-alpha * (S[i, j] - self.theta["tau"])))
                result[i, j] = -weight * (1 - sigmoid) if (p, q) in self.edges else sigmoid
        return result * alpha / length**2

    def heads_backward(self, heads: Array, grad: Array) -> Array:
        """dL/dS of every head's scores."""
        if self.run.cell.record.heads == "softmax":
            A = self.attention(heads)
            mean = (A * grad).sum(2, keepdims=True)
            return A * (grad - mean) / np.sqrt(self.run.d_k)
        return (np.arange(self.run.h)[:, None, None] == heads.argmax(0)) * grad

    def error(self, S: Array, nodes: Array, i: int) -> Array:
        """The message that the i-th item of the context retrieves, less the one it wants."""
        V = self.task.messages
        error: Array = S[i] @ V[nodes] - V[self.task.targets[nodes[i]]]
        return error
