"""Training loops in torch, many lanes at a time, on any device."""

import os

# MKL rounds a small product by where it lies in memory, so by a lane's place, unless it is told not
# to before its first product. This costs no time that could be measured.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
