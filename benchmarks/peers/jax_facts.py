"""Model facts in JAX: vmap over lanes, scan over steps, one compiled program.

What somebody who knows JAX would write: the layer over the two tokens of every pair, or with
``factored`` the same logits from their factors, as in our engine; the gradient by autodiff.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from peers.jax_edges import Blocks, adamw
from rgr_dist.problem.facts_task import FactsTask, initial_facts
from rgr_dist.study.run import Run


class JaxFacts(Blocks):
    """Lanes of one (cell, h, d_qk, d_vo) that advance together, on full batches.

    Args:
        block: steps of one compiled call; only multiples of it can be taken.
    """

    def __init__(self, runs: Sequence[Run], block: int, factored: bool = False) -> None:
        self.triples = jnp.asarray(np.stack([FactsTask.of(r.cell, r.seed).triples for r in runs]))
        starts = [initial_facts(run) for run in runs]
        theta = {
            name: jnp.asarray(np.stack([start[name] for start in starts]), jnp.float32)
            for name in starts[0]
        }
        zeros = jax.tree.map(jnp.zeros_like, theta)
        self.state = (theta, zeros, zeros)
        self.steps, self.block = 0, block
        self._train = _compiled(runs[0], factored_logits if factored else token_logits)

    def batches(self, first):
        """What a block trains on: the triples, the same in every block."""
        return (self.triples,)

    def weights(self, lane: int) -> np.ndarray:
        """The unembedding of a lane."""
        return np.asarray(self.state[0]["U"][lane])


def token_logits(theta, keys, queries, h):
    """Logits of some pairs, [B, V], token by token."""
    x = theta["X_Q"][queries]
    tokens = jnp.stack([theta["X_K"][keys], x], 1)
    Q = (x @ theta["W_Q"]).reshape(len(keys), h, -1)
    K = (tokens @ theta["W_K"]).reshape(len(keys), 2, h, -1)
    V = (tokens @ theta["W_V"]).reshape(len(keys), 2, h, -1)
    A = jax.nn.softmax(jnp.einsum("bhc,bnhc->bhn", Q, K) / Q.shape[-1] ** 0.5, -1)
    out = x + jnp.einsum("bhn,bnhv->bhv", A, V).reshape(len(keys), -1) @ theta["W_O"]
    return out @ theta["U"]


def factored_logits(theta, keys, queries, h):
    """The same logits, computed from their factors for all pairs first."""

    def heads(X, W):
        return jnp.moveaxis((X @ W).reshape(len(X), h, -1), 1, 0)

    C = (theta["W_O"] @ theta["U"]).reshape(h, -1, theta["U"].shape[1])
    V, V_self = heads(theta["X_K"], theta["W_V"]) @ C, heads(theta["X_Q"], theta["W_V"]) @ C
    Q = heads(theta["X_Q"], theta["W_Q"]) / (theta["W_Q"].shape[1] // h) ** 0.5
    own = (heads(theta["X_Q"], theta["W_K"]) * Q).sum(-1)
    A = jax.nn.sigmoid(heads(theta["X_K"], theta["W_K"]) @ jnp.swapaxes(Q, 1, 2) - own[:, None])
    mixed = A[..., None] * (V[:, :, None] - V_self[:, None])
    L = theta["X_Q"] @ theta["U"] + V_self.sum(0) + mixed.sum(0)
    return L[keys, queries]


def _compiled(run: Run, logits_of):
    rate, decay = run.cell.training.learning_rate, run.cell.training.weight_decay or 0.0

    def loss(theta, triples):
        keys, queries, values = triples.T
        logits = logits_of(theta, keys, queries, run.h)
        right = jnp.take_along_axis(logits, values[:, None], 1)[:, 0]
        return (jax.nn.logsumexp(logits, 1) - right).mean()

    @jax.jit
    def train(state, triples, counter):
        def step(state, t):
            g = jax.vmap(jax.grad(loss))(state[0], triples)
            return adamw(state, g, t, rate, decay), None

        return jax.lax.scan(step, state, counter)[0]

    return train
