"""The parts of ``faults.py``: the study, what kills, what was killed, what a store then holds."""
