"""The transformer's training in JAX: vmap over lanes, scan over steps, one compiled program.

What somebody who knows JAX would write: the block as in Sec. 7.3, its gradient by autodiff, with
keys and values of every position; batches drawn by the project's own sampler.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from peers.jax_edges import Blocks, adamw
from rgr_dist.problem.matching_task import MatchingTask, initial_block
from rgr_dist.study.run import Run


class JaxBlocks(Blocks):
    """Lanes of one (cell, h, d_k) that advance together.

    Args:
        block: steps of one compiled call; only multiples of it can be taken.
    """

    def __init__(self, runs: Sequence[Run], block: int) -> None:
        self.tasks = [MatchingTask.of(run.cell, run.seed) for run in runs]
        self.tables = jnp.asarray(np.stack([task.table for task in self.tasks]), jnp.float32)
        blocks = [initial_block(run) for run in runs]
        theta = {
            name: jnp.asarray(np.stack([one[name] for one in blocks]), jnp.float32)
            for name in blocks[0]
        }
        zeros = jax.tree.map(jnp.zeros_like, theta)
        self.state = (theta, zeros, zeros)
        self.steps, self.block = 0, block
        self._train = _compiled(runs[0])

    def batches(self, first):
        """What a block trains on: the tables, and its batches."""
        return self.tables, np.stack([t.training_batches(first, self.block) for t in self.tasks], 1)

    def weights(self, lane: int) -> np.ndarray:
        """[W_Q | W_K] of a lane."""
        theta = self.state[0]
        return np.concatenate([theta["W_Q"][lane], theta["W_K"][lane]], axis=1)


def _norm(X):
    centred = X - X.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def _compiled(run: Run):
    h, training = run.h, run.cell.training

    def loss(theta, E_Vd, examples):
        query, items = examples[:, 0], examples[:, 1:-1]
        slots = E_Vd[items[:, 0::2]] + E_Vd[items[:, 1::2]]
        null = jnp.broadcast_to(E_Vd[-1], (len(examples), 1, E_Vd.shape[1]))
        X_Bnd = jnp.concatenate([slots, null, E_Vd[query][:, None]], axis=1)
        Z_Bnd = _norm(X_Bnd)

        def heads(X, W):
            return (X @ W).reshape(*X.shape[:-1], h, -1)

        Q_Bhk = heads(Z_Bnd[:, -1], theta["W_Q"])
        K_Bnhk, V_Bnhv = heads(Z_Bnd, theta["W_K"]), heads(Z_Bnd, theta["W_V"])
        S_Bhn = jnp.einsum("bhk,bnhk->bhn", Q_Bhk, K_Bnhk) / Q_Bhk.shape[-1] ** 0.5
        mixed = jnp.einsum("bhn,bnhv->bhv", jax.nn.softmax(S_Bhn), V_Bnhv)
        attended = X_Bnd[:, -1] + mixed.reshape(len(examples), -1) @ theta["W_O"]
        hidden = jax.nn.gelu(_norm(attended) @ theta["W_1"] + theta["b_1"], approximate=False)
        last = attended + hidden @ theta["W_2"] + theta["b_2"]
        logits = jax.nn.log_softmax(last @ E_Vd.T)
        return -jnp.take_along_axis(logits, examples[:, -1:], axis=1).mean()

    @jax.jit
    def train(state, tables, batches, counter):
        def step(state, given):
            examples, t = given
            g = jax.vmap(jax.grad(loss))(state[0], tables, examples)
            return adamw(state, g, t, training.learning_rate, training.weight_decay), None

        return jax.lax.scan(step, state, (batches, counter))[0]

    return train
