"""The program of the compiled engine, run as it is written: its steps without the minutes of
compiling. What torch makes of it is tested beside the other engines, in ``test_laws``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.engines import compiled
from rgr_dist.engines.compiled import CompiledEngine
from rgr_dist.engines.make_task import make_task
from rgr_dist.engines.reference import ReferenceEngine
from rgr_dist.engines.tasks import Edges, ErrorScorer, F1Scorer, TorchTask
from rgr_dist.models.layer import make_layer
from rgr_dist.models.module import ModuleLayer
from rgr_dist.problem.streams import Stream
from tests.engines.shapes import assert_close, runs_of, same
from tests.engines.test_laws import TASKS
from tests.engines.test_layers import LAYERS, run_of, study_of


@pytest.fixture
def as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_programs", {})
    monkeypatch.setattr(torch, "compile", lambda program, **_: program)


@pytest.mark.usefixtures("as_written")
@pytest.mark.parametrize("task", TASKS)
def test_steps_are_those_of_the_reference_however_many_are_taken_at_once(task: str) -> None:
    runs = TASKS[task]((0, 3), learning_rate=0.003)
    engine = CompiledEngine()
    exact = ReferenceEngine(torch.float64).weights_after(runs, 45)
    given = engine.weights_after(runs, 45)
    for one, expected in zip(given, exact, strict=True):
        assert_close(one, expected, 2e-4)
    lane = engine.lane(runs[0])
    assert (engine.name, lane.program is not None) == ("compiled", True)
    for count in (1, 7, 37):
        lane.advance(count)
    assert same(lane.weights(), given[0])
    assert len(compiled._programs) == 1, "one serves every seed"


@pytest.mark.usefixtures("as_written")
def test_a_program_counts_in_the_type_of_its_engine() -> None:
    (run,) = TASKS["max"]((0,), learning_rate=0.003)
    engines = CompiledEngine(dtype=torch.float64), ReferenceEngine(torch.float64)
    for one, expected in zip(*(engine.weights_after([run], 45) for engine in engines), strict=True):
        assert_close(one, expected, 1e-9)


def test_what_cannot_be_compiled_takes_the_steps_of_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(compiled, "_programs", {})
    monkeypatch.setattr(torch, "compile", lambda program, **_: fails)
    (run,), engine = TASKS["max"]((0,)), CompiledEngine()
    (given,), (expected,) = (one.weights_after([run], 9) for one in (engine, ReferenceEngine()))
    assert engine.name != "compiled"
    assert same(given, expected)


@pytest.mark.usefixtures("as_written")
def test_a_module_of_torch_takes_the_steps_of_the_reference() -> None:
    study = study_of(str(LAYERS / "keeps_its_map.py"), d_model=8)
    engine, run = CompiledEngine(), run_of(study)
    assert engine.lane(run).program is None
    assert engine.name != "compiled"


def test_a_program_serves_every_seed_and_no_other_size() -> None:
    cpu, keys = torch.device("cpu"), []
    for task, runs in TASKS.items():
        own = [make_task(run, cpu, torch.float32) for run in runs((0, 3))]
        assert own[0].key == own[1].key, task
        keys.append(own[0].key)
    for relations in (2, 3):
        run = runs_of((16, 8, 5, 2, 3), (0,), embeddings="trained", relations=relations)[0]
        keys.append(make_task(run, cpu, torch.float32).key)
    assert len({*keys}) == len(keys)


def test_a_module_starts_from_the_stream_of_its_seed_in_the_type_of_its_engine() -> None:
    study = study_of(str(LAYERS / "keeps_its_map.py"), d_model=8)
    run = run_of(study)
    stream = Stream.of(run.cell.problem_json, "module", run.seed, 0)
    expected = make_layer(run, (stream.key0 << 32) | stream.key1, anew=True)
    assert isinstance(expected, ModuleLayer)
    for dtype in (torch.float32, torch.float64):
        made = Edges(run, torch.device("cpu"), dtype, anew=True)
        for name, p in expected.theta.items():
            assert made.theta[name].dtype == dtype
            assert torch.equal(made.theta[name], p.to(dtype))


def test_a_check_notes_the_wrong_pairs_of_each_context() -> None:
    (run,) = TASKS["max"]((1,))
    lane = ReferenceEngine().lane(run)
    lane.advance(40)
    task, theta = lane.task, {name: p.detach() for name, p in lane.theta.items()}
    task.check(theta, None)
    wrong = [
        int(((task.scores(theta)(nodes) > theta["tau"]) != edges).sum())
        for nodes, edges in zip(task.validation.nodes, task.validation.edges, strict=True)
    ]
    assert sum(wrong) > 0
    assert task.validation.errors.tolist() == wrong


@pytest.mark.parametrize("share", [0.0, 0.4, 99.0])
def test_a_transformer_answers_right_or_null_as_often_as_its_logits_say(share: float) -> None:
    (run,) = TASKS["transformer"]((1,))
    lane = ReferenceEngine().lane(run)
    lane.advance(20)
    task, theta = lane.task, {name: p.detach() for name, p in lane.theta.items()}
    first = task.check(theta, None)
    kept = {name: p.clone() for name, p in theta.items()}
    theta["b_2"] += share * task.data["E"][-1]  # other weights, which answer NULL more often
    second = task.check(theta, None)
    best = kept if first >= second else theta
    if share > 9:
        task.best_theta = best = theta
    outcome = task.outcome(theta, steps=20, stop_reason="max_steps", seconds=0.0)
    examples = torch.from_numpy(task.task.test).long()
    answers = task.logits(best, task.data, examples).argmax(-1).numpy()
    right = np.mean(answers == examples[:, -1].numpy())
    assert outcome.val_score == max(first, second)
    assert outcome.score == pytest.approx(right)
    assert outcome.null_rate == pytest.approx(np.mean(answers == len(task.data["E"]) - 1))
    assert share < 9 or outcome.null_rate > 0.9


@pytest.mark.parametrize("task", [*TASKS, "a module"])
def test_all_that_a_task_computes_with_lies_on_its_device(task: str) -> None:
    """On a device without numbers, so that whatever is left on the CPU shows."""
    module = study_of(str(LAYERS / "keeps_its_map.py"), d_model=8)
    run = run_of(module) if task == "a module" else TASKS[task]((0,))[0]
    made = make_task(run, torch.device("meta"), torch.float32)
    parts = [made, *getattr(made, "relations", ())]
    parts += [value for one in parts for value in vars(one).values()]
    kept = [
        vars(one).values() for one in parts if isinstance(one, TorchTask | F1Scorer | ErrorScorer)
    ]
    tensors = [one for values in kept for one in values if isinstance(one, torch.Tensor)]
    tensors += [*made.theta.values(), *made.data.values(), *made.batches(0, 2)]
    assert all(one.is_meta for one in tensors)
    batch = tuple(one[0] for one in made.batches(0, 1))
    assert made.loss(made.theta, made.data, batch).is_meta


def test_a_lane_lies_on_the_device_of_its_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "program_of", lambda *_: None)
    lane = CompiledEngine("meta").lane(TASKS["max"]((0,))[0])
    assert all(p.is_meta for p in lane.theta.values())


def test_modules_of_other_seeds_and_relations_start_apart() -> None:
    study = study_of(str(LAYERS / "keeps_its_map.py"), d_model=8)
    starts = []
    for seed, relation in ((3, 0), (3, 0), (4, 0), (3, 1)):
        run, cpu = run_of(study, seed=seed), torch.device("cpu")
        made = Edges(run, cpu, torch.float32, anew=True, relation=relation)
        starts.append(torch.cat([p.detach().flatten() for p in made.theta.values()]))
    assert torch.equal(starts[0], starts[1])
    assert not torch.equal(starts[0], starts[2])
    assert not torch.equal(starts[0], starts[3])


def test_a_run_that_converged_has_the_validation_score_it_stopped_at() -> None:
    run = TASKS["max"]((0,))[0]
    (outcome,) = ReferenceEngine().train([run])
    assert outcome.stop_reason == "converged"
    assert outcome.val_score is not None
    assert outcome.val_score >= run.cell.training.stop_score
