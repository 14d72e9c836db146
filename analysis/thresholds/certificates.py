"""Both sides of a threshold's certificate in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rgr_dist.analysis.records import parse_certificate, real
from rgr_dist.analysis.wording import MISSING, plural
from rgr_dist.study.study import Study


def certificate_words(text: object, study: Study) -> str:
    """``passes at 6 (10 seeds, mean 0.9961), fails at 5 (mean ≤ 0.9824 after 2 seeds)``.

    Widths are values of the searched size, d_k or d_vo. For a failing probe that stopped early, the
    mean is the best that all of the study's seeds could have given. A failing mean is printed with
    enough digits to differ from the target.
    """
    certificate = parse_certificate(text) or {}
    passed, failed = certificate.get("pass"), certificate.get("fail")
    if not passed and not failed:
        return MISSING
    words, width = [], study.search.sizes.value
    if passed:
        mean = _mean(passed["mean_score"])
        words.append(f"passes at {passed[width]} ({_seeds(passed)}, mean {mean})")
    if failed:
        words.append(f"fails at {failed[width]} ({_failure(failed, study)})")
    elif passed:
        below = (
            f"no other {width} fits the total" if study.search.total else "no failing probe below"
        )
        words.append("nothing is narrower" if passed[width] == 1 else below)
    yet = passed and failed and failed[width] > passed[width]
    return (" yet " if yet else ", ").join(words)


def _failure(failed: Mapping[str, Any], study: Study) -> str:
    seeds, target = study.search.seeds, study.search.target
    n, mean = int(failed["n_seeds"]), real(failed["mean_score"])
    if mean is None:
        return _seeds(failed)
    if n >= seeds:
        return f"{_seeds(failed)}, mean {_mean(mean, target)}"
    if study.record.minimised:
        return f"mean ≥ {_mean(n * mean / seeds, target)} after {_seeds(failed)}"
    ceiling = (n * mean + seeds - n) / seeds
    return f"mean ≤ {_mean(ceiling, target)} after {_seeds(failed)}"


def _seeds(probe: Mapping[str, Any]) -> str:
    return plural(int(probe["n_seeds"]), "seed")


def _mean(score: Any, target: float = math.nan) -> str:
    told = (f"{float(score):.{digits}f}" for digits in range(4, 13))
    return next((text for text in told if float(text) != target), str(score))
