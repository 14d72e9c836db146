"""Training of an embedding that several relations share, as plainly as torch allows.

It shares no code with the engines: pairs are scored one by one, and the loss is written out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def train(
    E: np.ndarray, targets: list[np.ndarray], contexts: np.ndarray,
    W_Q: list[np.ndarray], W_K: list[np.ndarray], h: int, sharpness: float, rate: float,
) -> dict[str, np.ndarray]:  # fmt: skip
    """The parameters after one step on each context, from tau = 0.

    Args:
        E: [m, d]; targets: a permutation [m] of each of R relations; contexts: [R, steps, l].
        W_Q, W_K: of each relation, [d, h d_k].
    """
    begin: dict[str, list[Any]] = {"E": [E], "W_Q": W_Q, "W_K": W_K, "tau": [0.0] * len(W_Q)}
    theta = {
        name: [torch.tensor(p, dtype=torch.float64, requires_grad=True) for p in parts]
        for name, parts in begin.items()
    }
    every = [p for parts in theta.values() for p in parts]
    optimizer = torch.optim.AdamW(every, lr=rate, weight_decay=0)
    for step in range(contexts.shape[1]):
        loss = torch.tensor(0.0, dtype=torch.float64)
        for r, pi in enumerate(targets):
            nodes = contexts[r, step]
            for i in nodes:
                for j in nodes:
                    x, y = (theta["E"][0][item] / theta["E"][0][item].norm() for item in (i, j))
                    q, k = x @ theta["W_Q"][r], y @ theta["W_K"][r]
                    score = (q * k).reshape(h, -1).sum(1).max()
                    share = torch.sigmoid(sharpness * (score - theta["tau"][r]))
                    cost = -(len(nodes) - 1) * share.log() if pi[i] == j else -(1 - share).log()
                    loss = loss + cost / len(nodes) ** 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    joined = {name: torch.stack(parts).detach().numpy() for name, parts in theta.items()}
    return joined | {"E": joined["E"][0]}
