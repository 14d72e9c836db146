"""The training of a layer of edges in JAX: vmap over lanes, scan over steps, one compiled program.

What somebody who knows JAX would write: the loss as in the paper, its gradient by autodiff,
contexts drawn by the project's own sampler, so that every engine trains on the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from rgr_dist.engines.schedule import BETA_1, BETA_2, EPSILON
from rgr_dist.problem.edge_task import Task, initial_projections
from rgr_dist.study.run import Run


class Blocks:
    """Lanes that advance by blocks of steps, each in one call of a compiled program."""

    def advance(self, steps: int) -> None:
        """Take so many steps in every lane."""
        if steps % self.block:
            raise ValueError(f"steps: {steps} is not a multiple of {self.block}")
        for first in range(self.steps, self.steps + steps, self.block):
            counter = jnp.arange(first + 1, first + self.block + 1, dtype=jnp.float32)
            self.state = self._train(self.state, *self.batches(first), counter)
        self.steps += steps
        jax.block_until_ready(self.state)


class JaxLanes(Blocks):
    """Lanes of one (cell, h, d_k) that advance together.

    Args:
        block: steps of one compiled call; only multiples of it can be taken.
    """

    def __init__(self, runs: Sequence[Run], block: int) -> None:
        run = runs[0]
        self.tasks = [Task.of(r.cell, r.seed) for r in runs]
        self.X = jnp.asarray(np.stack([task.embedding for task in self.tasks]), jnp.float32)
        self.targets = jnp.asarray(np.stack([task.targets for task in self.tasks]))
        V = [task.messages for task in self.tasks] if run.cell.record.loss == "messages" else []
        self.V = jnp.asarray(np.stack(V), jnp.float32) if V else self.X
        both = np.stack([np.concatenate(initial_projections(r), axis=1) for r in runs])
        theta = {"W": jnp.asarray(both, jnp.float32), "tau": jnp.zeros(len(runs), jnp.float32)}
        zeros = jax.tree.map(jnp.zeros_like, theta)
        self.state = (theta, zeros, zeros)
        self.steps, self.block = 0, block
        self._train = _compiled(run)

    def batches(self, first):
        """What a block trains on: the layer's items, and its contexts."""
        contexts = np.stack([t.training_contexts(first, self.block) for t in self.tasks], 1)
        return self.X, self.V, self.targets, contexts

    def weights(self, lane: int) -> np.ndarray:
        """[W_Q | W_K] of a lane."""
        return np.asarray(self.state[0]["W"][lane])


def adamw(state, gradient, t, rate, decay=0.0):
    """The state after step t, counted from 1, of AdamW."""
    theta, first, second = state
    first = jax.tree.map(lambda m, x: m + (1 - BETA_1) * (x - m), first, gradient)
    second = jax.tree.map(lambda v, x: BETA_2 * v + (1 - BETA_2) * x * x, second, gradient)
    size, root = rate / (1 - BETA_1**t), 1 / jnp.sqrt(1 - BETA_2**t)

    def moved(w, m, v):
        return w * (1 - rate * decay) - size * m / (jnp.sqrt(v) * root + EPSILON)

    return jax.tree.map(moved, theta, first, second), first, second


def _compiled(run: Run):
    h, d_k, length = run.h, run.d_k, run.cell.context.length
    alpha, rate = run.cell.training.sharpness, run.cell.training.learning_rate

    def loss(theta, X_ld, V_ld, y_ll):
        Q_lhk, K_lhk = jnp.moveaxis((X_ld @ theta["W"]).reshape(length, 2, h, d_k), 1, 0)
        S_hll = jnp.einsum("phk,qhk->hpq", Q_lhk, K_lhk)
        if run.cell.record.loss == "messages":
            errors_l = ((S_hll.max(axis=0) @ V_ld - y_ll.astype(V_ld.dtype) @ V_ld) ** 2).sum(-1)
            counts_l = y_ll.any(-1)
            return jnp.where(counts_l, errors_l, 0.0).sum() / jnp.maximum(1, counts_l.sum())
        is_max = run.cell.record.heads == "max"
        S_ll = S_hll.max(axis=0) if is_max else jax.nn.softmax(S_hll / d_k**0.5).sum(axis=0)
        z = alpha * (S_ll - theta["tau"])
        return jnp.where(y_ll, (length - 1) * jax.nn.softplus(-z), jax.nn.softplus(z)).mean()

    def gradient(theta, X_md, V_md, targets, nodes):
        y_ll = targets[nodes][:, None] == nodes[None, :]
        return jax.grad(loss)(theta, X_md[nodes], V_md[nodes], y_ll)

    @jax.jit
    def train(state, X, V, targets, contexts, counter):
        def step(state, given):
            nodes, t = given
            g = jax.vmap(gradient)(state[0], X, V, targets, nodes)
            return adamw(state, g, t, rate), None

        return jax.lax.scan(step, state, (contexts, counter))[0]

    return train
