"""The smallest study one can write, the paper's values for all it leaves out, and a run of it."""

from __future__ import annotations

from typing import Any

from rgr_dist.study.run import Run
from rgr_dist.study.study_file import parse_study

PAPER: dict[str, Any] = {  # App. A.1; heads, target and seeds from Sec. 6.1
    "model": "max",
    "graph": {"family": "permutation"},
    "embedding": {"family": "gaussian"},
    "context": {"length": 16, "positive_rate": 0.5},
    "training": {
        "learning_rate": 1e-3,
        "sharpness": 10.0,
        "max_steps": 20_000,
        "check_every": 500,
        "patience": 5,
        "stop_score": 0.995,
        "validation_contexts": 500,
        "test_contexts": 2_000,
    },
}


def document(**parts: Any) -> dict[str, Any]:
    return {"name": "x", "cells": [{"m": 64, "d_model": 16}], **parts}


def run_of(h: int = 2, d_k: int = 3, seed: int = 0, **parts: Any) -> Run:
    return Run(cell=parse_study(document(**parts)).cells[0], h=h, d_k=d_k, seed=seed)
