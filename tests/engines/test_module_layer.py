"""Modules of torch as layers: what is trained, what is drawn, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from rgr_dist.engines.check_layers import LayerError, check_layers
from rgr_dist.engines.lanes.own_layer import OwnLanes
from rgr_dist.engines.layer_start import start_of
from rgr_dist.engines.reference.engine import ReferenceEngine
from rgr_dist.models.module_layer import ModuleLayer
from rgr_dist.models.own_layer import make_layer, paid
from tests.docs.pages import ROOT, blocks
from tests.engines.own_layers import (
    CPU,
    PLAIN,
    assert_alike,
    file_of,
    runs_of,
    study_of,
)

(MODULE,) = (
    block.text
    for block in blocks(ROOT / "docs/own-layer.md", "python")
    if "(nn.Module)" in block.text
)


@pytest.mark.parametrize("length", [7, 16])
def test_a_module_of_torch_trains_as_the_reference_does_and_is_not_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    study = study_of({"file": file_of(tmp_path, MODULE), "bias": False}, length=length)
    check_layers(study)
    runs = runs_of(study, 4, 3)
    assert_alike(PLAIN, ReferenceEngine(torch.float64), runs)
    assert study.cells[0].model_name == "torch_attention(bias=False)"
    monkeypatch.setattr(torch, "compile", lambda step, **_: step)
    assert not OwnLanes(runs, CPU, torch.float64, compiled=True).program.compiled


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
        return (Q[..., self.order % 8] * weights) @ K.transpose(-1, -2)
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
            "torch.randperm(8))\n",
            "torch.randperm(8) + 2**30)\n",
            "order is random, and",
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


@pytest.mark.parametrize(
    "more",
    [
        'self.register_buffer("constant", torch.full((3,), torch.nan))',
        'self.register_buffer("unread", torch.rand(4))',
    ],
    ids=["no number", "unread"],
)
def test_what_changes_no_score_is_not_drawn(tmp_path: Path, more: str) -> None:
    text = RANDOM.replace("        self.mix =", f"        {more}\n        self.mix =")
    study = study_of(file_of(tmp_path, text))
    check_layers(study)
    layer = make_layer(study.cells[0], 2, 3)
    assert isinstance(layer, ModuleLayer)
    assert [*layer.drawn] == ["mix", "omega", "order", "mask"]


def test_a_parameter_that_gets_no_gradient_is_drawn_if_scores_depend_on_it(tmp_path: Path) -> None:
    text = RANDOM.replace("weights = (", "weights = self.mix.argsort() * (")
    text = text.replace("), requires_grad=False", ")").replace(" * self.mix\n", "\n")
    study = study_of(file_of(tmp_path, text))
    check_layers(study)
    layer = make_layer(study.cells[0], 2, 3)
    assert isinstance(layer, ModuleLayer)
    assert "mix" in layer.drawn
    assert "mix" not in layer.names


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
