"""Which parameters an algorithm takes, and what those that are left out mean."""

from __future__ import annotations

from typing import Any

import pytest

from rgr_dist.study.construction import Construction, canonical, fault_of, kind_of, p_of

ALGORITHMS = ["1", "2", "3", "4", "5", "ours", "one-head", "trivial", "limit"]
WITH_SIGNATURES = "1 2 3 4 5 limit"
TAKEN: list[tuple[dict[str, Any], str]] = [  # parameters, and the algorithms that take them
    ({}, " ".join(ALGORITHMS)),
    ({"signatures": "rademacher"}, WITH_SIGNATURES),
    ({"signatures": "bernoulli"}, WITH_SIGNATURES),
    ({"signatures": "orthogonal"}, "1 3 4 limit"),
    ({"signatures": "bernoulli", "p": 1 / 20}, WITH_SIGNATURES),
    ({"signatures": "bernoulli", "p": 0.051}, "1 2 3 5 limit"),
    ({"p": 0.04}, "3 4"),
    ({"p": 0.4}, "3"),
    ({"colouring": "equitable"}, "5 limit"),
    ({"tau": "best"}, "1 3 4 5 ours one-head trivial limit"),
    ({"iterations": 9}, "ours"),
]


@pytest.mark.parametrize(("keys", "taken"), TAKEN)
def test_an_algorithm_takes_its_own_parameters(keys: dict[str, Any], taken: str) -> None:
    faults = {one: fault_of(one, Construction(**keys)) for one in ALGORITHMS}
    assert [one for one, fault in faults.items() if fault is None] == taken.split()
    assert all(fault.partition(":")[0] in keys for fault in faults.values() if fault)


PRINTED = {"3": ("bernoulli", 1 / 4), "4": ("bernoulli", 1 / 20)}


@pytest.mark.parametrize("algorithm", ["1", "2", "3", "4", "5"])
def test_what_is_left_out_is_as_the_paper_prints_it(algorithm: str) -> None:
    kind, p = PRINTED.get(algorithm, ("rademacher", 1 / 4))
    assert kind_of(algorithm, Construction()) == kind
    assert p_of(algorithm, Construction()) == p
    asked = Construction(signatures="orthogonal", p=0.01, tau="best")
    assert (kind_of(algorithm, asked), p_of(algorithm, asked)) == ("orthogonal", 0.01)
    assert canonical(algorithm, asked) == asked
    spelt = Construction(signatures=kind, p=p, tau="best")
    assert canonical(algorithm, spelt) == Construction(tau="best")
