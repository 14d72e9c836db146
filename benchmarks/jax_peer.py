"""The same training in JAX: vmap over lanes, scan over steps, one compiled program.

What somebody who knows JAX would write: the loss as in the paper, its gradient by autodiff,
contexts drawn by the project's own sampler, so that every engine trains on the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from rgr_dist.engines.api import BETA_1, BETA_2, EPSILON
from rgr_dist.problem.edge_task import Task, initial_projections
from rgr_dist.study.cell import Run


class JaxLanes:
    """Lanes of one (cell, h, d_k) that advance together.

    Args:
        block: steps of one compiled call; only multiples of it can be taken.
    """

    def __init__(self, runs: Sequence[Run], block: int) -> None:
        run = runs[0]
        self.tasks = [Task.of(r.cell, r.seed) for r in runs]
        self.X = jnp.asarray(np.stack([task.embedding for task in self.tasks]), jnp.float32)
        self.targets = jnp.asarray(np.stack([task.targets for task in self.tasks]))
        both = np.stack([np.concatenate(initial_projections(r), axis=1) for r in runs])
        theta = {"W": jnp.asarray(both, jnp.float32), "tau": jnp.zeros(len(runs), jnp.float32)}
        zeros = jax.tree.map(jnp.zeros_like, theta)
        self.state = (theta, zeros, zeros)
        self.steps, self.block = 0, block
        self._train = _compiled(run)

    def advance(self, steps: int) -> None:
        """Take so many steps in every lane."""
        if steps % self.block:
            raise ValueError(f"steps: {steps} is not a multiple of {self.block}")
        for first in range(self.steps, self.steps + steps, self.block):
            contexts = np.stack([t.training_contexts(first, self.block) for t in self.tasks], 1)
            counter = jnp.arange(first + 1, first + self.block + 1, dtype=jnp.float32)
            self.state = self._train(self.state, self.X, self.targets, contexts, counter)
        self.steps += steps
        jax.block_until_ready(self.state)

    def weights(self, lane: int) -> np.ndarray:
        """[W_Q | W_K] of a lane."""
        return np.asarray(self.state[0]["W"][lane])


def _compiled(run: Run):
    h, d_k, length = run.h, run.d_k, run.cell.context.length
    alpha, rate = run.cell.training.sharpness, run.cell.training.learning_rate

    def loss(theta, X_ld, y_ll):
        Q_lhk, K_lhk = jnp.moveaxis((X_ld @ theta["W"]).reshape(length, 2, h, d_k), 1, 0)
        S_ll = jnp.einsum("phk,qhk->hpq", Q_lhk, K_lhk).max(axis=0)
        z = alpha * (S_ll - theta["tau"])
        return jnp.where(y_ll, (length - 1) * jax.nn.softplus(-z), jax.nn.softplus(z)).mean()

    def gradient(theta, X_md, targets, nodes):
        return jax.grad(loss)(theta, X_md[nodes], targets[nodes][:, None] == nodes[None, :])

    @jax.jit
    def train(state, X, targets, contexts, counter):
        def step(state, given):
            nodes, t = given
            theta, first, second = state
            g = jax.vmap(gradient)(theta, X, targets, nodes)
            first = jax.tree.map(lambda m, x: m + (1 - BETA_1) * (x - m), first, g)
            second = jax.tree.map(lambda v, x: BETA_2 * v + (1 - BETA_2) * x * x, second, g)
            size, root = rate / (1 - BETA_1**t), 1 / jnp.sqrt(1 - BETA_2**t)
            theta = jax.tree.map(
                lambda w, m, v: w - size * m / (jnp.sqrt(v) * root + EPSILON), theta, first, second
            )
            return (theta, first, second), None

        return jax.lax.scan(step, state, (contexts, counter))[0]

    return train
