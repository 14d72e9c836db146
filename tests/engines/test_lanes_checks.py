"""Scores of lanes by pairs, sources or contexts, and checks that end once they cannot pass."""

from __future__ import annotations

import pytest

from rgr_dist.engines.lanes import blocks as lanes_blocks
from rgr_dist.engines.lanes import checks as lanes_checks
from rgr_dist.engines.lanes import scoring as lanes_scoring
from rgr_dist.engines.lanes import sources as lanes_sources
from rgr_dist.engines.lanes.blocks import BlockScorer
from rgr_dist.engines.lanes.checks import Checks
from rgr_dist.engines.lanes.sources import SourceScorer
from tests.engines.test_lanes import QUICK, SMALL, ends, lanes_of, runs_of, shapes


@shapes
@pytest.mark.parametrize("together", [1, 3])
def test_scores_are_the_same_by_pairs_and_by_contexts(
    shape: tuple[int, ...], together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes = lanes_of(shape, range(4), 200)
    validation = [task.validation for task in lanes.tasks]
    scores = {}
    monkeypatch.setattr(lanes_checks, "lanes_at_once", lambda *_: together)
    monkeypatch.setattr(lanes_scoring, "SCORES_ON_CPU", 1_000)  # several parts
    monkeypatch.setattr(lanes_blocks, "SCORES_AT_ONCE_ON_CPU", 1_000)
    for by_pairs in (True, False):
        monkeypatch.setattr(lanes_checks, "pairs_pay", lambda *_, chosen=by_pairs: chosen)
        checks = Checks(lanes)
        scores[by_pairs] = checks.validate(range(4))
        assert checks.score(2, validation[2]) == pytest.approx(scores[by_pairs][2], abs=2e-3)
        assert checks.validate([1, 3]) == pytest.approx(scores[by_pairs][1::2], abs=2e-3)
    assert max(scores[True]) > 0
    assert scores[True] == pytest.approx(scores[False], abs=2e-3)


def score_by(way: str, monkeypatch: pytest.MonkeyPatch, first_look: int = 16) -> None:
    """Have every check look at sources, or contexts, rather than at all pairs at once."""
    monkeypatch.setattr(lanes_checks, "pairs_pay", lambda *_: False)
    monkeypatch.setattr(lanes_checks, "sources_pay", lambda *_: way == "sources")
    monkeypatch.setattr(lanes_blocks, "FIRST_LOOK", first_look)
    monkeypatch.setattr(lanes_sources, "SOURCES", first_look)


ways = pytest.mark.parametrize("way", ["sources", "contexts"])


@shapes
def test_scores_are_the_same_by_sources_and_by_contexts(shape: tuple[int, ...]) -> None:
    lanes = lanes_of(shape, range(2), 200)
    layer, targets = Checks(lanes)._layer(1), Checks(lanes)._targets(1)
    validation = lanes.tasks[1].validation
    by_sources, by_contexts = (make(validation, targets) for make in (SourceScorer, BlockScorer))
    assert by_sources.actual == by_contexts.actual
    assert by_sources.score(layer) == pytest.approx(by_contexts.score(layer), abs=2e-3)
    assert int(by_sources.errors.sum()) == pytest.approx(int(by_contexts.errors.sum()), rel=2e-3)


@ways
@shapes
@pytest.mark.parametrize("first_look", [1, 16])
def test_a_check_ends_early_only_if_it_cannot_be_passed(
    shape: tuple[int, ...], first_look: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    score_by(way, monkeypatch, first_look)
    lanes, lane = lanes_of(shape, [0, 1]), 1
    checks = Checks(lanes)
    for _ in range(6):  # the contexts that were wrong come first from the second check on
        lanes.advance(40)
        exact = Checks(lanes).score(lane, lanes.tasks[lane].validation)
        assert checks.validate([lane], 1.0) == [None]
        for above in (0.0, exact - 1e-9, None):
            assert checks.validate([lane], above) == [exact]
        for above in (exact, exact + 1e-9, (1 + exact) / 2):
            assert checks.validate([lane], above)[0] in (None, exact)


@ways
def test_a_hopeless_check_looks_at_few(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    score_by(way, monkeypatch)
    lanes = lanes_of((400, 16, 16, 2, 3), [0], 20)
    checks = Checks(lanes)
    assert checks.validate([0], 0.995) == [None]
    assert 0 < (checks.scorers[0].errors > 0).sum() <= 16


@ways
@pytest.mark.parametrize("shape", [SMALL, (64, 32, 16, 2, 8)])
def test_runs_end_the_same_whether_or_not_checks_end_early(
    shape: tuple[int, ...], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    score_by(way, monkeypatch, first_look=2)  # so that it can end before items are many
    runs = runs_of(shape, range(4), **QUICK)
    early = ends(runs)
    validate = Checks.validate
    monkeypatch.setattr(Checks, "validate", lambda self, lanes, above: validate(self, lanes))
    assert ends(runs) == early
