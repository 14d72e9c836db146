"""Layers that cannot be trained are told in one line; those of the zoo are accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgr_dist.engines.check_layers import LayerError, check_layers
from rgr_dist.study.errors import StudyError
from rgr_dist.study.layer_file import zoo
from tests.engines.own_layers import (
    LAYER,
    file_of,
    study_of,
)

BAD = {
    "wrong shape": (
        "transpose(-1, -2) +",
        "transpose(-1, -2)[..., :1] +",
        "scores have shape (3, 7, 1)",
    ),
    "not a number": ('+ p["c"]', '+ p["c"] / 0 * 0', "scores are not finite"),
    "no gradient": ('+ p["c"]', "", "parameter c gets no gradient"),
    "detached": ('(X @ p["A"])', '(X @ p["A"]).detach()', "parameter A gets no gradient"),
    "randomness": ('+ p["c"]', '+ p["c"] * torch.rand(())', "scores differ from call to call"),
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
    "a flat loss": (
        "    def scores",
        "    def loss(self, s, edges, tau):\n        return 0 * s.sum()\n\n    def scores",
        "every gradient is zero at the first weights",
    ),
    "an exit": ("return {", "raise SystemExit\n        return {", "SystemExit"),
    "no exception": (
        "return {",
        "raise BaseException('no')\n        return {",
        "BaseException: no",
    ),
    "no message": (
        "return {",
        "raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})\n        return {",
        "Mute: an error without a message",
    ),
    "more than int64": (
        "    def scores",
        "    def cached(self):\n        return 2**63\n\n    def scores",
        "cached() is 9223372036854775808, not how many numbers each token has",
    ),
    "in place": (
        'return (X @ p["A"])',
        'return (X.mul_(2) @ p["A"])',
        "scores change the embeddings",
    ),
    "no batches": ("transpose(-1, -2) +", "transpose(0, 1) +", "RuntimeError"),
    "beside others": ('(X @ p["A"]) @', '((X - X.mean()) @ p["A"]) @', "the scores of a context"),
    "raises": (
        "return {",
        "raise RuntimeError('not\\n today')\n        return {",
        "RuntimeError: not today",
    ),
    "no scale": ('"c": ((), 0.1)', '"c": ()', "parameter c: not of the form"),
    "no size": ('"c": ((), 0.1)', '"c": ((0,), 0.1)', "parameter c: shape (0,) is not of positive"),
    "tau": ('"c": ((), 0.1)', '"c": ((), 0.1), "tau": ((), 0.1)', "parameter 'tau': not"),
    "embedding": ('"c": ((), 0.1)', '"c": ((), 0.1), "graph": ((), 0.1)', "parameter 'graph': not"),
    "no dict": (
        'return {"A": (shape, 0.3), "B": (shape, 0.3), "c": ((), 0.1)}',
        "return 3",
        "parameters() gives no dict of names",
    ),
    "a python number": ("return (X @", "return 1 or (X @", "scores are of type int"),
    "double": ("+ self.bias", "+ torch.ones(1, dtype=torch.float64)", "scores are torch.float64"),
    "does not run": (
        "import torch\n",
        "import torch\n1 / 0\n",
        "ZeroDivisionError: division by zero",
    ),
    "control flow": (
        "return (X @",
        "if p['c'] > 0:\n            pass\n        return (X @",
        "RuntimeError: vmap",
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
    place = "model mine(bias=0.5) at d_model = 12, h = 1, d_k = 1"
    assert str(caught.value).startswith(f"{place}: {said}")
    assert "\n" not in str(caught.value)


def test_a_layer_is_tried_at_every_d_model_wide_heads_and_three_of_all(tmp_path: Path) -> None:
    wrongs = {"one": "self.d_model == 8", "narrow": "self.d_k <= 4", "few": "self.h < 3"}
    for name, wrong in wrongs.items():
        text = LAYER.replace("        return (X", f"        assert {wrong}\n        return (X")
        cells, search = [{"m": 20, "d_model": [8, 12]}], {"heads": [1, 2, 3]}
        study = study_of(file_of(tmp_path, text, f"{name}.py"), cells=cells, search=search)
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
