"""A step that is repeated many times: called as it is or, on a GPU, replayed as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable

import torch


class Repeated:
    """Calls the same function again and again; it takes and returns nothing, and works on buffers.

    A training step is some 25 short kernels, and a GPU would wait for each to be launched. On a
    GPU, therefore, the first call warms up on a stream of its own, as capture requires; the second
    records the graph; and the second and every later call replay it.
    """

    def __init__(self, device: torch.device) -> None:
        self.on_gpu, self.warm = device.type == "cuda", False
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, step: Callable[[], None]) -> None:
        """Do one step, which must be the same at every call."""
        if not self.on_gpu:
            step()
        elif not self.warm:
            self._warm_up(step)
        else:
            if self.graph is None:
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph):
                    step()  # recorded, not run
            self.graph.replay()

    def _warm_up(self, step: Callable[[], None]) -> None:
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            step()
        torch.cuda.current_stream().wait_stream(aside)
        self.warm = True
