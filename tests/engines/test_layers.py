"""Layers of files: those that people have are measured, or refused in a line that says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.engines.check_layers import check_layers
from rgr_dist.engines.choose import make_engine
from rgr_dist.engines.reference import AutogradLane, ReferenceEngine
from rgr_dist.engines.tasks import Edges
from rgr_dist.faults import UserError
from rgr_dist.study.layer_file import zoo
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study

LAYERS = Path(__file__).parent / "layers"
LAYER = """
from dataclasses import dataclass
import torch

@dataclass(frozen=True)
class Mine:
    d_model: int
    h: int
    d_k: int
    bias: float = 0.5

    def parameters(self):
        shape = (self.d_model, self.h * self.d_k)
        return {"A": (shape, 0.3), "B": (shape, 0.3), "c": ((), 0.1)}

    def scores(self, X, p):
        return (X @ p["A"]) @ (X @ p["B"]).transpose(-1, -2) + p["c"] + self.bias
"""
QUICK = {"max_steps": 40, "check_every": 20, "validation_contexts": 10, "test_contexts": 10}


def study_of(model: Any, d_model: int = 12, length: int = 7, **keys: Any) -> Study:
    document = {"name": "x", "model": model, "cells": [{"m": 20, "d_model": d_model}]}
    more = {"context": {"length": length}, "training": QUICK, "search": {"heads": [1, 2, 4]}}
    return parse_study({**document, **more, **keys})


def file_of(folder: Path, text: str) -> str:
    (folder / "mine.py").write_text(text)
    return str(folder / "mine.py")


def run_of(study: Study, h: int = 2, d_k: int = 4, seed: int = 3) -> Run:
    return Run(cell=study.cells[0], h=h, d_k=d_k, seed=seed)


def refusal(study: Study) -> str:
    with pytest.raises(UserError) as caught:
        check_layers(study)
    told = str(caught.value)
    assert "\n" not in told
    return told


BAD = {
    "wrong shape": ("transpose(-1, -2) +", "transpose(-1, -2)[..., :1] +"),
    "not a number": ('+ p["c"]', '+ p["c"] / 0 * 0'),
    "detached": ("return (X @", "p = {n: v.detach() for n, v in p.items()}\n        return (X @"),
    "randomness": ('+ p["c"]', '+ p["c"] * torch.rand(())'),
    "a random file": (
        "(self, X, p):\n        return ",
        "(self, X, p, R=torch.rand(())):\n        return R * p['c'] + ",
    ),
    "a flat loss": (
        "    def scores",
        "    def loss(self, s, edges, tau):\n        return 0 * s.sum()\n\n    def scores",
    ),
    "an exit": ("return {", "raise SystemExit\n        return {"),
    "no message": (
        "return {",
        "raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})\n        return {",
    ),
    "no batches": ("transpose(-1, -2) +", "transpose(0, 1) +"),
    "beside others": ('(X @ p["A"]) @', '((X - X.mean()) @ p["A"]) @'),
    "no scale": ('"c": ((), 0.1)', '"c": ()'),
    "tau": ('"c": ((), 0.1)', '"c": ((), 0.1), "tau": ((), 0.1)'),
    "a python number": ("return (X @", "return 1 or (X @"),
}


@pytest.mark.parametrize(("old", "new"), BAD.values(), ids=BAD)
def test_a_layer_that_cannot_be_trained_is_told_in_one_line(
    tmp_path: Path, old: str, new: str
) -> None:
    assert LAYER.count(old) == 1
    told = refusal(study_of(file_of(tmp_path, LAYER.replace(old, new))))
    assert told.startswith("model mine(bias=0.5) at d_model = 12, h = 1, d_k = 1: ")


def test_a_layer_is_tried_at_all_heads_and_at_its_widest(tmp_path: Path) -> None:
    for wrong in ("self.d_model == 8", "self.d_k <= 4", "self.h < 4"):
        text = LAYER.replace("        return (X", f"        assert {wrong}\n        return (X")
        cells = [{"m": 20, "d_model": [8, 12]}]
        assert "AssertionError" in refusal(study_of(file_of(tmp_path, text), cells=cells))


def test_each_layer_of_a_study_is_tried(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        LAYER.replace("return {", "raise SystemExit\n        return {")
    )
    for bad in (0, 1):
        models = [str(tmp_path / "bad.py")] * 2
        models[1 - bad] = file_of(tmp_path, LAYER)
        assert "SystemExit" in refusal(study_of(models))


@pytest.mark.parametrize("name", zoo())
def test_every_layer_of_the_zoo_is_accepted_and_short(name: str) -> None:
    check_layers(study_of({"zoo": name}))
    text = Path(f"rgr_dist/models/zoo/{name}.py").read_text()
    assert len(text.splitlines()) <= 45
    assert "arXiv:" in text


@pytest.mark.parametrize("name", ["max", "softmax"])
def test_the_papers_layers_have_one_address(name: str) -> None:
    of_zoo, plain = study_of({"zoo": name}), study_of(name)
    assert of_zoo.cells[0].cell_id == plain.cells[0].cell_id


MEASURED = ["jit", "scaled_in_place", "keeps_its_map", "kv_cache", "rope_complex"]


@pytest.mark.filterwarnings("ignore:.torch.jit")
@pytest.mark.parametrize("name", MEASURED)
def test_ordinary_modules_are_measured(name: str) -> None:
    study = study_of(str(LAYERS / f"{name}.py"), d_model=8)
    check_layers(study)
    (outcome,) = make_engine("auto", model="file").train([run_of(study)])
    (again,) = ReferenceEngine().train([run_of(study)])
    assert outcome.score is not None
    assert (outcome.score, outcome.tau) == (again.score, again.tau)
    lane = ReferenceEngine().lane(run_of(study))
    before = lane.weights()
    lane.advance(5)
    moved = {name for name, p in lane.weights().items() if not np.array_equal(p, before[name])}
    assert moved == before.keys()


def test_a_complex_buffer_keeps_its_imaginary_part() -> None:
    run = run_of(study_of(str(LAYERS / "rope_complex.py")))
    for dtype in (torch.float32, torch.float64):
        task = AutogradLane(run, torch.device("cpu"), dtype).task
        assert isinstance(task, Edges)
        (buffer,) = task.layer.module.buffers()
        assert buffer.is_complex()
        assert (buffer.imag != 0).any()


def test_even_widths_are_refused_by_a_search_and_taken_by_a_grid_of_them() -> None:
    file = str(LAYERS / "even_widths.py")
    assert "d_k = 2 works" in refusal(study_of(file))
    check_layers(study_of(file, search={"mode": "grid", "heads": [1, 2], "D_K": [4, 8]}))


def test_an_output_is_never_taken_for_scores() -> None:
    file = str(LAYERS / "returns_output.py")
    for d_model, length in ((16, 16), (16, 7), (32, 16)):
        told = refusal(study_of(file, d_model=d_model, length=length))
        assert "output" in told
    assert "tuple" in refusal(study_of(str(LAYERS / "tuple.py")))


def test_each_seed_has_a_module_of_its_own_and_dropout_is_off() -> None:
    study = study_of(str(LAYERS / "keeps_its_map.py"))
    own = [ReferenceEngine().lane(run_of(study, seed=seed)) for seed in (0, 1, 0)]
    first, other, again = (lane.weights() for lane in own)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["q.weight"], other["q.weight"])
    states = torch.random.get_rng_state()
    ReferenceEngine().lane(run_of(study))
    assert torch.equal(states, torch.random.get_rng_state())
