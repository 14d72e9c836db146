"""Layers of files for tests: their text, their studies, and how two engines compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from rgr_dist.engines.api import Engine
from rgr_dist.engines.lanes.engine import LanesEngine
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study

CPU = torch.device("cpu")
PLAIN = LanesEngine(dtype=torch.float64, compiled=False)
LAYER = """
from dataclasses import dataclass
import torch

@dataclass(frozen=True)
class Mine:
    d_model: int
    h: int
    d_k: int
    bias: float = 0.5

    def parameters(self):
        shape = (self.d_model, self.h * self.d_k)
        return {"A": (shape, 0.3), "B": (shape, 0.3), "c": ((), 0.1)}

    def scores(self, X, p):
        return (X @ p["A"]) @ (X @ p["B"]).transpose(-1, -2) + p["c"] + self.bias
"""
OWN_LOSS = """
    def loss(self, scores, edges, tau):
        return ((scores - tau - edges) ** 2).mean()
"""


def study_of(model: Any, m: int = 20, d_model: int = 12, length: int = 7, **keys: Any) -> Study:
    cells = [{"m": m, "d_model": d_model}]
    search = {"heads": [1, 2, 4]}
    context = {"length": length}
    document = {"name": "x", "model": model, "cells": cells, "context": context, "search": search}
    return parse_study({**document, **keys})


def runs_of(study: Study, h: int, d_k: int, seeds: tuple[int, ...] = (0, 3, 7)) -> list[Run]:
    return [Run(cell=study.cells[0], h=h, d_k=d_k, seed=seed) for seed in seeds]


def file_of(folder: Path, text: str, name: str = "mine.py") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def assert_alike(engine: Engine, other: Engine, runs: list[Run], steps: int = 30) -> None:
    pairs = zip(engine.weights_after(runs, steps), other.weights_after(runs, steps), strict=True)
    for one, expected in pairs:
        assert one.keys() == expected.keys()
        for name in one:
            largest = np.abs(expected[name]).max()
            assert np.abs(one[name] - expected[name]).max() <= 1e-10 * largest + 1e-15, name
