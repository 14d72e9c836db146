"""What the record of each model says, by hand."""

from __future__ import annotations

import pytest

from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError, validated
from rgr_dist.study.models import MODELS

FINDS = {"transformer": "accuracy"}
MADE = {  # section, what combines the heads, whether each item has one target, embedding
    "algorithm-1": ("Sec. 4, Algorithm 1", "max", True, None),
    "algorithm-2": ("Sec. 8, Algorithm 2", "softmax", True, None),
    "algorithm-3": ("App. B.1, Algorithm 3", "max", True, "onehot"),
    "algorithm-4": ("App. B.3, Algorithm 4", "max", True, None),
    "algorithm-5": ("App. B.4, Algorithm 5", "max", False, None),
    "ours": ("not in the paper", "max", False, None),
    "one-head": ("not in the paper", "max", False, None),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_record_of_a_model(name: str) -> None:
    record, is_made = MODELS[name], name in MADE
    assert record.name == name
    assert record.finds == FINDS.get(name, "D_K")
    assert record.has_tau == (name not in ("value", "transformer", "facts"))
    assert record.minimised == (name == "value")
    assert record.scores_pairs == (name in ("max", "value", *MADE) and name != "algorithm-2")
    room = {"database", "facts"} if record.room else {"graph", "embedding"}
    assert record.parts.keys() == {"context", "training", *room}
    if is_made:
        told = (record.section, record.heads, record.one_target, record.embedding)
        assert told == MADE[name]
        assert (record.target, record.score, record.loss) == (1, "F1", "edges")
        assert record.name.removeprefix("algorithm-") == record.algorithm
        assert record.training == ("test_contexts",)


@pytest.mark.parametrize("name", MODELS)
def test_auto_is_the_fastest_engine_of_a_model_on_a_device(name: str) -> None:
    record = MODELS[name]
    elsewhere = dict.fromkeys(MADE, "construction")
    assert record.engine("auto", "cpu") == record.engines[0]
    assert record.engine("auto", "cuda") == elsewhere.get(name, "compiled")
    asked = "construction" if name in MADE else "reference"
    assert record.engine("reference", "cuda") == asked


def test_a_model_without_a_record_is_named_beside_those_that_have_one() -> None:
    with pytest.raises(StudyError, match=r"^model: 'maxx' .*'max'"):
        validated(Cell, {"model": "maxx", "m": 64, "d_model": 16})
