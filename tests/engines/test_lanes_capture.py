"""The step as a CUDA graph: on a GPU, and with a stand-in that records what a graph would."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rgr_dist.engines import lanes_state
from rgr_dist.engines.lanes import Lanes, LanesEngine
from rgr_dist.engines.lanes_capture import Repeated
from rgr_dist.study import Cell, Run

CPU = torch.device("cpu")
CELL = Cell(m=23, d_model=17, context={"length": 5}, training={"max_steps": 100, "check_every": 50})
RUNS = [Run(cell=CELL, h=3, d_k=d_k, seed=seed) for seed, d_k in enumerate([7, 7, 2, 9])]


class Recorded:
    """Stands for torch.cuda.CUDAGraph: kernels with their arguments and memory as recorded."""

    made = 0

    def __init__(self) -> None:
        self.calls: list[tuple[Any, Any, Any, Any]] = []
        Recorded.made += 1

    @torch.no_grad()  # kernels alone, as a graph has no autograd
    def replay(self) -> None:
        for kernel, args, kwargs, recorded in self.calls:
            result = kernel(*args, **kwargs)
            several = isinstance(result, tuple)
            for new, old in zip(result, recorded, strict=True) if several else [(result, recorded)]:
                if isinstance(new, torch.Tensor) and new.data_ptr() != old.data_ptr():
                    old.copy_(new)


class Recording(TorchDispatchMode):
    """Stands for torch.cuda.graph: kernels that write to their arguments are not run."""

    def __init__(self, graph: Recorded) -> None:
        super().__init__()
        self.graph = graph

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func is not torch.ops.aten._local_scalar_dense.default, "a graph cannot be read"
        kwargs = kwargs or {}
        written = kwargs.get("out", args[0]) if func._schema.returns else None
        result = written if func._schema.is_mutable else func(*args, **kwargs)
        self.graph.calls.append((func, args, kwargs, result))
        return result


class Stream:
    """Stands for torch.cuda.Stream."""

    def wait_stream(self, other: Stream) -> None:
        assert isinstance(other, Stream)


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lanes on the CPU take the path of a GPU."""
    Recorded.made = 0
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Recorded)
    monkeypatch.setattr(torch.cuda, "graph", Recording)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: contextlib.nullcontext())
    on_gpu = torch.device("cuda")
    monkeypatch.setattr(lanes_state, "Repeated", lambda _: Repeated(on_gpu))


def train(lanes: Lanes) -> torch.Tensor:
    """Several blocks, a compaction, and more steps."""
    lanes.advance(lanes_state.BLOCK + 7)
    lanes.advance(3)
    lanes.keep([0, 2])
    lanes.advance(lanes_state.BLOCK + 1)
    return lanes.theta


REGULAR = {"graph": {"family": "regular", "degree": 3}}
OTHERS = [{}, REGULAR, {"model": "softmax"}, {"model": "softmax"} | REGULAR, {"model": "value"}]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_a_recorded_step_is_the_step(request: pytest.FixtureRequest, other: dict[str, Any]) -> None:
    cell = Cell.model_validate(CELL.model_dump() | other)
    runs = [run.model_copy(update={"cell": cell}) for run in RUNS]
    expected = train(Lanes(runs, CPU, torch.float32))
    request.getfixturevalue("graphs")
    assert torch.equal(train(Lanes(runs, CPU, torch.float32)), expected)
    assert Recorded.made == 2, "one before the compaction and one after it"


@pytest.mark.usefixtures("graphs")
def test_a_single_step_is_not_recorded() -> None:
    lanes = Lanes(RUNS, CPU, torch.float32)
    lanes.advance(1)
    assert Recorded.made == 0
    lanes.advance(1)
    assert Recorded.made == 1


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_gpu_gives_the_processors_numbers(dtype: torch.dtype) -> None:
    relative = 1e-4 if dtype == torch.float32 else 1e-10
    here, there = (Lanes(RUNS, torch.device(name), dtype) for name in ("cpu", "cuda"))
    torch.testing.assert_close(train(there).cpu(), train(here), rtol=relative, atol=relative)
    assert there.repeated.graph is not None


@pytest.mark.gpu
def test_lanes_scored_together_on_a_gpu_have_the_processors_scores() -> None:
    outcomes = [LanesEngine(device, torch.float64).train(RUNS) for device in ("cpu", "cuda")]
    for here, there in zip(*outcomes, strict=True):
        assert (here.steps, here.stop_reason) == (there.steps, there.stop_reason)
        np.testing.assert_allclose(
            [there.score, there.val_score, there.tau], [here.score, here.val_score, here.tau], 1e-3
        )
