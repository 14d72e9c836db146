"""Stand-ins for torch.cuda's graphs and streams, on processors."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


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
