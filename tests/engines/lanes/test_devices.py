"""All that a program of lanes reads is on its device: tried on a device that holds no data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rgr_dist.engines.lanes.evaluation import ErrorScorer, PairScorer
from rgr_dist.engines.lanes.own_layer import OwnLanes
from rgr_dist.engines.lanes.state import Lanes
from rgr_dist.engines.lanes.transformer import BlockLanes
from tests.engines.lanes import test_transformer as transformer
from tests.engines.lanes.test_lanes import SHAPES, runs_of
from tests.engines.own_layers import runs_of as own_runs
from tests.engines.own_layers import study_of

META = torch.device("meta")


def tensors_of(value: Any) -> Iterator[Tensor]:
    """Every tensor in an object of the project, and in what it holds."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors_of(part)
    elif isinstance(value, Mapping):
        yield from tensors_of([*value.values()])
    elif type(value).__module__.startswith("rgr_dist.engines"):
        yield from tensors_of(vars(value))


def assert_there(value: Any, dtype: torch.dtype = torch.float32) -> None:
    tensors = list(tensors_of(value))
    assert {tensor.device for tensor in tensors} == {META}
    assert {tensor.dtype for tensor in tensors if tensor.is_floating_point()} == {dtype}


@pytest.mark.parametrize("model", ["max", "softmax", "value"])
def test_steps_of_edges(model: str) -> None:
    lanes = Lanes(runs_of(SHAPES["odd everything"], (0, 1), model), META, torch.float32)
    for kept in ([0, 1], [1]):
        lanes.keep(kept)
        lanes.advance(2)
        assert_there(lanes)
        assert_there(lanes.layer(0))


@pytest.mark.parametrize("length", [7, 16])
def test_steps_of_a_layer_from_a_file(length: int) -> None:
    runs = own_runs(study_of({"zoo": "softmax"}, length=length), 2, 3)
    lanes = OwnLanes(runs, META, torch.float64, compiled=False)
    for kept in ([0, 1, 2], [1]):
        lanes.keep(kept)
        lanes.advance(2)
        assert_there(lanes, torch.float64)
        assert_there(lanes.layer(0), torch.float64)


def test_logits_of_transformers() -> None:
    runs = transformer.runs_of(transformer.SHAPES["few heads"], (0, 1))
    lanes = BlockLanes(runs, META, torch.float32, mixed=False)
    assert_there(lanes)
    assert lanes.logits(lanes.block[0]).device == META


def test_scorers() -> None:
    class Uncounted(PairScorer):
        def _over_edges(self, counts_pm: Tensor, part: slice) -> int:
            return 0  # the device holds no numbers

    contexts = np.zeros((4, 5), dtype=np.int32)
    targets, V = (torch.zeros(10, 1, dtype=dtype, device=META) for dtype in (torch.int64, None))
    errors = ErrorScorer(contexts, targets, V)
    for scorer in (errors, Uncounted(contexts, targets)):
        assert_there(vars(scorer))
    assert errors.at_once(2) == 2**28 // (2 * 16**2), "a GiB of padded contexts"
