"""Training loops in torch, many lanes at a time, on any device."""

import os

# Products of few rows were seen to round differently by a lane's position, unless MKL is told
# before its first product to round the same everywhere. This costs no measurable time.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
