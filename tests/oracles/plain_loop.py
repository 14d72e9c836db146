"""The smallest key width at which a max layer learns a graph, found by one plain loop.

It shares no code with the product: graphs and contexts are drawn by numpy, seeds and relations are
a leading dimension, and torch does the rest (App. A.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

ALPHA, RATE, LENGTH, CHECK, PATIENCE = 10.0, 1e-3, 16, 500, 5

Draw = Callable[[np.random.Generator], np.ndarray]


def permutation(m: int, generator: np.random.Generator) -> np.ndarray:
    """The edges of a permutation, bool [m, m]."""
    return np.eye(m, dtype=bool)[generator.permutation(m)]


def regular(m: int, degree: int, generator: np.random.Generator) -> np.ndarray:
    """A union of permutations without a common edge or a loop, bool [m, m]."""
    edges = np.eye(m, dtype=bool)
    while edges[0].sum() <= degree:
        pi = permutation(m, generator)
        for _ in range(200 * m):  # swap targets of two sources until none is taken
            wrong = np.flatnonzero((edges & pi).any(1))
            if wrong.size == 0:
                edges |= pi
                break
            pair = [wrong[0], generator.integers(m)]
            pi[pair] = pi[pair[::-1]]
    return edges & ~np.eye(m, dtype=bool)


def gaussian(m: int, d_model: int, generator: np.random.Generator) -> np.ndarray:
    """Random rows of length 1, [m, d_model]."""
    rows = generator.normal(size=(m, d_model))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def contexts(edges: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """Distinct items; each, at a rate of 1/2, brings a target in if it has none, [count, l]."""
    m, many = len(edges), np.arange(count)
    drawn = generator.random((count, m)).argpartition(LENGTH - 1, axis=1)[:, :LENGTH]
    brings = generator.random((count, LENGTH)) < 0.5
    for source, joins in zip(drawn.T.copy(), brings.T, strict=True):
        joins = joins & ~edges[source[:, None], drawn].any(1)
        place = np.where(drawn != source[:, None], generator.random(drawn.shape), -1).argmax(1)
        target = (edges[source] * generator.random((count, m))).argmax(1)
        drawn[many[joins], place[joins]] = target[joins]
    return drawn


def scores(rows: np.ndarray, edges: Sequence[Sequence[np.ndarray]], h: int, d_k: int, steps: int,
           trained: bool, balanced: bool, seed: int) -> list[float]:  # fmt: skip
    """Micro-F1 of each seed on fresh contexts, the mean over its relations.

    Args:
        rows: embeddings of each seed, [S, m, d_model]; ``trained``: they are where E starts.
        edges: of each seed, bool [m, m] of each relation that shares its embedding.
        balanced: positives weigh as much as negatives in each context, else l - 1.
    """
    generator = np.random.default_rng([seed, h, d_k])
    S, R, d = len(rows), len(edges[0]), rows.shape[2]
    pairs = torch.tensor(np.array(edges))  # [S, R, m, m]
    at = torch.arange(S)[:, None, None], torch.arange(R)[None, :, None]

    def drawn(count: int) -> torch.Tensor:
        made = [[contexts(one, count, generator) for one in own] for own in edges]
        return torch.tensor(np.array(made)).permute(2, 0, 1, 3)  # [count, S, R, l]

    E = torch.tensor(rows, dtype=torch.float32)
    W_Q, W_K = (
        torch.tensor(generator.normal(size=(S, R, d, h * d_k)) / np.sqrt(d), dtype=torch.float32)
        for _ in range(2)
    )
    tau = torch.zeros(S, R)
    theta = [W_Q, W_K, tau, *[E] * trained]
    for p in theta:
        p.requires_grad_()
    optimizer = torch.optim.AdamW(theta, lr=RATE, weight_decay=0, fused=True)

    def forward(nodes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores less tau, and labels, [..., S, R, l, l]."""
        X = E / E.norm(dim=-1, keepdim=True) if trained else E
        x = X[at[0], nodes]
        q, k = ((x @ W).unflatten(-1, (h, d_k)).transpose(-2, -3) for W in (W_Q, W_K))
        S_ll = (q @ k.transpose(-1, -2)).amax(-3) - tau[..., None, None]
        return S_ll, pairs[
            at[0][..., None], at[1][..., None], nodes[..., None], nodes[..., None, :]
        ]

    @torch.no_grad()
    def f1(fixed: torch.Tensor) -> torch.Tensor:
        counts = torch.zeros(3, S, R)
        for part in fixed.split(100):
            S_ll, y = forward(part)
            for i, one in enumerate((y & (S_ll > 0), y, S_ll > 0)):
                counts[i] += one.sum((0, -1, -2))
        return 2 * counts[0] / (counts[1] + counts[2]).clamp(min=1)

    validation, test = drawn(200), drawn(500)
    streak, final = np.zeros(S, dtype=int), np.full(S, np.nan)
    for step in range(0, steps, CHECK):
        for nodes in drawn(CHECK):
            z, y = forward(nodes)
            n = y.sum((-1, -2), keepdim=True)
            weight = (LENGTH**2 - n) / n.clamp(min=1) if balanced else LENGTH - 1
            softplus = torch.nn.functional.softplus
            cost = torch.where(y, weight * softplus(-ALPHA * z), softplus(ALPHA * z))
            optimizer.zero_grad()
            cost.mean((-1, -2)).sum().backward()  # seeds share no parameter
            optimizer.step()
        streak = (streak + 1) * (f1(validation).amin(1) > 0.995).numpy()
        ended = np.isnan(final) & ((streak >= PATIENCE) | (step + CHECK >= steps))
        if ended.any():
            final[ended] = f1(test).mean(1).numpy()[ended]
        if not np.isnan(final).any():
            break
    return final.tolist()


def smallest(passes: Callable[[int], bool], most: int) -> int:
    """The smallest width that passes: doubled up to a pass, then halved down to its neighbour."""
    fails, width = 0, 1
    while not passes(width):
        fails, width = width, 2 * width
        assert fails < most, "no width passes"
    while width - fails > 1:
        middle = (fails + width) // 2
        fails, width = (fails, middle) if passes(middle) else (middle, width)
    return width
