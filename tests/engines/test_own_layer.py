"""Layers of files: the lanes against the plain loop, and against the paper's models' engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.engines.api import Engine
from rgr_dist.engines.check_layers import LayerError, check_layers
from rgr_dist.engines.fused.engine import FusedEngine
from rgr_dist.engines.lanes.engine import LanesEngine
from rgr_dist.engines.lanes.own_layer import OwnLanes
from rgr_dist.engines.lanes.own_program import has_compiler
from rgr_dist.engines.layer_start import start_of
from rgr_dist.engines.reference.engine import ReferenceEngine
from rgr_dist.models.module_layer import ModuleLayer
from rgr_dist.models.own_layer import make_layer, paid
from rgr_dist.study.cell import Run
from rgr_dist.study.errors import StudyError
from rgr_dist.study.from_yaml import parse_study
from rgr_dist.study.layer_file import zoo
from rgr_dist.study.study import Study
from tests.docs.pages import ROOT, blocks

CPU = torch.device("cpu")
PLAIN = LanesEngine(dtype=torch.float64, compiled=False)
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
OWN_LOSS = """
    def loss(self, scores, edges, tau):
        return ((scores - tau - edges) ** 2).mean()
"""


def study_of(model: Any, m: int = 20, d_model: int = 12, length: int = 7, **keys: Any) -> Study:
    cells = [{"m": m, "d_model": d_model}]
    search = {"heads": [1, 2, 4]}
    context = {"length": length}
    document = {"name": "x", "model": model, "cells": cells, "context": context, "search": search}
    return parse_study({**document, **keys})


def runs_of(study: Study, h: int, d_k: int, seeds: tuple[int, ...] = (0, 3, 7)) -> list[Run]:
    return [Run(cell=study.cells[0], h=h, d_k=d_k, seed=seed) for seed in seeds]


def file_of(folder: Path, text: str, name: str = "mine.py") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def assert_alike(engine: Engine, other: Engine, runs: list[Run], steps: int = 30) -> None:
    pairs = zip(engine.weights_after(runs, steps), other.weights_after(runs, steps), strict=True)
    for one, expected in pairs:
        assert one.keys() == expected.keys()
        for name in one:
            largest = np.abs(expected[name]).max()
            assert np.abs(one[name] - expected[name]).max() <= 1e-10 * largest + 1e-15, name


@pytest.mark.parametrize("name", zoo())
def test_lanes_of_distinct_seeds_equal_solo_runs_of_the_reference(name: str) -> None:
    study = study_of({"zoo": name}, graph={"family": "regular", "degree": 2})
    runs = runs_of(study, 4, 3)
    assert_alike(PLAIN, ReferenceEngine(torch.float64), runs)
    assert len(make_layer(study.cells[0], 4, 3).__doc__ or "") > 10


@pytest.mark.parametrize("loss", ["", OWN_LOSS])
def test_a_file_of_ones_own_trains_as_the_reference_does(tmp_path: Path, loss: str) -> None:
    path = file_of(tmp_path, LAYER + loss)
    runs = runs_of(study_of({"file": path, "bias": 0.25}), 2, 1)
    assert_alike(PLAIN, ReferenceEngine(torch.float64), runs)
    assert paid(make_layer(runs[0].cell, 2, 1)) == (2 * 12 * 2 + 1, None)
    assert [value.shape for value in PLAIN.weights_after(runs, 0)[0].values()] == [
        (12, 2), (12, 2), (), ()
    ]  # fmt: skip


def test_a_loss_of_its_own_is_what_is_trained(tmp_path: Path) -> None:
    (own,), (papers,) = (
        PLAIN.weights_after(runs_of(study_of(file_of(tmp_path, text)), 2, 2, (1,)), 5)
        for text in (LAYER + OWN_LOSS, LAYER)
    )
    assert not np.allclose(own["A"], papers["A"])


@pytest.mark.parametrize("model", ["max", "softmax"])
@pytest.mark.parametrize("graph", [{}, {"family": "regular", "degree": 3}])
def test_the_papers_models_as_files_train_as_their_own_engines(
    model: str, graph: dict[str, Any]
) -> None:
    sizes: dict[str, Any] = {"m": 64, "d_model": 16, "length": 16, "graph": graph}
    own = runs_of(study_of({"zoo": model}, **sizes), 4, 5)
    theirs = runs_of(study_of(model, **sizes), 4, 5)
    general = PLAIN.weights_after(own, 100)
    for exact, fused, one in zip(
        ReferenceEngine(torch.float64).weights_after(theirs, 100),
        FusedEngine().weights_after(theirs, 100),
        general,
        strict=True,
    ):
        for name in ("W_Q", "W_K", "tau"):
            np.testing.assert_allclose(one[name], exact[name], rtol=0, atol=1e-10)
            if not graph:  # heads tie of the other, and float32 parts from float64
                np.testing.assert_allclose(one[name], fused[name], rtol=0, atol=1e-4)


@pytest.mark.parametrize("length", [7, 16])
def test_a_lane_does_not_depend_on_its_neighbours(length: int) -> None:
    runs = runs_of(study_of({"zoo": "softmax"}, length=length), 2, 3, (0, 1, 2, 3, 4))

    def lane_4(lanes: OwnLanes, at: int) -> dict[str, Any]:
        lanes.advance(25)
        return lanes.weights(at)

    def lanes_of(chosen: list[Run]) -> OwnLanes:
        return OwnLanes(chosen, CPU, torch.float32, compiled=False)

    expected = lane_4(lanes_of(runs), 4)
    perturbed = lanes_of(runs)
    for value in perturbed.theta.values():
        value[:4] *= -1.5
    kept = lanes_of(runs)
    kept.keep([1, 4])
    for lanes, at in ((perturbed, 4), (kept, 1), (lanes_of(runs[4:]), 0)):
        for name, value in lane_4(lanes, at).items():
            np.testing.assert_array_equal(value, expected[name], name)


GATED = """
from dataclasses import dataclass
import torch

@dataclass(frozen=True)
class Gated:
    d_model: int
    h: int
    d_k: int

    def parameters(self):
        shape = (self.d_model, self.h * self.d_k)
        return {"A": (shape, 0.3), "B": (shape, 0.3), "gate": ((self.h,), 1.0)}

    def scores(self, X, p):
        Q, K = ((X @ p[W]).unflatten(-1, (self.h, -1)).transpose(-2, -3) for W in "AB")
        gate = torch.sigmoid(p["gate"]) * torch.nn.functional.softplus(p["gate"])
        return ((Q @ K.transpose(-1, -2)).softmax(-1) * gate[:, None, None]).sum(-3)
"""


@pytest.mark.parametrize("h", [3, 5])
def test_a_lane_with_a_number_for_each_head_does_not_depend_on_its_place(
    tmp_path: Path, h: int
) -> None:
    """Sixteen lanes of h numbers, one after another, end in the middle of a register of torch's."""
    study = study_of(file_of(tmp_path, GATED), length=16)
    engine, runs = LanesEngine(compiled=False), runs_of(study, h, 2, tuple(range(16)))
    together = engine.weights_after(runs, 40)
    for lanes in ([0], [3], [15], [9, 1], [2, 14, 11]):
        some = engine.weights_after([runs[lane] for lane in lanes], 40)
        for lane, weights in zip(lanes, some, strict=True):
            for name, value in weights.items():
                np.testing.assert_array_equal(value, together[lane][name], name)


ENDINGS = {"max_steps": 400, "learning_rate": 0.01, "check_every": 50, "patience": 2} | {
    "validation_contexts": 40,
    "test_contexts": 80,
}


@pytest.mark.parametrize("zoo_name", ["max", "grouped"])
def test_runs_end_as_those_of_the_reference(zoo_name: str) -> None:
    study = study_of({"zoo": zoo_name}, m=16, d_model=16, training=ENDINGS)
    runs = runs_of(study, 2, 6, (0, 1, 3))
    together = LanesEngine(compiled=False).train(runs)
    for run, solo in zip(together, ReferenceEngine().train(runs), strict=True):
        assert (run.stop_reason, run.steps) == (solo.stop_reason, solo.steps)
        assert run.score == pytest.approx(solo.score, abs=0.01)
        assert (run.parameters, run.cached) == (solo.parameters, solo.cached)
    assert together[0].cached == {"max": 12, "grouped": 12}[zoo_name]


def test_products_of_a_lane_do_not_depend_on_its_place() -> None:
    """MKL's do, of few rows, unless told before its first: ``rgr_dist.engines.lanes`` does."""
    draw = torch.Generator().manual_seed(0)
    for rows, inner, columns in ((5, 20, 5), (7, 12, 3), (9, 20, 9), (13, 3, 13)):
        one = torch.randn(rows, inner, generator=draw).repeat(5, 1, 1)
        other = torch.randn(inner, columns, generator=draw).repeat(5, 1, 1)
        products = one @ other
        assert (products == products[0]).all()


CONSTANT = {"cosine", "linear"}
"""At a d_k of 1 some of their weights have no gradient, and AdamW follows its rounding."""


@pytest.mark.slow  # each compiles four programs: a minute of a core
@pytest.mark.parametrize("name", zoo())
def test_compiled_lanes_are_the_plain_ones(name: str) -> None:
    for length, d_model, h, d_k in ((16, 12, 4, 3), (7, 13, 1, 3), (11, 12, 2, 3), (16, 12, 2, 1)):
        study = study_of({"zoo": name}, m=40, length=length, d_model=d_model)
        runs = runs_of(study, h, d_k, (0, 3, 7, 8, 9))
        together = LanesEngine(compiled=True).weights_after(runs, 40)
        plain = PLAIN.weights_after(runs, 40) if d_k > 1 or name not in CONSTANT else together
        for one, expected in zip(together, plain, strict=True):
            for key in one:
                np.testing.assert_allclose(one[key], expected[key], rtol=0, atol=1e-4)
        for lane in (1, 3, 4):  # each at place 0, and at its own
            (alone,) = LanesEngine(compiled=True).weights_after(runs[lane : lane + 1], 40)
            for key, value in alone.items():
                np.testing.assert_array_equal(value, together[lane][key], key)


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no C++ compiler")


@needs_compiler
def test_rows_say_that_a_layer_could_not_be_compiled(tmp_path: Path) -> None:
    code = "    def scores"
    text = LAYER.replace(code, f"    @torch.compiler.disable\n{code}")
    runs = runs_of(study_of(file_of(tmp_path, text)), 2, 2)
    engine = LanesEngine(dtype=torch.float64, compiled=True)
    assert_alike(engine, PLAIN, runs, 5)
    assert engine.name == "lanes, uncompiled"


BY_ELEMENT = """torch.nn.functional.layer_norm(
            (X.sum(-1, True) * p["A"].sum() + (X.sum(-1) * p["B"].sum())[..., None, :]).sin(),
            X.shape[-2:-1],
        ) +"""


@needs_compiler
@pytest.mark.parametrize(
    ("code", "instead"),
    [
        ('X @ p["B"]', 'torch.cat([X @ p["B"]], -1)'),
        (
            '(X @ p["A"]) @ (X @ p["B"]).transpose(-1, -2) +',
            BY_ELEMENT,
        ),  # no product compares sizes
    ],
)
def test_where_torch_fixes_the_number_of_lanes_ten_are_compiled(
    tmp_path: Path, code: str, instead: str
) -> None:
    text = LAYER.replace(code, instead)
    assert text != LAYER
    runs = runs_of(study_of(file_of(tmp_path, text)), 2, 2, tuple(range(12)))
    lanes = OwnLanes(runs, CPU, torch.float64, compiled=True)
    assert (lanes.program.compiled, lanes.program.lanes, len(lanes.parts)) == (True, 10, 2)
    engine = LanesEngine(dtype=torch.float64, compiled=True)
    assert_alike(engine, PLAIN, runs, 20)
    lanes.advance(10)
    lanes.keep([3, 11])
    lanes.advance(10)
    for place, run in enumerate((runs[3], runs[11])):
        (alone,) = engine.weights_after([run], 20)
        for name, value in lanes.weights(place).items():
            np.testing.assert_array_equal(value, alone[name], name)


MODULE, BERT = (
    block.text
    for block in blocks("python", ROOT / "docs/own-layer.md")
    if "(nn.Module)" in block.text
)


@pytest.mark.parametrize("length", [7, 16])
def test_a_module_of_torch_trains_as_the_reference_does(tmp_path: Path, length: int) -> None:
    study = study_of({"file": file_of(tmp_path, MODULE), "bias": False}, length=length)
    check_layers(study)
    runs = runs_of(study, 4, 3)
    assert_alike(PLAIN, ReferenceEngine(torch.float64), runs)
    assert study.cells[0].model_name == "torch_attention(bias=False)"


def test_a_frozen_parameter_of_a_module_is_none_of_the_layers(tmp_path: Path) -> None:
    class Frozen(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.free, self.table = torch.nn.Linear(4, 4), torch.nn.Embedding(9, 4)
            self.table.requires_grad_(False)

        def forward(self, X: torch.Tensor) -> torch.Tensor:
            X = X + self.table.weight[: X.shape[-2]]
            return self.free(X) @ X.transpose(-1, -2)

    assert ModuleLayer(Frozen, 4, 3).names == ["free.weight", "free.bias"]


RANDOM = """
import torch
from torch import nn

class Features(nn.Module):
    def __init__(self, d_model: int, h: int, d_k: int) -> None:
        super().__init__()
        self.q, self.k = (nn.Linear(d_model, h * d_k, bias=False) for _ in "qk")
        self.register_buffer("omega", torch.randn(h * d_k, 8))
        self.register_buffer("order", torch.randperm(8))
        self.register_buffer("position", torch.arange(8) / 8)
        self.mix = nn.Parameter(torch.randn(8), requires_grad=False)
        mask = torch.zeros(8).masked_fill(torch.randperm(8) < 2, -torch.inf)
        self.register_buffer("mask", mask)

    def forward(self, X):
        Q, K = (torch.tanh(W(X) @ self.omega) for W in (self.q, self.k))
        weights = (self.mask + self.position).softmax(-1) * self.mix
        return (Q[..., self.order] * weights) @ K.transpose(-1, -2)
"""


@pytest.mark.parametrize("length", [7, 16])
def test_what_is_random_in_a_module_is_drawn_for_each_seed(tmp_path: Path, length: int) -> None:
    study = study_of(file_of(tmp_path, RANDOM), length=length, training={"initial_scale": 2.0})
    check_layers(study)
    runs, layer = runs_of(study, 2, 3), make_layer(study.cells[0], 2, 3)
    assert isinstance(layer, ModuleLayer)
    assert paid(layer) == (2 * 12 * 2 * 3, None)
    trained, drawn = {"q.weight", "k.weight", "tau"}, {"omega", "order", "mix", "mask"}
    starts, ends = (PLAIN.weights_after(runs, steps) for steps in (0, 20))
    for start, end in zip(starts, ends, strict=True):
        assert start.keys() == trained | drawn
        for name in drawn:
            np.testing.assert_array_equal(start[name], end[name], name)
        assert not np.array_equal(start["q.weight"], end["q.weight"])
        assert np.isneginf(start["mask"]).sum() == 2, "which initial_scale does not change"
        assert sorted(start["order"]) == [*range(8)]
    for name in ("omega", "mix"):
        assert len({start[name].tobytes() for start in starts}) == len(runs)
    X = torch.randn(2, length, 12, dtype=torch.float64)
    for run, start in zip(runs, starts, strict=True):
        own = layer.make().double()
        own.load_state_dict(
            {name: torch.from_numpy(start[name]) for name in start if name != "tau"}, strict=False
        )
        p = {name: torch.from_numpy(value) for name, value in start_of(layer, run).items()}
        assert torch.equal(layer.scores(X, p), own(X))
    for one, expected in zip(
        ends, ReferenceEngine(torch.float64).weights_after(runs, 20), strict=True
    ):
        for name in trained:
            np.testing.assert_allclose(one[name], expected[name], rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'self.register_buffer("omega", torch.randn(h * d_k, 8))',
            "self.omega = torch.randn(h * d_k, 8)",
            "not trained: keep",
        ),
        (
            '"order", torch.',
            '"large", torch.randperm(8) + 2**30); self.register_buffer("order", torch.',
            "large is random, and",
        ),
        (
            '"omega", torch.randn(h * d_k, 8)',
            '"omega", torch.tensor(__import__("numpy").random.randn(h * d_k, 8)).float()',
            "differ when the file is run again",
        ),
        ("omega", "tau", "parameter 'tau': not a name of its own"),
    ],
    ids=["a plain tensor", "large numbers", "numpy's", "tau"],
)
def test_random_numbers_that_no_seed_draws_are_refused(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    study = study_of(file_of(tmp_path, RANDOM.replace(old, new)))
    with pytest.raises(LayerError, match=said):
        check_layers(study)


TOP_K = """
import torch
from torch import nn

class TopK(nn.Module):
    def __init__(self, d_model: int, h: int, d_k: int, k: int = 4) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(d_model, h * d_k), k

    def forward(self, X):
        S = self.q(X) @ self.q(X).transpose(-1, -2)
        least = S.topk(self.k, -1).values[..., -1:]
        return S.masked_fill(S < least, -9.0)
"""


def test_a_module_is_tried_at_the_length_of_its_contexts(tmp_path: Path) -> None:
    path = file_of(tmp_path, TOP_K)
    check_layers(study_of(path, length=4))
    with pytest.raises(LayerError, match="selected index k out of range"):
        check_layers(study_of(path, length=3))


def test_a_module_starts_as_its_own_initialisation_has_it(tmp_path: Path) -> None:
    """Torch's: uniform up to the root of 1 / d_model, and of 6 / (3 D_K + D_K)."""
    runs = runs_of(study_of(file_of(tmp_path, MODULE)), 4, 3)
    starts = PLAIN.weights_after(runs, 0)
    assert starts[0].keys() == {
        "embed.weight", "attention.in_proj_weight", "attention.in_proj_bias", "tau"
    }  # fmt: skip
    for start in starts:
        assert 0.9 < np.abs(start["embed.weight"]).max() * 12**0.5 <= 1
        assert 0.9 < np.abs(start["attention.in_proj_weight"]).max() / (6 / (36 + 12)) ** 0.5 <= 1
        assert not start["attention.in_proj_bias"].any()
    assert not np.array_equal(starts[0]["embed.weight"], starts[1]["embed.weight"])
    again = PLAIN.weights_after(runs[1:], 0)
    np.testing.assert_array_equal(again[0]["embed.weight"], starts[1]["embed.weight"])


@pytest.mark.slow  # of the extra clients
def test_an_attention_of_a_model_zoo_is_measured_as_it_is(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    study = study_of(file_of(tmp_path, BERT))
    check_layers(study)
    assert_alike(PLAIN, ReferenceEngine(torch.float64), runs_of(study, 4, 3))


BAD = {
    "wrong shape": ("transpose(-1, -2) +", "transpose(-1, -2)[..., :1] +", "scores have shape"),
    "not a number": ('+ p["c"]', '+ p["c"] / 0 * 0', "not finite"),
    "no gradient": ('+ p["c"]', "", "parameter c gets no gradient"),
    "detached": ('(X @ p["A"])', '(X @ p["A"]).detach()', "parameter A gets no gradient"),
    "randomness": ('+ p["c"]', '+ p["c"] * torch.rand(())', "differ from call to call"),
    "a random file": (
        "(self, X, p):\n        return ",
        "(self, X, p, R=torch.rand(())):\n        return R + ",
        "scores differ when the file is run again",
    ),
    "a random loss": (
        "    def scores",
        "    def loss(self, scores, edges, tau):\n        return torch.rand(())\n\n    def scores",
        "the loss differs from call to call",
    ),
    "a random file's loss": (
        "    def scores",
        "    def loss(self, s, edges, tau, R=torch.rand(())):\n        return R\n\n    def scores",
        "the loss differs when the file is run again",
    ),
    "an exit": ("return {", "raise SystemExit\n        return {", "SystemExit"),
    "in place": ('return (X @ p["A"])', 'return (X.mul_(2) @ p["A"])', "change the embeddings"),
    "no batches": ("transpose(-1, -2) +", "transpose(0, 1) +", "RuntimeError"),
    "beside others": ('(X @ p["A"]) @', '((X - X.mean()) @ p["A"]) @', "depend on those beside"),
    "raises": ("return {", "raise RuntimeError('not\\n today')\n        return {", "not today"),
    "no scale": ('"c": ((), 0.1)', '"c": ()', "parameter c: not of the form"),
    "tau": ('"c": ((), 0.1)', '"c": ((), 0.1), "tau": ((), 0.1)', "taken: tau"),
    "embedding": ('"c": ((), 0.1)', '"c": ((), 0.1), "graph": ((), 0.1)', "parameter 'graph': not"),
    "no dict": (
        'return {"A": (shape, 0.3), "B": (shape, 0.3), "c": ((), 0.1)}',
        "return 3",
        "dict",
    ),
    "a python number": ("return (X @", "return 1 or (X @", "of type int"),
    "double": ("+ self.bias", "+ torch.ones(1, dtype=torch.float64)", "torch.float64"),
    "does not run": ("import torch\n", "import torch\n1 / 0\n", "division by zero"),
    "control flow": (
        "return (X @",
        "if p['c'] > 0:\n            pass\n        return (X @",
        "vmap",
    ),
}


@pytest.mark.parametrize(("old", "new", "said"), BAD.values(), ids=BAD.keys())
def test_a_layer_that_cannot_be_trained_is_told_in_one_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert LAYER.count(old) == 1
    study = study_of(file_of(tmp_path, LAYER.replace(old, new)))
    with pytest.raises(LayerError) as caught:
        check_layers(study)
    assert said in str(caught.value)
    assert str(caught.value).startswith("model mine(bias=0.5) at d_model = 12, h = 1, d_k = 1: ")
    assert "\n" not in str(caught.value)


def test_a_layer_is_tried_at_every_d_model_and_at_wide_heads(tmp_path: Path) -> None:
    for name, wrong in (("one", "self.d_model == 8"), ("narrow", "self.d_k <= 4")):
        text = LAYER.replace("        return (X", f"        assert {wrong}\n        return (X")
        study = study_of(
            file_of(tmp_path, text, f"{name}.py"), cells=[{"m": 20, "d_model": [8, 12]}]
        )
        with pytest.raises(LayerError, match="AssertionError"):
            check_layers(study)


def test_a_layer_derived_from_another_is_one_too_many(tmp_path: Path) -> None:
    better = "\nclass Better(Mine):\n    def scores(self, X, p):\n        return X @ X.mT\n"
    with pytest.raises(StudyError, match="several classes are layers: Mine, Better"):
        study_of(file_of(tmp_path, LAYER + better))


@pytest.mark.parametrize("name", zoo())
def test_every_layer_of_the_zoo_is_accepted_and_short(name: str) -> None:
    study = study_of({"zoo": name})
    check_layers(study)
    (file,) = study.files.values()
    assert file == {"zoo": name}
    text = Path(f"rgr_dist/models/zoo/{name}.py").read_text()
    assert len(text.splitlines()) <= 40
    assert "arXiv:" in text
