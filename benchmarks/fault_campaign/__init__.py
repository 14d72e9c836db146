"""What ``faults.py`` is made of: the study, who kills, what was killed, what a store then holds."""
