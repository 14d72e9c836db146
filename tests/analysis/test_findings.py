"""The findings of a study of thresholds, word for word."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from analysis.laws import Law
from analysis.report import findings
from rgr_dist.paper import DENSE_LAW, LAWS, PublishedLaw
from rgr_dist.study.from_yaml import parse_study

FITTED = Law(
    name="D_K",
    response="D_K*",
    predictor="x",
    cells="all cells",
    through_origin=True,
    n=3,
    status="fitted",
    slope=1.2,
    slope_low=1.0,
    slope_high=1.4,
    intercept=0.0,
    r2=0.95,
)
NONE = replace(FITTED, n=1, slope=None, slope_low=None, slope_high=None, r2=None, reason="why")


def best_of(*rows: tuple[int, int | None, str]) -> pd.DataFrame:
    """Cells of d_model = 16 by (m, D_K, status), at two heads where there is a D_K."""
    return pd.DataFrame(
        [
            {"m": m, "d_model": 16, "degree": 1, "graph": "permutation", "status": status}
            | {"D_K": D_K, "h_star": D_K and 2, "d_k": D_K and D_K // 2}
            for m, D_K, status in rows
        ],
        dtype="object",
    )


def test_the_headline_is_the_law_of_at_least_three_cells() -> None:
    best = best_of((64, 20, "found"), (128, 88, "found"), (256, 190, "found"), (512, None, "open"))
    assert findings.headline([FITTED], best) == (
        "D_K* ≈ 1.20 · m′ log₂ m / d_model over 3 of 4 cells "
        "(95 % interval 1.00 to 1.40, R² = 0.950)."
    )
    assert findings.headline([replace(FITTED, r2=None)], best).endswith("interval 1.00 to 1.40).")
    assert findings.headline([replace(FITTED, n=2)], best) == (
        "At m = 64, d_model = 16, D_K* = 20 at 2 heads of width 10; 2 more cells below; "
        "too few finished cells for a law."
    )


def test_the_headline_of_one_cell_is_its_threshold() -> None:
    assert findings.headline([NONE], best_of((64, 20, "open"), (128, None, "open"))) == (
        "At m = 64, d_model = 16, D_K* = 20 at 2 heads of width 10 so far; "
        "too few finished cells for a law."
    )


def test_without_a_threshold_the_headline_says_why() -> None:
    closed = best_of((64, None, "censored"), (128, None, "inconsistent"))
    assert findings.headline([NONE], closed) == (
        "No threshold in 2 cells: no head count passes at any width allowed."
    )
    assert findings.headline([NONE], best_of((64, None, "open"))) == (
        "No threshold yet: the search of 1 cell is not finished."
    )


def test_a_law_in_words() -> None:
    assert findings.law_words(FITTED) == "D_K* ≈ 1.20 [1.00, 1.40] · (x)"
    assert findings.law_words(NONE) == "no fit: why"
    line = replace(
        FITTED, through_origin=False, intercept=-6.5, intercept_low=-8.0, intercept_high=-5.0
    )
    assert findings.law_words(line) == (
        "D_K* ≈ 1.20 [1.00, 1.40] · (x), intercept −6.50 [−8.00, −5.00]"
    )


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (LAWS["D_K"], "1.19 x, R² 0.944 (Sec. 6.1, Fig. 3)"),
        (LAWS["h"], "1.65 x − 6.64, R² 0.824 (Sec. 6.1, Fig. 10)"),
        (DENSE_LAW, "0.46 x (App. A.3, Eq. 32, Fig. 12)"),
        (PublishedLaw(2.0, 1.5, None, "here"), "2 x + 1.5 (here)"),
        (None, "–"),
    ],
)
def test_a_published_law_in_words(law: PublishedLaw | None, words: str) -> None:
    assert findings.paper_law_words(law) == words


def compared(*rows: tuple[int, int | None, int]) -> pd.DataFrame:
    """Cells of d_model = 16 by (m, our D_K, the paper's), at four heads each."""
    return pd.DataFrame(
        [
            {"m": m, "d_model": 16, "D_K": ours, "h_star": 4, "paper_D_K": theirs, "paper_h": 4}
            | {"difference": None if ours is None else ours - theirs}
            | {"agrees": None if ours is None else abs(ours - theirs) <= 4}
            for m, ours, theirs in rows
        ],
        columns=["m", "d_model", "D_K", "h_star", "paper_D_K", "paper_h", "difference", "agrees"],
        dtype="object",
    )


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ([], ["The paper gives no number for cells of this model, size and protocol."]),
        ([(64, None, 20)], []),
        (
            [(64, 20, 20)],
            [
                (
                    "D_K* is within one step of d_k of the value that the paper's Table 1 implies "
                    "in 1 of 1 cell."
                )
            ],
        ),
        (
            [(64, 20, 20), (128, 92, 88), (256, None, 192)],
            [
                (
                    "D_K* is within one step of d_k of the value that the paper's Table 1 implies "
                    "in 2 of 2 cells."
                )
            ],
        ),
        (
            [(64, 28, 20), (128, 88, 88), (256, 96, 192)],
            [
                (
                    "D_K* differs from the value that the paper's Table 1 implies by more than one "
                    "step of d_k in 2 of 3 cells: (64, 16): 28 at 4 heads, not 20 at 4; "
                    "(256, 16): 96 at 4 heads, not 192 at 4."
                )
            ],
        ),
        (
            [(64, 28, 20)],
            [
                (
                    "D_K* differs from the value that the paper's Table 1 implies by more than one "
                    "step of d_k in 1 of 1 cell: (64, 16): 28 at 4 heads, not 20 at 4."
                )
            ],
        ),
    ],
)
def test_agreement_of_the_cells(rows: list[Any], lines: list[str]) -> None:
    assert findings.agreement(compared(*rows), [], {}) == lines


@pytest.mark.parametrize(
    ("low", "high", "where"),
    [
        (1.0, 1.4, "inside"),
        (1.19, 1.4, "inside"),
        (1.0, 1.19, "inside"),
        (1.0, 1.1, "outside"),
        (1.2, 1.4, "outside"),
    ],
)
def test_agreement_of_a_slope(low: float, high: float, where: str) -> None:
    law = replace(FITTED, slope_low=low, slope_high=high)
    cells = compared((64, None, 20))
    assert findings.agreement(cells, [law], LAWS) == [
        (
            f"The paper's slope of D_K*, 1.19 (fitted to all cells), lies {where} our 95 % "
            f"interval, {low:.2f} to {high:.2f}."
        )
    ]
    for silent in (replace(law, n=2), replace(law, name="D_K_bits"), replace(NONE, n=3)):
        assert findings.agreement(cells, [silent], LAWS) == []


def test_the_wide_fit_is_told_only_where_it_is_another() -> None:
    cells = compared((64, None, 20))
    wide = replace(FITTED, name="D_K_wide")
    assert len(findings.agreement(cells, [FITTED, wide], LAWS)) == 1
    more = [wide, replace(FITTED, n=4)]
    assert len(findings.agreement(cells, more, LAWS)) == 2
    (first, _) = findings.agreement(cells, more, LAWS)
    assert "0.966 (fitted to all but d_model = 16, m > 64)" in first


def test_denser_graphs_have_a_slope_though_no_cell_is_compared() -> None:
    assert findings.agreement(compared(), [FITTED], {"D_K": DENSE_LAW}) == [
        (
            "The paper's slope of D_K*, 0.46 (fitted to degrees up to 16), lies outside our 95 % "
            "interval, 1.00 to 1.40."
        )
    ]


def test_what_limits_the_thresholds() -> None:
    limited_by = ["capacity", "budget", None, "capacity"]
    assert findings.limits(pd.DataFrame({"limited_by": limited_by})) == (
        "Of 3 thresholds, 1 would be lower with a larger training budget: D_K still falls at "
        "larger step limits. The other 2 are the same at the two largest."
    )


def test_what_passes(made_up: SimpleNamespace) -> None:
    study = made_up.study_of([(64, 16)], target=0.95)
    assert findings.target_words(study) == "a mean test score of 0.95"
    cells = [{"m": 64, "d_model": 16}]
    errors = parse_study({"name": "errors", "model": "value", "cells": cells})
    assert findings.target_words(errors) == "a mean test error (MSE) of at most 0.5"


def test_a_certificate_without_a_pass_tells_the_failure() -> None:
    text = '{"pass": null, "fail": {"d_k": 5, "mean_score": 0.9, "n_seeds": 10}}'
    assert findings.certificate_words(text, 10) == "fails at 5 (10 seeds, mean 0.9000)"
