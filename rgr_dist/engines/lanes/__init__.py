"""Training loops in torch, many lanes at a time, on any device."""

import os

# Products of few rows were seen to round by a lane's place, unless MKL is told before its first
# product to round alike everywhere. This costs no time that could be measured.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
