"""Training that starts from constructed weights: in every engine, and where it ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rgr_dist.engines.choose import ENGINES, make_engine
from rgr_dist.engines.constructions import ConstructionEngine
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.run import Run
from rgr_dist.study.study_file import parse_study
from rgr_dist.theory.all_pairs import score_all_pairs
from rgr_dist.theory.construct import problem_of
from rgr_dist.theory.layer import Layer

SEEDS = (0, 3)


def runs_of(h: int, d_k: int, model: str = "max", **keys: Any) -> list[Run]:
    cell = Cell(model=model, m=64, d_model=16, **keys)
    return [Run(cell=cell, h=h, d_k=d_k, seed=seed) for seed in SEEDS]


def constructed(h: int, d_k: int, **training: Any) -> list[Run]:
    return runs_of(h, d_k, training={"start": "constructed", **training})


STRONG = {"start": "constructed", "sharpness": 5, "initial_scale": 2}


@pytest.mark.parametrize(
    "graph", [{}, pytest.param({"family": "regular", "degree": 2}, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_starts_from_a_layer_that_says_of_each_pair_what_the_construction_says(
    engine: str, graph: dict[str, Any]
) -> None:
    runs = runs_of(4, 5, training=STRONG, graph=graph)
    made = ConstructionEngine().weights_after(runs_of(4, 5, "ours", graph=graph), 0)
    for run, own, ours in zip(runs, make_engine(engine).weights_after(runs, 0), made, strict=True):
        for k in range(4):
            columns = slice(5 * k, 5 * k + 5)
            head, like = (w["W_Q"][:, columns] @ w["W_K"][:, columns].T for w in (own, ours))
            scale = own["tau"] / ours["tau"]
            np.testing.assert_allclose(head, scale * like, rtol=1e-4, atol=1e-4 * scale)
            lengths = [np.linalg.norm(own[name][:, columns], axis=0) for name in ("W_Q", "W_K")]
            np.testing.assert_allclose(*lengths, rtol=1e-4)
        logit_of_an_edge = 5 * (scale * 1 - scale * 0.95)
        assert logit_of_an_edge == pytest.approx(2**2 * 8, rel=1e-4)
        X, problem = problem_of(run.cell, run.seed).X, problem_of(run.cell, run.seed)
        layers = (Layer(w["W_Q"], w["W_K"], 4, float(w["tau"])) for w in (own, ours))
        first, second = (score_all_pairs(layer, X, problem.graph) for layer in layers)
        assert first.tp == pytest.approx(second.tp, abs=1)


def test_engines_agree_on_what_training_makes_of_it() -> None:
    runs = constructed(2, 5)
    theirs = make_engine("reference").weights_after(runs, 40)
    for engine in ("fused", "lanes"):
        for one, other in zip(make_engine(engine).weights_after(runs, 40), theirs, strict=True):
            for name in ("W_Q", "W_K", "tau"):
                size = np.abs(other[name]).max()
                np.testing.assert_allclose(one[name], other[name], atol=1e-4 * size)


def test_training_keeps_and_betters_what_it_does_not_find_by_itself() -> None:
    engine = make_engine("fused")
    alone = engine.train(runs_of(3, 4, training={"max_steps": 4_000}))
    kept = engine.train(constructed(3, 4, max_steps=4_000))
    made = ConstructionEngine().train(runs_of(3, 4, "ours"))
    for random, own, ours in zip(alone, kept, made, strict=True):
        assert random.score < 0.9 < own.score
        assert own.score >= ours.val_score
    assert kept[0].score > made[0].val_score + 0.02


@pytest.mark.parametrize("model", ["softmax", "value", "transformer", "ours"])
def test_a_model_without_such_weights_refuses_it(model: str) -> None:
    written = {"construction": "ours"} if model == "ours" else model
    keys = {"name": "s", "model": written, "cells": [{"m": 64, "d_model": 16}]}
    with pytest.raises(StudyError, match=r"training\.start: model .* does not use it") as told:
        parse_study({**keys, "training": {"start": "constructed"}})
    assert "\n" not in str(told.value)


def test_a_start_of_random_weights_keeps_its_address() -> None:
    (random, _), (written, _) = runs_of(2, 5), runs_of(2, 5, training={"start": "random"})
    assert random.run_id == written.run_id
    assert random.run_id != constructed(2, 5)[0].run_id
