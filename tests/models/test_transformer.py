"""The block against Sec. 7.3 written out number by number, and what must not matter to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rgr_dist.models.transformer import block_logits, count_answers, superpose
from rgr_dist.problem.matching_task import MatchingTask, initial_block
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run

SPLITS = [(1, 1), (1, 5), (2, 3), (3, 2), (6, 1)]


def task_of(length: int = 3) -> MatchingTask:
    training = {"batch_size": 4, "weight_decay": 0.01}
    cell = Cell(model="transformer", m=13, d_model=6, context={"length": length}, training=training)
    return MatchingTask.of(cell, 1)


def plain_norm(x: np.ndarray) -> np.ndarray:
    return (x - x.mean()) / math.sqrt(((x - x.mean()) ** 2).mean() + 1e-5)


def plain_logits(E: np.ndarray, example: np.ndarray, theta: dict, h: int) -> np.ndarray:
    """One example, one head, one position at a time, at every position as a block would."""
    query, *items, _ = example.tolist()
    slots = [E[a] + E[b] for a, b in zip(items[0::2], items[1::2], strict=True)]
    X = [*slots, E[-1], E[query]]
    d, d_k = len(E[0]), theta["W_Q"].shape[1] // h
    d_v = d // h
    outputs = []
    for x in X:
        heads = []
        for k in range(h):
            keys, values = slice(k * d_k, (k + 1) * d_k), slice(k * d_v, (k + 1) * d_v)
            q = plain_norm(x) @ theta["W_Q"][:, keys]
            s = [q @ (plain_norm(y) @ theta["W_K"][:, keys]) / math.sqrt(d_k) for y in X]
            p = [math.exp(score) / sum(map(math.exp, s)) for score in s]
            v = [plain_norm(y) @ theta["W_V"][:, values] for y in X]
            heads.append(sum(weight * value for weight, value in zip(p, v, strict=True)))
        x = x + np.concatenate(heads) @ theta["W_O"]
        a = plain_norm(x) @ theta["W_1"] + theta["b_1"]
        g = np.array([value * (1 + math.erf(value / math.sqrt(2))) / 2 for value in a])
        outputs.append(x + g @ theta["W_2"] + theta["b_2"])
    return np.array([row @ outputs[-1] for row in E])


@pytest.mark.parametrize(("h", "d_k"), SPLITS)
@pytest.mark.parametrize("length", [2, 5])
def test_logits_are_those_of_the_block_written_out(length: int, h: int, d_k: int) -> None:
    task = task_of(length)
    theta = initial_block(Run(cell=task.cell, h=h, d_k=d_k, seed=1))
    rng = np.random.default_rng(0)
    theta |= {name: rng.normal(size=theta[name].shape) for name in ("b_1", "b_2")}
    E, examples = torch.from_numpy(task.table), torch.from_numpy(task.test[:5]).long()
    tensors = {name: torch.from_numpy(value) for name, value in theta.items()}
    logits = block_logits(superpose(E, examples), E, tensors, h)
    expected = [plain_logits(task.table, example, theta, h) for example in task.test[:5]]
    np.testing.assert_allclose(logits.numpy(), np.array(expected), rtol=1e-10, atol=1e-12)


def test_neither_the_order_of_slots_nor_that_within_a_pair_matters() -> None:
    task = task_of()
    theta = initial_block(Run(cell=task.cell, h=2, d_k=3, seed=1))
    tensors = {name: torch.from_numpy(value) for name, value in theta.items()}
    E, examples = torch.from_numpy(task.table), torch.from_numpy(task.test[:5]).long()
    other = examples[:, [0, 4, 3, 1, 2, 6, 5, 7]]
    one, two = (block_logits(superpose(E, e), E, tensors, 2) for e in (examples, other))
    torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-13)


def test_right_answers_and_nulls_are_counted_apart() -> None:
    logits = torch.eye(4)[[0, 3, 2, 3]]
    assert count_answers(logits, torch.tensor([0, 1, 1, 2])) == (1, 2)
