"""Any task in torch, compiled: many steps of one lane are one program, on a CPU or a GPU.

The program is a loop over steps: the loss, its gradient and AdamW, for one lane at fixed sizes. So
no number depends on another lane, and one program serves every seed. Without a C++ compiler, and
where torch cannot compile a layer, steps are those of the reference; a torch module is never
compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor
from torch.func import grad

from rgr_dist.engines.api import LaneEngine
from rgr_dist.engines.reference import AutogradLane
from rgr_dist.engines.schedule import BETA_1, BETA_2, EPSILON, adamw_factors
from rgr_dist.engines.tasks import Batch, Theta, TorchTask
from rgr_dist.study.run import Run

State = tuple[Tensor, Tensor, Tensor]
"""All parameters one after another, and their first and second moments."""
Program = Callable[..., State]
"""Takes ``count`` steps: (count, state, factors, data, batches) to the state after them."""

_programs: dict[Hashable, Program | None] = {}


class CompiledLane(AutogradLane):
    """A run whose steps are taken by a program, if there is one.

    Attributes:
        program: None if torch could not compile it.
    """

    def __init__(self, run: Run, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__(run, device, dtype)
        self.sizes = [p.numel() for p in self.theta.values()]
        self.program = program_of(self.task, device, dtype) if self.task.may_compile else None
        if self.program is not None:
            flat = torch.cat([p.detach().flatten() for p in self.theta.values()])
            self.state: State = flat, torch.zeros_like(flat), torch.zeros_like(flat)
            self.theta = unflat(self.state[0], self.task.theta)

    def advance(self, steps: int) -> None:
        """Take ``steps`` training steps, a block of batches at a time."""
        if self.program is None:
            return super().advance(steps)
        end, block, flat = self.steps + steps, self.task.block, self.state[0]
        while self.steps < end:
            count = min(block, end - self.steps)
            factors = torch.from_numpy(adamw_factors(self.run.cell.training, self.steps, count).T)
            given = (
                _filled(block, factors.to(flat)),
                *(_filled(block, one) for one in self.task.batches(self.steps, count)),
            )
            limit = torch.tensor(count, device=flat.device)
            self.state = self.program(limit, self.state, self.task.data, *given)
            self.steps += count
        self.theta = unflat(self.state[0], self.task.theta)
        return None


class CompiledEngine(LaneEngine):
    """Trains by compiled programs on one device.

    Args:
        device: a torch device, such as ``cpu`` or ``cuda``.
    """

    def __init__(self, device: str = "cpu", dtype: torch.dtype = torch.float32) -> None:
        self.device, self.dtype, self.name = torch.device(device), dtype, "compiled"

    def lane(self, run: Run) -> CompiledLane:
        """A lane on the device; the engine's name says if it is not compiled."""
        self.name = "compiled"
        lane = CompiledLane(run, self.device, self.dtype)
        self.name = "compiled" if lane.program is not None else "compiled, step by step"
        return lane


def unflat(flat: Tensor, shapes: Theta) -> dict[str, Tensor]:
    """Views of a flat vector, by name, in the shapes of these parameters."""
    parts = flat.split([p.numel() for p in shapes.values()])
    return {name: part.view(p.shape) for (name, p), part in zip(shapes.items(), parts, strict=True)}


def _filled(block: int, part: Tensor) -> Tensor:
    """Batches [count, …] filled up with zeros to [block, …]: a program's layout is fixed."""
    missing = block - len(part)
    return torch.cat([part, part.new_zeros(missing, *part.shape[1:])]).contiguous()


def program_of(task: TorchTask, device: torch.device, dtype: torch.dtype) -> Program | None:
    """The program that takes a task's steps, compiled once for all seeds in this process."""
    key = task.key, device, dtype
    if key not in _programs:
        _programs[key] = _compiled(task, device, dtype)
    return _programs[key]


def _compiled(task: TorchTask, device: torch.device, dtype: torch.dtype) -> Program | None:
    keys: dict[str, Any] = {"options": {"cpp_wrapper": True}, "isolate_recompiles": True}
    program: Program = torch.compile(_steps(task), fullgraph=True, dynamic=False, **keys)
    flat = torch.cat([p.flatten() for p in task.theta.values()])
    state = flat, torch.zeros_like(flat), torch.zeros_like(flat)
    factors = torch.zeros(task.block, 3, dtype=dtype, device=device)
    batches = (_filled(task.block, one) for one in task.batches(0, 1))
    try:
        program(torch.tensor(0, device=device), state, task.data, factors, *batches)
    except Exception:  # torch raises many kinds of error here
        return None
    return program


def _steps(task: TorchTask) -> Program:
    """A function that takes steps of a task, and knows nothing of its seed."""
    loss, shapes = task.loss, {name: p.new_empty(p.shape) for name, p in task.theta.items()}

    def loss_of(flat: Tensor, data: Theta, batch: Batch) -> Tensor:
        return loss(unflat(flat, shapes), data, batch)

    def steps(count: Tensor, state: State, data: Theta, factors: Tensor, *batches: Tensor) -> State:
        def goes_on(step: Tensor, flat: Tensor, first: Tensor, second: Tensor) -> Tensor:
            return step < count

        def body(
            step: Tensor, flat: Tensor, first: Tensor, second: Tensor
        ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
            at = step.view(1)
            batch = tuple(one.index_select(0, at).squeeze(0) for one in batches)
            g = grad(loss_of)(flat, data, batch)
            size, root, decayed = factors.index_select(0, at).squeeze(0).unbind()
            first = first + (1 - BETA_1) * (g - first)
            second = BETA_2 * second + (1 - BETA_2) * g * g
            flat = flat * decayed - size * first / (second.sqrt() * root + EPSILON)
            return step + 1, flat, first, second

        _, *after = torch.while_loop(goes_on, body, (torch.zeros_like(count), *state))
        flat, first, second = after
        return flat, first, second

    return steps
