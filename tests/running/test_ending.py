"""Ray ends in a thread of its own while the report is written."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import gc
from concurrent.futures import ThreadPoolExecutor
from rgr_dist.running.cluster import connect

class Knot: pass

def knot(**holds):
    one = Knot()
    vars(one).update(holds, itself=one)

gc.set_threshold(50_000)  # as the command line does
with ThreadPoolExecutor(1) as beside:
    with connect("local", 1, ended_by=beside):
        import ray
        for _ in range(20_000):
            knot(ref=ray.put(1))
    ended = beside.submit(lambda: None)
    while not ended.done():
        knot()  # enough of them, and garbage is collected
print("whole")
"""


@pytest.mark.slow
@pytest.mark.parametrize("time", range(3))
def test_garbage_that_knows_ray_does_not_end_the_process(time: int) -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "whole\n"), done.stderr
