"""The one setting of how long a worker may give no answer; from the environment."""

from __future__ import annotations

import math
import os

from rgr_dist.faults import UserError

LEASE_SETTING = "RGR_LEASE_SECONDS"
SHORTEST_LEASE = 600.0
"""Seconds that every probe is given; ``RGR_LEASE_SECONDS`` sets others."""


class LeaseSettingError(UserError, ValueError):
    """The shortest lease is no number of seconds."""


def shortest_lease() -> float:
    """Seconds that every probe is given.

    Raises:
        LeaseSettingError: the environment's are no positive number.
    """
    text = os.environ.get(LEASE_SETTING)
    if text is None:
        return SHORTEST_LEASE
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < math.inf:
        raise LeaseSettingError(
            f"{LEASE_SETTING}: {text!r} is not valid; give seconds, by default {SHORTEST_LEASE:.0f}"
        )
    return seconds
