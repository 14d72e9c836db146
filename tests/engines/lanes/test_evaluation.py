"""Scores of lanes, whichever way they are computed, and checks that end once they cannot pass."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rgr_dist.engines.lanes import evaluation as lanes_evaluation
from rgr_dist.engines.lanes.engine import LanesEngine
from rgr_dist.engines.lanes.evaluation import ContextScorer, Evaluation
from rgr_dist.engines.lanes.state import Lanes, Layer
from tests.engines.lanes.test_lanes import (
    CPU,
    QUICK,
    SMALL,
    ends,
    lanes_of,
    shapes,
)
from tests.engines.reference_of import reference_with
from tests.engines.test_agreement import runs_of


@shapes
def test_scores_are_the_same_by_pairs_and_by_contexts(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes = lanes_of(shape, range(4), 200)
    validation = [task.validation for task in lanes.tasks]
    scores = {}
    monkeypatch.setattr(lanes_evaluation, "PAIRS_AT_ONCE_ON_CPU", 1_000)  # several parts
    monkeypatch.setattr(lanes_evaluation, "SCORES_AT_ONCE_ON_CPU", 1_000)
    for by_pairs in (True, False):
        monkeypatch.setattr(lanes_evaluation, "pairs_pay", lambda *_, chosen=by_pairs: chosen)
        evaluation = Evaluation(lanes)
        scores[by_pairs] = [evaluation.validate(lane) for lane in range(4)]
        assert [evaluation.score(lane, validation[lane]) for lane in range(4)] == scores[by_pairs]
    assert max(scores[True]) > 0
    assert scores[True] == pytest.approx(scores[False], abs=2e-3)


@pytest.fixture
def by_contexts(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Have every check go through contexts, and not all pairs at once."""
    monkeypatch.setattr(lanes_evaluation, "pairs_pay", lambda *_: False)
    return monkeypatch


@shapes
@pytest.mark.parametrize("between", [1, 64])
def test_a_check_ends_early_only_if_it_cannot_be_passed(
    shape: tuple[int, ...], between: int, by_contexts: pytest.MonkeyPatch
) -> None:
    by_contexts.setattr(lanes_evaluation, "BETWEEN_LOOKS", between)
    lanes, lane = lanes_of(shape, [0, 1]), 1
    evaluation = Evaluation(lanes)
    for _ in range(6):  # the contexts that were wrong come first from the second check on
        lanes.advance(40)
        exact = Evaluation(lanes).score(lane, lanes.tasks[lane].validation)
        assert evaluation.validate(lane, 1.0) is None
        for above in (0.0, exact - 1e-9, None):
            assert evaluation.validate(lane, above) == exact
        for above in (exact, exact + 1e-9, (1 + exact) / 2):
            assert evaluation.validate(lane, above) in (None, exact)


@pytest.mark.usefixtures("by_contexts")
def test_a_hopeless_check_looks_at_few() -> None:
    lanes = lanes_of((400, 16, 16, 2, 3), [0], 20)
    evaluation = Evaluation(lanes)
    assert evaluation.validate(0, 0.995) is None
    assert 0 < (evaluation.scorers[0].errors > 0).sum() <= 64


@pytest.mark.parametrize("shape", [SMALL, (64, 32, 16, 2, 8)])
def test_runs_end_the_same_whether_or_not_checks_end_early(
    shape: tuple[int, ...], by_contexts: pytest.MonkeyPatch
) -> None:
    by_contexts.setattr(lanes_evaluation, "BETWEEN_LOOKS", 2)
    runs = runs_of(shape, range(4), **QUICK)
    early = ends(runs)
    validate = Evaluation.validate
    by_contexts.setattr(Evaluation, "validate", lambda self, lane, above: validate(self, lane))
    assert ends(runs) == early


@shapes
@pytest.mark.parametrize("at_once", [1_000, 2**18])
def test_errors_are_those_of_the_reference(
    shape: tuple[int, ...], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one part or many."""
    monkeypatch.setattr(lanes_evaluation, "SCORES_AT_ONCE_ON_CPU", at_once)
    (run,) = runs_of(shape, [1], "value")
    lanes = Lanes([run], CPU, torch.float32)
    lanes.advance(100)
    expected = reference_with(run, LanesEngine().weights_after([run], 100)[0]).check()
    scorer = Evaluation(lanes)
    assert scorer.validate(0) == pytest.approx(expected, rel=1e-5)
    assert scorer.validate(0) == pytest.approx(expected, rel=1e-5), "and again"


def perfect_layer(m: int, targets: torch.Tensor) -> Layer:
    """One head on one-hot items whose query is its target's key; tau parts 1 from 0."""
    X, one_hot = torch.zeros(m + 1, m), torch.eye(m)
    X[:m] = one_hot
    return Layer(X, one_hot[targets].T, one_hot, torch.tensor(0.5), 1, lambda S: S.amax(0))


@pytest.mark.parametrize("m", [300, 20])
def test_only_errors_that_are_counted_now_end_a_check(
    m: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was wrong at the check before says which contexts come first, and nothing else."""
    monkeypatch.setattr(lanes_evaluation, "SCORES_AT_ONCE_ON_CPU", 1)
    rng = np.random.default_rng(0)
    contexts = np.stack([rng.permutation(m)[:5] for _ in range(60)]).astype(np.int32)
    targets = torch.from_numpy(rng.permutation(m))
    table = torch.cat([targets, torch.tensor([-1])]).unsqueeze(1)
    scorer = ContextScorer(contexts, table)
    assert 0 < scorer.actual < 300
    scorer.errors[:] = 25  # as if every pair of every context had been wrong
    assert scorer.score(perfect_layer(m, targets), above=0.999) == 1.0
    assert not scorer.errors.any()


def test_a_check_ends_at_the_first_error_too_many() -> None:
    contexts = np.array([[0, 1]] * 30, dtype=np.int32)
    table = torch.tensor([[1], [0], [-1]])
    scorer, layer = ContextScorer(contexts, table), perfect_layer(2, torch.tensor([1, 0]))
    none_is_found = layer._replace(tau=torch.tensor(1.0))  # a score on the threshold is no edge
    assert scorer.actual == 60
    assert scorer.score(layer, above=0.999) == 1.0
    assert scorer.score(none_is_found) == 0.0
    assert scorer.score(none_is_found, above=0.0) == 0.0
    assert scorer.score(none_is_found, above=0.9) is None


@pytest.mark.parametrize(("m", "n", "pays"), [(64, 16, True), (65, 16, False), (32, 4, True)])
def test_pairs_pay_up_to_as_many_as_the_contexts_have(m: int, n: int, pays: bool) -> None:
    assert lanes_evaluation.pairs_pay(m, 8, np.zeros((n, 16), np.int32), CPU) == pays
    assert lanes_evaluation.pairs_pay(1_448, 8, np.zeros((10_000, 16), np.int32), CPU)
    assert not lanes_evaluation.pairs_pay(1_449, 8, np.zeros((10_000, 16), np.int32), CPU)


@pytest.mark.parametrize("d_model", [3, 8])
@pytest.mark.parametrize(("n", "length"), [(1, 90), (100, 16), (10_000, 16)])
def test_on_a_gpu_pairs_pay_up_to_as_many_products(n: int, length: int, d_model: int) -> None:
    def products(sets: int, items: int) -> int:  # of queries, of keys and of pairs
        return sets * sum(items * inner for inner in (d_model, d_model, items))

    gpu, contexts = torch.device("cuda"), np.zeros((n, length), np.int32)
    for m in range(1, 1_500):
        pays = products(1, m) <= products(n, length) and m * m <= 2**21
        assert lanes_evaluation.pairs_pay(m, d_model, contexts, gpu) == pays
