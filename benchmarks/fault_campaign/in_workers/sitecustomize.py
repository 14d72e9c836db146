"""Makes Ray's workers die: Python loads this as it starts if its folder is on the path.

Each worker lives for an exponentially distributed time after it has loaded the code that trains,
then ends in one of the ways named in ``RGR_DEATHS``: exit, segfault, kill, memory. It first records
that in the file ``RGR_DEATHS_TO``, but lives on if that already lists ``RGR_DEATHS_MOST`` deaths.
For ``memory`` it takes more than Ray's memory monitor allows.
"""

import os
import sys
import threading
import time
from pathlib import Path


def die() -> None:
    """Wait, record how this process will end, and end it."""
    import ctypes
    import json
    import random
    import signal

    draw = random.Random(f"{os.environ['RGR_DEATHS_SEED']} {os.getpid()}")
    while "rgr_dist.running.worker" not in sys.modules:
        time.sleep(0.05)
    time.sleep(draw.expovariate(1 / float(os.environ["RGR_DEATHS_AFTER"])))
    how = draw.choice(os.environ["RGR_DEATHS"].split())
    told = Path(os.environ["RGR_DEATHS_TO"])
    died = told.read_text().count('"what": "worker"') if told.exists() else 0
    if died >= int(os.environ["RGR_DEATHS_MOST"]):
        return
    line = {"what": "worker", "how": how, "pid": os.getpid(), "at": time.time()}
    line["rpc_faults"] = "RAY_testing_rpc_failure" in os.environ
    handle = os.open(os.environ["RGR_DEATHS_TO"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{json.dumps(line)}\n".encode())
    if how == "exit":
        os._exit(1)
    if how == "segfault":
        ctypes.string_at(0)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    taken = []
    while len(taken) < int(os.environ["RGR_DEATHS_MEBIBYTES"]):
        taken.append(bytearray(os.urandom(2**10) * 2**10))
    time.sleep(60)  # the monitor looks ten times a second


if "RGR_DEATHS" in os.environ and any("default_worker.py" in word for word in sys.orig_argv):
    threading.Thread(target=die, daemon=True).start()
