"""The transformer's engines: against plain AdamW, each other, and lanes against lone runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from rgr_dist.engines.api import Outcome, Weights
from rgr_dist.engines.lanes import transformer as transformer_lanes
from rgr_dist.engines.lanes.transformer import NAMES, BlockLanes, TransformerLanes, score
from rgr_dist.engines.reference.engine import ReferenceEngine
from rgr_dist.engines.reference.matching import BlockTrainer
from rgr_dist.models.transformer import block_logits, superpose
from rgr_dist.problem.matching_task import MatchingTask, initial_block
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.study.study_file import load_study
from tests.engines.shapes import assert_close

CPU = torch.device("cpu")
SHAPES: dict[str, tuple[int, ...]] = {  # m, d_model, l, batch, h, d_k
    "odd everything": (33, 17, 3, 10, 1, 3),
    "as many heads as d_model": (33, 17, 3, 10, 17, 1),
    "few heads": (40, 16, 5, 16, 2, 4),
    "the paper's heads": (64, 32, 8, 48, 4, 4),
    "odd widths": (64, 32, 8, 48, 2, 9),
    "fewest items": (5, 4, 2, 3, 2, 1),
}
shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


def runs_of(shape: tuple[int, ...], seeds: Sequence[int], **training: Any) -> list[Run]:
    m, d_model, length, batch, h, d_k = shape
    training = {"batch_size": batch, "weight_decay": 0.01} | training
    cell = Cell(
        model="transformer", m=m, d_model=d_model, context={"length": length}, training=training
    )
    return [Run(cell=cell, h=h, d_k=d_k, seed=seed) for seed in seeds]


def lanes_of(runs: Sequence[Run], dtype: torch.dtype = torch.float32) -> BlockLanes:
    return BlockLanes(runs, CPU, dtype, mixed=False)


def same(one: Weights, other: Weights) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in other)


def ends(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(dataclasses.replace(end, seconds=0.0)) for end in outcomes]


SCHEDULES: dict[str, dict[str, Any]] = {
    "constant": {},
    "warmup": {"schedule": "warmup", "warmup_steps": 15},
    "cosine": {"schedule": "cosine", "max_steps": 25},
}


def share_of_rate(schedule: str, t: int) -> float:
    """Of the learning rate at step t of 25, the first 15 of which may warm up."""
    if schedule == "warmup":
        return min(t, 15) / 15
    return float(np.cos((t - 1) / 25 * np.pi / 2) ** 2) if schedule == "cosine" else 1.0


def gradient(task: MatchingTask, theta: Weights, h: int, batch: np.ndarray) -> Weights:
    """Gradient of the mean cross-entropy, by autograd of the model's own forward pass."""
    tensors = {name: torch.from_numpy(value).requires_grad_() for name, value in theta.items()}
    E, examples = torch.from_numpy(task.table), torch.from_numpy(batch).long()
    logits = block_logits(superpose(E, examples), E, tensors, h)
    (-logits.log_softmax(1)[range(len(batch)), examples[:, -1]].mean()).backward()
    return {name: tensor.grad.numpy() for name, tensor in tensors.items()}  # type: ignore[union-attr]


@shapes
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("engine", [ReferenceEngine, TransformerLanes])
def test_engines_take_textbook_adamw_steps_with_decay(
    engine: type, schedule: str, shape: tuple[int, ...]
) -> None:
    keys = {"learning_rate": 0.003, "weight_decay": 0.5} | SCHEDULES[schedule]
    run = runs_of(shape, [4], **keys)[0]
    task, theta, training = (
        MatchingTask.of(run.cell, run.seed),
        initial_block(run),
        run.cell.training,
    )
    first = {name: np.zeros_like(value) for name, value in theta.items()}
    second = {name: np.zeros_like(value) for name, value in theta.items()}
    for t in range(1, 21):
        for name, g in gradient(task, theta, run.h, task.training_batches(t - 1, 1)[0]).items():
            first[name] = 0.9 * first[name] + 0.1 * g
            second[name] = 0.999 * second[name] + 0.001 * g**2
            mean, square = first[name] / (1 - 0.9**t), second[name] / (1 - 0.999**t)
            rate = 0.003 * share_of_rate(schedule, t)
            decayed = theta[name] * (1 - rate * training.weight_decay)
            theta[name] = decayed - rate * mean / (np.sqrt(square) + 1e-8)
    assert_close(engine(dtype=torch.float64).weights_after([run], 20)[0], theta, 1e-8)


@shapes
@pytest.mark.parametrize(("dtype", "relative"), [(torch.float32, 1e-4), (torch.float64, 1e-10)])
def test_lanes_of_distinct_seeds_equal_solo_runs_of_the_reference(
    shape: tuple[int, ...], dtype: torch.dtype, relative: float
) -> None:
    runs = runs_of(shape, (0, 3, 7))
    together = TransformerLanes(dtype=dtype).weights_after(runs, 60)
    assert not np.allclose(together[0]["W_V"], together[-1]["W_V"])
    for run, weights in zip(runs, together, strict=True):
        (alone,) = ReferenceEngine(dtype).weights_after([run], 60)
        assert weights["W_Q"].shape == (run.cell.d_model, run.D_K)
        assert_close(weights, alone, relative)


@pytest.mark.parametrize("name", [name for name in SHAPES if SHAPES[name][1] % 16 == 0])
def test_a_lane_has_the_bits_of_a_lone_run_whoever_trains_beside_it(name: str) -> None:
    runs = runs_of(SHAPES[name], (5, 1, 2, 5))
    alone = [TransformerLanes().weights_after([run], 70)[0] for run in runs]
    for order in (runs, runs[::-1], runs[1:3]):
        together = TransformerLanes().weights_after(order, 70)
        for run, weights in zip(order, together, strict=True):
            assert same(weights, alone[runs.index(run)])


def test_a_disturbed_lane_leaves_the_others_as_they_are() -> None:
    runs = runs_of(SHAPES["few heads"], range(4))
    quiet, disturbed = lanes_of(runs), lanes_of(runs)
    with torch.no_grad():
        for p in disturbed.parameters:
            p[2] += 7.0
    quiet.advance(40)
    disturbed.advance(40)
    moved = [not same(quiet.weights(lane), disturbed.weights(lane)) for lane in range(4)]
    assert moved == [False, False, True, False]


FEWER_ITEMS = {"cell": runs_of((39, *SHAPES["few heads"][1:]), [0])[0].cell}


@pytest.mark.parametrize("other", [{"h": 1}, {"d_k": 3}, FEWER_ITEMS])
def test_runs_that_do_not_fit_in_one_program_are_refused(other: dict[str, Any]) -> None:
    (run,) = runs_of(SHAPES["few heads"], [0])
    with pytest.raises(ValueError, match=r"^lanes of one program must share the cell, h and d_k$"):
        TransformerLanes().train([run, run.model_copy(update={"seed": 1, **other})])


QUICK = {"learning_rate": 0.01, "max_steps": 130, "check_every": 20} | {
    "validation_contexts": 60,
    "test_contexts": 300,
}
EASY, WIDE = (16, 16, 2, 32, 2, 4), (16, 16, 2, 32, 2, 8)
ENGINES = [ReferenceEngine(torch.float64), TransformerLanes(dtype=torch.float64)]


def test_lanes_end_as_the_reference_does() -> None:
    runs = runs_of(EASY, range(4), **QUICK)
    outcomes = [TransformerLanes(dtype=torch.float64), ReferenceEngine(torch.float64)]
    lanes, alone = (ends(engine.train(runs)) for engine in outcomes)
    assert lanes == alone
    assert len({end["score"] for end in lanes}) == 4
    assert {end["stop_reason"] for end in lanes} == {"max_steps"}


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_what_is_tested_is_the_first_check_of_best_validation(engine: Any) -> None:
    runs = runs_of(EASY, (0, 3), **QUICK | {"learning_rate": 0.1})
    expected = []
    for run in runs:
        lanes, seen = lanes_of([run], torch.float64), []
        while lanes.steps < 130:
            lanes.advance(min(20, 130 - lanes.steps))
            (task,) = lanes.tasks
            seen.append([score(lanes, part[None])[0] for part in (task.validation, task.test)])
        validation = [check[0][0] for check in seen]
        best = validation.index(max(validation))
        assert seen[best] != seen[-1], "the last check is not the best, or nothing is shown"
        expected.append((validation[best], *seen[best][1]))
    outcomes = engine.train(runs)
    assert [(end.val_score, end.score, end.null_rate) for end in outcomes] == expected
    assert {end.steps for end in outcomes} == {130}


def test_a_block_learns_the_task_and_one_that_answers_null_is_seen() -> None:
    runs = runs_of(WIDE, (0, 1), **QUICK | {"max_steps": 600})
    for end in TransformerLanes().train(runs):
        assert end.score > 0.9
        assert end.null_rate == 0.0
    lanes = lanes_of(runs)
    with torch.no_grad():
        b_2 = lanes.parameters[NAMES.index("b_2")]
        b_2[1] = 1000 * lanes.E_LVd[1, -1]
    learning, collapsed = score(lanes, np.stack([task.test for task in lanes.tasks]))
    assert collapsed == (0.0, 1.0)
    assert learning[1] < 1.0
    trainer = BlockTrainer(runs[1], torch.float32)
    trainer.theta["b_2"].data = 1000 * trainer.E[-1]
    assert trainer.score(trainer.task.test) == collapsed


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_a_run_whose_weights_are_no_numbers_has_diverged(engine: Any) -> None:
    runs = runs_of(EASY, (0, 1), **QUICK | {"learning_rate": 3e19, "max_steps": 50})
    for end in engine.train(runs):
        assert (end.stop_reason, end.steps) == ("diverged", 20)
        assert (end.score, end.val_score, end.null_rate) == (None, None, None)


def test_a_lane_that_diverges_leaves_the_others_to_end_as_they_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = runs_of(EASY, (0, 1, 2), **QUICK)

    class Disturbed(BlockLanes):
        def advance(self, steps: int) -> None:
            super().advance(steps)
            if self.steps == 60:
                self.parameters[0].data[1] = float("nan")

    expected = ends(TransformerLanes().train(runs))
    monkeypatch.setattr(transformer_lanes, "BlockLanes", Disturbed)
    outcomes = ends(TransformerLanes().train(runs))
    assert (outcomes[1]["stop_reason"], outcomes[1]["steps"]) == ("diverged", 60)
    assert [outcomes[0], outcomes[2]] == [expected[0], expected[2]]


def test_mixed_precision_trains_float32_parameters_nearly_as_well() -> None:
    runs = runs_of(WIDE, (0,), **QUICK | {"max_steps": 600})
    full, mixed = TransformerLanes(), TransformerLanes(mixed=True)
    assert (full.name, mixed.name) == ("lanes", "lanes, bfloat16")
    one, other = (engine.weights_after(runs, 5)[0] for engine in (full, mixed))
    assert other["W_Q"].dtype == np.float32
    assert not same(one, other)
    assert mixed.train(runs)[0].score == pytest.approx(full.train(runs)[0].score, abs=0.05)


@pytest.mark.slow
def test_four_heads_beat_one_of_the_same_total_width() -> None:
    (cell,) = load_study("gpt2-small").cells
    short = cell.model_copy(
        update={"training": cell.training.model_copy(update={"max_steps": 3000})}
    )
    one, four = (
        [Run(cell=short, h=h, d_k=64 // h, seed=seed) for seed in range(3)] for h in (1, 4)
    )
    narrow, wide = ([end.score for end in TransformerLanes().train(runs)] for runs in (one, four))
    gain = stats.ttest_rel(wide, narrow).confidence_interval(0.95)
    assert gain.low > 0.1, "0.30 when it was written"
