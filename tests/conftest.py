"""Shared by all tests: one torch thread, and hypothesis repeatable and without a deadline."""

from __future__ import annotations

import torch
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

torch.set_num_threads(1)  # small products gain nothing from two, and tests share the cores
