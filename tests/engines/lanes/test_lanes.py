"""A lane's numbers are its own: to the last bit, whatever its neighbours do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.engines.api import Outcome
from rgr_dist.engines.lanes.adamw import AdamW
from rgr_dist.engines.lanes.engine import LanesEngine
from rgr_dist.engines.lanes.evaluation import Evaluation
from rgr_dist.engines.lanes.state import Lanes
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.study.training import Training
from tests.engines.lane_state import numbers
from tests.engines.test_agreement import runs_of

CPU = torch.device("cpu")
SHAPES = {  # m, d_model, length, h, d_k
    "one narrow head": (16, 8, 5, 1, 1),
    "odd everything": (23, 17, 5, 3, 7),
    "context holds the whole graph": (9, 16, 9, 2, 3),
    "the paper's context": (64, 32, 16, 4, 8),
    "longer than a register": (40, 5, 33, 2, 2),
}
models = pytest.mark.parametrize("model", ["max", "softmax", "value"])
shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
QUICK = {"learning_rate": 0.003, "check_every": 50, "patience": 2, "max_steps": 1_000} | {
    "validation_contexts": 50,
    "test_contexts": 100,
}
SMALL = (16, 32, 8, 1, 8)  # its seeds converge at different checks


def lanes_of(
    shape: tuple[int, ...], seeds: Sequence[int], steps: int = 0, model: str = "max"
) -> Lanes:
    lanes = Lanes(runs_of(shape, seeds, model), CPU, torch.float32)
    lanes.advance(steps)
    return lanes


def disturb(lanes: Lanes, lane: int, by: float) -> None:
    """Move the weights of a lane, but not their padding."""
    for W_LDd in lanes.parameters[:2]:
        W_hkd = W_LDd[lane].view(lanes.h, lanes.width, -1)
        W_hkd[:, : lanes.d_k, : lanes.cell.d_model] += by


def end(outcome: Outcome) -> tuple[Any, ...]:
    return (outcome.score, outcome.val_score, outcome.tau, outcome.steps, outcome.stop_reason)


def ends(runs: Sequence[Run]) -> dict[int, tuple[Any, ...]]:
    """How each seed ended when these runs were trained together."""
    outcomes = LanesEngine().train(runs)
    return {run.seed: end(outcome) for run, outcome in zip(runs, outcomes, strict=True)}


@models
@shapes
def test_a_lane_is_the_same_alone_beside_others_and_after_they_left(
    shape: tuple[int, ...], model: str
) -> None:
    alone = numbers(lanes_of(shape, [5], 60, model), 0)
    for seeds in ([5, 1], [1, 5], [0, 1, 2, 5, 3, 4, 6]):
        together = lanes_of(shape, seeds, 60, model)
        assert torch.equal(numbers(together, seeds.index(5)), alone), seeds
    compacted = lanes_of(shape, range(6), 25, model)
    compacted.keep([1, 3, 5])
    compacted.advance(15)
    compacted.keep([2])
    compacted.advance(20)
    assert compacted.indices == [5]
    assert torch.equal(numbers(compacted, 0), alone)


@models
@shapes
def test_disturbing_or_losing_one_lane_leaves_the_others_as_they_were(
    shape: tuple[int, ...], model: str
) -> None:
    quiet = lanes_of(shape, range(3), 40, model)
    for by in (0.1, float("nan"), float("inf")):
        disturbed = lanes_of(shape, range(3), 10, model)
        disturb(disturbed, 1, by)
        disturbed.advance(30)
        assert disturbed.is_finite() == [True, bool(np.isfinite(by)), True]
        for lane in (0, 2):
            assert torch.equal(numbers(disturbed, lane), numbers(quiet, lane))
            validation = quiet.tasks[lane].validation[:40]
            scores = [Evaluation(lanes).score(lane, validation) for lanes in (disturbed, quiet)]
            assert scores[0] == scores[1]
        assert not torch.equal(numbers(disturbed, 1), numbers(quiet, 1))


@shapes
def test_steps_can_be_taken_in_any_portions(shape: tuple[int, ...]) -> None:
    at_once, in_portions = lanes_of(shape, range(3), 31), lanes_of(shape, range(3))
    for portion in (1, 7, 23):
        in_portions.advance(portion)
    assert in_portions.steps == at_once.steps == 31
    for lane in range(3):
        assert torch.equal(numbers(in_portions, lane), numbers(at_once, lane))


@models
@shapes
def test_padding_never_moves(shape: tuple[int, ...], model: str) -> None:
    lanes = lanes_of(shape, range(2), 20, model)
    d_k, d = lanes.d_k, lanes.cell.d_model
    for tensors in (lanes.parameters, lanes.adamw.first, lanes.adamw.second, lanes.gradients):
        for W_LDd in tensors[:2]:
            W_Lhkd = W_LDd.unflatten(1, (lanes.h, -1))
            assert not W_Lhkd[:, :, d_k:].any()
            assert not W_Lhkd[..., d:].any()
            assert W_Lhkd[:, :, :d_k, :d].any(dim=(2, 3)).all()
        assert not tensors[2][:, 1:].any()
        assert tensors[2][:, 0].all() == tensors[2][:, 0].any() == lanes.cell.record.has_tau


def test_heads_that_tie_share_the_gradient() -> None:
    one = lanes_of((23, 17, 5, 1, 7), range(2), 10)
    two = Lanes(runs_of((23, 17, 5, 2, 7), range(2)), CPU, torch.float32)
    for mine, its in zip(
        (one.adamw.first, one.adamw.second),
        (two.adamw.first, two.adamw.second),
        strict=True,
    ):
        its[:] = [*(W.repeat(1, 2, 1) for W in mine[:2]), mine[2].clone()]
    two.parameters = [W.repeat(1, 2, 1) for W in one.parameters[:2]] + [one.parameters[2].clone()]
    two.steps, two.adamw.steps = one.steps, one.adamw.steps.clone()
    one.advance(1)
    two.advance(1)
    for single, shared in zip(one.gradients[:2], two.gradients[:2], strict=True):
        assert torch.equal(shared, single.repeat(1, 2, 1) / 2)
    assert torch.equal(one.gradients[2], two.gradients[2])


def test_numbers_do_not_depend_on_the_number_of_threads() -> None:
    for shape in ((64, 64, 16, 4, 16), (23, 17, 5, 3, 7)):
        torch.set_num_threads(1)
        one = lanes_of(shape, range(8), 3)
        torch.set_num_threads(2)
        two = lanes_of(shape, range(8), 3)
        assert all(torch.equal(a, b) for a, b in zip(one.parameters, two.parameters, strict=True))


@pytest.mark.parametrize(
    ("model", "training", "reasons"),
    [
        ("max", {}, {"converged"}),
        ("max", {"max_steps": 330}, {"converged", "max_steps"}),
        ("softmax", {"stop_score": 0.7}, {"converged"}),
        ("value", {"tolerance": 0.05}, {"converged"}),
    ],
)
def test_each_lane_stops_for_itself(model: str, training: Any, reasons: set[str]) -> None:
    runs = runs_of(SMALL, range(6), model, **QUICK | training)
    alone = {run.seed: ends([run])[run.seed] for run in runs}
    assert len({steps for *_, steps, _ in alone.values()}) > 1
    assert {reason for *_, reason in alone.values()} == reasons
    assert ends(runs) == alone
    assert ends(runs[::-1]) == alone
    assert ends(runs[2:5]) == {seed: alone[seed] for seed in (2, 3, 4)}


def test_lanes_that_diverge_leave_the_others_to_train() -> None:
    wild = QUICK | {"learning_rate": 1.5e19, "check_every": 20, "max_steps": 60}
    runs = runs_of((16, 5, 5, 1, 2), range(6), **wild)
    together = ends(runs)
    reasons = [reason for *_, reason in together.values()]
    assert {"diverged", "max_steps"} == set(reasons)
    for run in runs:
        assert ends([run])[run.seed] == together[run.seed]
        score, val_score, tau, steps, reason = together[run.seed]
        if reason == "diverged":
            assert (score, val_score, tau, steps) == (None, None, None, 20)
        else:
            assert np.isfinite([score, val_score, tau]).all()
            assert steps == 60


def test_a_run_that_is_listed_twice_ends_the_same_both_times() -> None:
    (run,) = runs_of(SMALL, [0], **QUICK | {"patience": 3})
    (alone,) = LanesEngine().train([run])
    assert [end(outcome) for outcome in LanesEngine().train([run, run])] == [end(alone)] * 2


@pytest.mark.parametrize("other", [{"h": 2}, {"d_k": 3}, {"cell": Cell(m=17, d_model=8)}])
def test_runs_that_do_not_fit_in_one_program_are_refused(other: dict[str, Any]) -> None:
    run = Run(cell=Cell(m=16, d_model=8), h=1, d_k=2, seed=0)
    with pytest.raises(ValueError, match=r"^lanes of one program must share the cell, h and d_k$"):
        LanesEngine().train([run, run.model_copy(update={"seed": 1, **other})])


@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_adamw_has_the_bits_of_torchs_own_also_after_lanes_left(decay: float) -> None:
    generator = torch.Generator().manual_seed(0)
    mine = [torch.randn(shape, generator=generator) for shape in ((4, 24, 16), (4, 16))]
    theirs = [p.clone() for p in mine]
    adamw = AdamW(mine, Training(learning_rate=0.003, weight_decay=decay))
    optimizer = torch.optim.AdamW(theirs, lr=0.003, weight_decay=decay, fused=True)
    kept = torch.arange(4)
    for step in range(20):
        if step == 12:
            kept = torch.tensor([0, 3])
            mine = [p.index_select(0, kept) for p in mine]
            adamw.keep(kept)
        for p in theirs:
            p.grad = torch.randn(p.shape, generator=generator)
        adamw.step(mine, [p.grad[kept] for p in theirs])
        optimizer.step()
        assert all(torch.equal(a, b[kept]) for a, b in zip(mine, theirs, strict=True))
