"""Plain-Python oracles for the problem's randomness; nothing here is shared with the package."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

MASK = 0xFFFFFFFF


def philox4x32_10(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    """Philox4x32-10 after Salmon et al. 2011, Sec. 3.4, in unbounded integers."""
    x0, x1, x2, x3 = counter
    k0, k1 = key
    for _ in range(10):
        high_0, low_0 = divmod(0xD2511F53 * x0, 2**32)
        high_1, low_1 = divmod(0xCD9E8D57 * x2, 2**32)
        x0, x1, x2, x3 = high_1 ^ x1 ^ k0, low_1, high_0 ^ x3 ^ k1, low_0
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return x0, x1, x2, x3


def literal_context(
    key: Sequence[int], index: int, pi: Sequence[int], length: int, rho: float
) -> tuple[list[int], list[int]]:
    """Context ``index`` and its sources U, by the three steps of App. A.1.

    Block (p, index) decides for position p: its first word draws the node, its second
    whether the node is in U, its third whom the node's target replaces.
    """
    draw, join, replace = zip(
        *(philox4x32_10((p, index & MASK, index >> 32, 0), key)[:3] for p in range(length)),
        strict=True,
    )

    # 1. Sample a set S of l distinct nodes uniformly. A Fisher-Yates shuffle lets the node at
    #    the front change places with the one that is drawn.
    nodes = list(range(len(pi)))
    for p in range(length):
        j = p + draw[p] * (len(nodes) - p) // 2**32
        nodes[p], nodes[j] = nodes[j], nodes[p]
    S = nodes[:length]

    # 2. Choose U, a subset of S; each node joins with probability rho.
    U = [(p, S[p]) for p in range(length) if join[p] < rho * 2**32]

    # 3. For each i in U, if pi(i) is not in S, replace a random j in S without i by pi(i).
    for p, i in U:
        if pi[i] not in S:
            others = [j for j in S if j != i]
            j = others[replace[p] * len(others) // 2**32]
            S[S.index(j)] = pi[i]
    return S, [i for _, i in U]


def law_of_contexts(pi: Sequence[int], length: int, rho: Fraction) -> dict[tuple[int, ...], float]:
    """Probability of every ordered context under App. A.1, by enumerating all that can happen.

    Here U is drawn as the paper has it: b from Binomial(l, rho), then a uniform U of size b.
    """
    law: dict[tuple[int, ...], Fraction] = {}
    start = Fraction(1, math.perm(len(pi), length))
    for S in itertools.permutations(range(len(pi)), length):
        for b in range(length + 1):
            binomial = math.comb(length, b) * rho**b * (1 - rho) ** (length - b)
            for U in itertools.combinations(S, b):
                branches = {S: start * binomial / math.comb(length, b)}
                for i in U:
                    branches = _replace(branches, i, pi[i])
                for context, probability in branches.items():
                    law[context] = law.get(context, Fraction(0)) + probability
    return {context: float(probability) for context, probability in law.items()}


def _replace(
    branches: dict[tuple[int, ...], Fraction], source: int, target: int
) -> dict[tuple[int, ...], Fraction]:
    result: dict[tuple[int, ...], Fraction] = {}
    for context, probability in branches.items():
        if target in context:
            result[context] = result.get(context, Fraction(0)) + probability
            continue
        others = [j for j in context if j != source]
        for j in others:
            after = tuple(target if node == j else node for node in context)
            result[after] = result.get(after, Fraction(0)) + probability / len(others)
    return result
