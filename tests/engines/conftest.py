"""What every test of an engine starts from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
import torch

from rgr_dist.engines.lanes import state as lanes_state
from rgr_dist.engines.lanes.capture import Repeated
from tests.engines.recorded_graphs import Recorded, Recording, Stream


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """One thread for torch, whatever an engine asked for in the test before."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


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
