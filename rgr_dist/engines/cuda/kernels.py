"""The kernels of one shape: compiled at run time, and launched on torch's stream.

The compiler and driver come from ``cuda.bindings``, which every CUDA build of torch installs.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rgr_dist.engines.api import BETA_1, BETA_2, EPSILON, padded
from rgr_dist.kernel_cache import cache_folder

Argument = Tensor | npt.NDArray[Any] | np.generic
WARP = 32


class Shape(NamedTuple):
    """What the kernels are compiled for.

    Attributes:
        length: items of a context.
        softmax: whether heads are softmaxes that are summed; if not, the largest score counts.
        messages: whether the loss is that of retrieved messages.
        balanced: whether an edge's weight depends on how many edges its context has.
    """

    d_model: int
    heads: int
    d_k: int
    length: int
    softmax: bool
    messages: bool
    balanced: bool

    @property
    def columns(self) -> int:
        """Columns of [W_Q | W_K], padded to a multiple of four."""
        return padded(2 * self.heads * self.d_k, 4)

    @property
    def tiles(self) -> int:
        """How many squares of 4 x 4 weights there are."""
        return self.columns * padded(self.d_model, 4) // 16


class Plan(NamedTuple):
    """A shape, and the threads that compute a step, in whole warps; another warp draws contexts."""

    shape: Shape
    threads: int

    @property
    def own_tiles(self) -> int:
        """How many squares of weights a thread updates."""
        return -(-self.shape.tiles // self.threads)


class KernelError(RuntimeError):
    """The shape does not fit a thread block, or this machine cannot compile for its GPU."""


class Kernels:
    """The kernels of a plan on the current device.

    Raises:
        KernelError: they cannot be compiled or loaded here.
    """

    def __init__(self, plan: Plan) -> None:
        try:
            from cuda.bindings import driver
        except ModuleNotFoundError as error:  # torch is built for another maker's devices
            raise KernelError(str(error)) from None
        self.driver, self.plan = driver, plan
        torch.cuda.init()
        torch.zeros(1, device="cuda")  # makes the device's context current
        module = _checked(driver.cuModuleLoadData(_compiled(plan)))
        at, size = _checked(driver.cuModuleGetGlobal(module, b"shared_bytes"))
        number = np.zeros(1, dtype=np.int32)
        _checked(driver.cuMemcpyDtoH(_address(number), at, size))
        self.bytes = int(number[0])
        dynamic = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.functions = {}
        for name in ("train", "evaluate"):
            function = _checked(driver.cuModuleGetFunction(module, name.encode()))
            _checked(driver.cuFuncSetAttribute(function, dynamic, self.bytes))
            self.functions[name] = function

    def launch(self, name: str, blocks: int, arguments: Sequence[Argument]) -> None:
        """Start a kernel: tensors are passed by address, everything else by value."""
        values = [
            np.asarray(np.uint64(one.data_ptr()) if isinstance(one, Tensor) else one)
            for one in arguments
        ]
        pointers = np.array([_address(value) for value in values], dtype=np.uint64)
        stream = torch.cuda.current_stream().cuda_stream
        launched = self.driver.cuLaunchKernel(
            self.functions[name], blocks, 1, 1, self.plan.threads + WARP, 1, 1, self.bytes, stream,
            _address(pointers), 0,
        )  # fmt: skip
        _checked(launched)


@cache
def kernels_of(plan: Plan, device: int) -> Kernels:
    """The kernels of a plan, made once per process and device, which must be the current one."""
    return Kernels(plan)


def plan_of(shape: Shape, lanes: int) -> Plan:
    """One thread for each 4 x 4 square of queries and keys, or two if lanes leave room for them.

    A lane's numbers do not depend on this.
    """
    squares = shape.columns * padded(shape.length, 4) // 16
    if lanes <= torch.cuda.get_device_properties().multi_processor_count:
        squares *= 2
    threads = min(512, max(2 * WARP, -(-squares // WARP) * WARP))
    return Plan(shape, threads)


def _compiled(plan: Plan) -> bytes:
    """The binary of a plan's kernels: read from disk, or compiled and kept there."""
    from cuda.bindings import nvrtc

    version = _checked(nvrtc.nvrtcVersion())
    source, options = _source_and_options(plan)
    text = repr((version, options, source)).encode()
    folder = cache_folder(hashlib.sha256(text).hexdigest()[:16])
    kept = folder / "kernels.cubin" if folder else None
    if kept and kept.exists():
        return kept.read_bytes()
    program = _checked(nvrtc.nvrtcCreateProgram(source, b"kernels.cu", 0, [], []))
    done, *_ = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if done != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = bytes(_checked(nvrtc.nvrtcGetProgramLogSize(program)))
        _checked(nvrtc.nvrtcGetProgramLog(program, log))
        raise KernelError(f"{plan}: {log.decode()}")
    binary = bytes(_checked(nvrtc.nvrtcGetCUBINSize(program)))
    _checked(nvrtc.nvrtcGetCUBIN(program, binary))
    nvrtc.nvrtcDestroyProgram(program)
    if kept:
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(binary)
        Path(file.name).replace(kept)
    return binary


def _source_and_options(plan: Plan) -> tuple[bytes, list[bytes]]:
    shape = plan.shape
    major, minor = torch.cuda.get_device_capability()
    constants = {
        "D_MODEL": shape.d_model,
        "HEADS": shape.heads,
        "D_K": shape.d_k,
        "LENGTH": shape.length,
        "SOFTMAX": int(shape.softmax),
        "MESSAGES": int(shape.messages),
        "BALANCED": int(shape.balanced),
        "THREADS": plan.threads,
        "SCALE": shape.d_k**-0.5,
        "BETA_1": BETA_1,
        "BETA_2": BETA_2,
        "EPSILON": EPSILON,
    }
    options = [f"--gpu-architecture=sm_{major}{minor}", "--std=c++17"]
    options += [f"-D{name}={value}" for name, value in constants.items()]
    source = files("rgr_dist.engines.cuda").joinpath("kernels.cu").read_bytes()
    return source, [option.encode() for option in options]


def _address(values: npt.NDArray[Any]) -> int:
    return int(values.__array_interface__["data"][0])


def _checked(answer: tuple[Any, ...]) -> Any:
    """The values that follow the error code of an answer.

    Raises:
        KernelError: the code is not that of success.
    """
    code, *values = answer
    if code.value:
        raise KernelError(f"{code.name}")
    return values[0] if len(values) == 1 else tuple(values)
