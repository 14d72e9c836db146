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
    key: Sequence[int], index: int, graph: Sequence[Sequence[int]], length: int, rho: float
) -> tuple[list[int], list[int]]:
    """Context ``index`` and its sources U, by the three steps of App. A.1, as App. A.3 has them.

    Block (p, index) decides for position p: its first word draws the node, its second
    whether the node is in U, its third which node that target replaces, its fourth which of
    the out-neighbours ``graph[node]`` that target is.
    """
    draw, join, replace, choose = zip(
        *(philox4x32_10((p, index & MASK, index >> 32, 0), key) for p in range(length)),
        strict=True,
    )

    # 1. Sample a set S of l distinct nodes uniformly. A Fisher-Yates shuffle lets the node at
    #    the front change places with the one that is drawn.
    nodes = list(range(len(graph)))
    for p in range(length):
        j = p + draw[p] * (len(nodes) - p) // 2**32
        nodes[p], nodes[j] = nodes[j], nodes[p]
    S = nodes[:length]

    # 2. Choose U, a subset of S; each node joins with probability rho.
    U = [(p, S[p]) for p in range(length) if join[p] < rho * 2**32]

    # 3. For each i in U, if none of its out-neighbours is in S, one of them replaces a random j
    #    in S without i.
    for p, i in U:
        if graph[i] and not set(graph[i]) & set(S):
            others = [j for j in S if j != i]
            j = others[replace[p] * len(others) // 2**32]
            S[S.index(j)] = graph[i][choose[p] * len(graph[i]) // 2**32]
    return S, [i for _, i in U]


def law_of_contexts(
    graph: Sequence[Sequence[int]], length: int, rho: Fraction
) -> dict[tuple[int, ...], float]:
    """Probability of every ordered context under App. A.1, by enumerating all that can happen.

    Here U is drawn as the paper has it: b from Binomial(l, rho), then a uniform U of size b.
    """
    law: dict[tuple[int, ...], Fraction] = {}
    start = Fraction(1, math.perm(len(graph), length))
    for S in itertools.permutations(range(len(graph)), length):
        for b in range(length + 1):
            binomial = math.comb(length, b) * rho**b * (1 - rho) ** (length - b)
            for U in itertools.combinations(S, b):
                branches = {S: start * binomial / math.comb(length, b)}
                for i in U:
                    branches = _replace(branches, i, graph[i])
                for context, probability in branches.items():
                    law[context] = law.get(context, Fraction(0)) + probability
    return {context: float(probability) for context, probability in law.items()}


def _replace(
    branches: dict[tuple[int, ...], Fraction], source: int, targets: Sequence[int]
) -> dict[tuple[int, ...], Fraction]:
    result: dict[tuple[int, ...], Fraction] = {}
    for context, probability in branches.items():
        if not targets or set(targets) & set(context):
            result[context] = result.get(context, Fraction(0)) + probability
            continue
        others = [j for j in context if j != source]
        for j, target in itertools.product(others, targets):
            after = tuple(target if node == j else node for node in context)
            share = probability / (len(others) * len(targets))
            result[after] = result.get(after, Fraction(0)) + share
    return result


def literal_regular(words: Sequence[int], m: int, degree: int) -> list[list[int]]:
    """A union of greedy random matchings (App. A.3), from 3 m words for each of them.

    The first two thirds order the sources, the last third chooses among the targets that are
    left. Where none is left, the shortest chain of targets that change hands is looked for
    layer by layer, lower numbers first.
    """
    graph: list[list[int]] = [[] for _ in range(m)]
    for layer in range(degree):
        own = words[3 * m * layer : 3 * m * (layer + 1)]
        order = sorted(range(m), key=lambda i: (own[i], own[m + i]))
        match: dict[int, int] = {}  # target of each source so far
        for turn, source in enumerate(order):
            allowed = [t for t in range(m) if t != source and t not in graph[source]]
            free = [t for t in allowed if t not in match.values()]
            if free:
                match[source] = free[own[2 * m + turn] * len(free) // 2**32]
            else:
                match |= _chain(source, match, graph)
        for source, target in match.items():
            graph[source].append(target)
    return [sorted(targets) for targets in graph]


def _chain(source: int, match: dict[int, int], graph: list[list[int]]) -> dict[int, int]:
    """New targets of the sources along the shortest chain that ends in a free target."""
    holder = {target: holder for holder, target in match.items()}
    chains, seen = [{source: -1}], set()
    while chains:
        longer = []
        for chain in chains:
            last = next(reversed(chain))
            for target in range(len(graph)):
                if target in seen or target == last or target in graph[last]:
                    continue
                seen.add(target)
                if target not in holder:
                    return {**chain, last: target}
                longer.append({**chain, last: target, holder[target]: -1})
        chains = longer
    raise AssertionError("no perfect matching is left")
