"""Layers of files: the lanes against the plain loop, and against the paper's models' engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rgr_dist.engines.fused.engine import FusedEngine
from rgr_dist.engines.lanes.engine import LanesEngine
from rgr_dist.engines.lanes.own_layer import OwnLanes
from rgr_dist.engines.lanes.own_program import (
    Contexts,
    State,
    Step,
    compiled_program,
    has_compiler,
)
from rgr_dist.engines.reference.engine import ReferenceEngine
from rgr_dist.models.own_layer import make_layer, paid
from rgr_dist.study.layer_file import zoo
from rgr_dist.study.run import Run
from tests.engines.own_layers import (
    CPU,
    LAYER,
    OWN_LOSS,
    PLAIN,
    assert_alike,
    file_of,
    runs_of,
    study_of,
)


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


@pytest.mark.parametrize(
    ("named", "is_there"), [(None, True), ("c++-of-mine", True), ("g", False), ("", False)]
)
def test_the_compiler_is_the_one_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str | None, is_there: bool
) -> None:
    for name in ("g++", "c++-of-mine"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", named) if named is not None else monkeypatch.delenv("CXX", False)
    has_compiler.cache_clear()
    assert has_compiler() == is_there
    has_compiler.cache_clear()


@pytest.mark.parametrize(
    ("most", "is_told", "compiled", "lanes"),
    [(99, False, True, None), (10, False, True, 10), (10, True, True, 10), (0, True, False, None)],
    ids=["any number", "ten", "ten or an error", "none"],
)
def test_a_program_is_given_as_many_lanes_as_it_takes(
    monkeypatch: pytest.MonkeyPatch, most: int, is_told: bool, compiled: bool, lanes: int | None
) -> None:
    """A stand-in for torch.compile, whose program steps the first lanes alone, or none if told."""

    def program_of(step: Step, **_: Any) -> Step:
        def program(state: State, contexts: Contexts, factors: Tensor) -> None:
            if is_told and len(state[0]["tau"]) > most:
                raise RuntimeError("too many")
            theta, *moments = ({name: p[:most] for name, p in part.items()} for part in state)
            contexts = contexts._replace(rows_BLl=contexts.rows_BLl[:, :most])
            step((theta, moments[0], moments[1]), contexts, factors)

        return program

    monkeypatch.setattr(torch, "compile", program_of)
    compiled_program.cache_clear()
    engine = LanesEngine(dtype=torch.float64, compiled=True)
    runs = runs_of(study_of({"zoo": "softmax"}), 2, 3, tuple(range(12)))
    program = OwnLanes(runs, CPU, torch.float64, compiled=True).program
    assert (program.compiled, program.lanes) == (compiled, lanes)
    assert_alike(engine, PLAIN, runs, 20)
    assert engine.name == ("lanes" if compiled else "lanes, uncompiled")
    compiled_program.cache_clear()


@pytest.mark.parametrize("other", [{"h": 4}, {"d_k": 3}])
def test_runs_that_do_not_fit_in_one_program_are_refused(other: dict[str, int]) -> None:
    run, *_ = runs_of(study_of({"zoo": "max"}), 2, 2)
    with pytest.raises(ValueError, match=r"^lanes of one program must share the cell, h and d_k$"):
        PLAIN.train([run, run.model_copy(update=other)])


BY_ELEMENT = """torch.nn.functional.layer_norm(
            (X.sum(-1, True) * p["A"].sum() + (X.sum(-1) * p["B"].sum())[..., None, :]).sin(),
            X.shape[-2:-1],
        ) +"""


@pytest.mark.slow  # the compiler takes 15 s
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
