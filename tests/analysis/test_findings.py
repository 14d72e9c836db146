"""The findings of a study of thresholds, word for word."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from rgr_dist.analysis.laws import conclusions
from rgr_dist.analysis.laws.fits import Fits, LackOfFit
from rgr_dist.analysis.laws.scaling_laws import Law
from rgr_dist.analysis.laws.section import law_words, paper_law_words
from rgr_dist.analysis.report.sections import summary
from rgr_dist.analysis.thresholds import findings
from rgr_dist.analysis.thresholds.certificates import certificate_words
from rgr_dist.paper import DENSE_LAW, LAWS, PublishedLaw
from rgr_dist.study.from_yaml import parse_study
from tests.analysis import made_up
from tests.analysis.page_numbers.reading import paragraphs

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


def fits_of(*laws: Law) -> Fits:
    """Fits that hold these laws and nothing else."""
    none = pd.DataFrame()
    return Fits(
        cells=none, left_out=none, laws=list(laws), candidates=[], candidates_wide=[],
        lack_of_fit=[], published=[],
    )  # fmt: skip


POWER = replace(
    FITTED, name="D_K_power", through_origin=False, slope=None, factor=0.5, exponent=1.3,
    exponent_low=1.1, exponent_high=1.5,
)  # fmt: skip
NO_POWER = replace(POWER, n=1, factor=None, exponent=None, reason="why")


def test_the_headline_is_the_law_of_at_least_three_cells() -> None:
    best = best_of((64, 20, "found"), (128, 88, "found"), (256, 190, "found"), (512, None, "open"))
    assert conclusions.headline(fits_of(FITTED, POWER), best) == (
        "D_K* grows as (m′ log₂ m / d_model) to the power 1.30 (95 % interval 1.10 to 1.50 over "
        "3 cells): the data reject proportionality."
    )
    assert conclusions.headline(fits_of(FITTED, replace(POWER, n=2, exponent=None)), best) == (
        "At m = 64, d_model = 16, D_K* = 20 at 2 heads of width 10; 2 more cells in the table; "
        "too few finished cells for a law."
    )


def test_a_law_that_its_lack_of_fit_test_rejects_is_told() -> None:
    numbers = {"n": 12, "chi2": 20.0, "degrees": 10, "scatter": 0.2, "noise": 0.1, "reduced": 2.0}
    tests = [
        LackOfFit(law="D_K_power", p_value=0.2, **numbers),  # type: ignore[arg-type]
        LackOfFit(law="D_K", p_value=0.012, **numbers),  # type: ignore[arg-type]
    ]
    fits = replace(fits_of(FITTED, POWER), lack_of_fit=tests)
    rejected = (
        "The lack-of-fit test rejects m′ log₂ m / d_model itself (p = 0.012): seeds and the "
        "resolution of d_k do not explain how far D_K* scatters about it."
    )
    assert conclusions.sentences(fits)[1] == rejected
    assert conclusions.headline(fits, best_of((64, 20, "found"))).endswith(f". {rejected}")
    assert conclusions.lack_of_fit(replace(fits, lack_of_fit=tests[:1])) == ""


def test_the_headline_of_one_cell_is_its_threshold() -> None:
    best = best_of((64, 20, "open"), (128, None, "open"))
    assert conclusions.headline(fits_of(NONE, NO_POWER), best) == (
        "At m = 64, d_model = 16, D_K* = 20 at 2 heads of width 10 so far; "
        "too few finished cells for a law."
    )


def test_without_a_threshold_the_headline_says_why() -> None:
    closed = best_of((64, None, "censored"), (128, None, "inconsistent"))
    assert conclusions.headline(fits_of(NONE, NO_POWER), closed) == (
        "No threshold in 2 cells: no head count passes at any width allowed."
    )
    assert conclusions.headline(fits_of(NONE, NO_POWER), best_of((64, None, "open"))) == (
        "No threshold yet: the search of 1 cell is not finished."
    )


def test_what_was_asked() -> None:
    study = made_up.study_of([(64, 16), (128, 16), (256, 16)])
    (said, *_) = paragraphs(summary.section(made_up.results_of(study, [], [])))
    assert said == (
        "For 3 cells of m items in dmodel dimensions, from (m, dmodel) = (64, 16) to (256, "
        "16), we asked for the smallest total key width DK = h · dk at which an attention "
        "layer that takes the maximum over its heads (Sec. 4) holds a random permutation of them "
        "(m′ = m relations): a mean test score of 0.99 over 10 seeds, with the best number of "
        "heads h."
    )
    one = made_up.results_of(made_up.study_of([(64, 16)]), [], [])
    (said, *_) = paragraphs(summary.section(one))
    assert said.startswith("At (m, dmodel) = (64, 16), m items in dmodel dimensions, we asked")


@pytest.mark.parametrize(
    ("sizes", "where"),
    [
        ([(64, 16)], "(m, dmodel) = (64, 16)"),
        ([(128, 16), (64, 32), (64, 16)], "(m, dmodel) = (64, 16) to (128, 16)"),
    ],
)
def test_what_was_asked_at_several_step_limits(sizes: list[tuple[int, int]], where: str) -> None:
    cells = [{"m": m, "d_model": d_model} for m, d_model in sizes]
    training = {"max_steps": [5000, 20_000]}
    study = parse_study({"name": "limits", "cells": cells, "training": training})
    (said, *_) = paragraphs(summary.section(made_up.results_of(study, [], [])))
    assert said.startswith(
        f"For {where}, m items in dmodel dimensions, at step limits from 5,000 to 20,000, we asked"
    )


@pytest.mark.parametrize(
    ("widths", "words"),
    [
        ((5, 5), []),
        ((5, None), ["The study is not finished: 1 of 2 cells is open, and what"]),
        ((None, None), ["The study is not finished: 2 of 2 cells are open, and what"]),
    ],
)
def test_what_is_not_finished(widths: tuple[int | None, ...], words: list[str]) -> None:
    study = made_up.study_of([(64, 16), (64, 32)], heads=[1])
    rows = [
        made_up.threshold_row(cell, 1, d_k, **({} if d_k else {"status": "open"}))
        for cell, d_k in zip(study.cells, widths, strict=True)
    ]
    said = paragraphs(summary.section(made_up.results_of(study, [], rows)))
    told = [line.partition(" this page")[0] for line in said if line.startswith("The study is")]
    assert told == words


def test_a_law_in_words() -> None:
    assert law_words(FITTED) == "D_K* ≈ 1.20 [1.00, 1.40] · (x)"
    assert law_words(NONE) == "no fit: why"
    power = replace(POWER, predictor="m' log2(m) / d_model")
    assert law_words(power) == "D_K* ≈ 0.500 · (m′ log₂ m / d_model) ^ 1.30 [1.10, 1.50]"
    line = replace(
        FITTED, through_origin=False, intercept=-6.5, intercept_low=-8.0, intercept_high=-5.0
    )
    assert law_words(line) == ("D_K* ≈ 1.20 [1.00, 1.40] · (x), intercept −6.50 [−8.00, −5.00]")


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
    assert paper_law_words(law) == words


def test_what_limits_the_thresholds() -> None:
    limited_by = ["capacity", "budget", None, "capacity"]
    assert findings.limits(pd.DataFrame({"limited_by": limited_by})) == (
        "Of 3 thresholds, 1 would be lower with a larger training budget: D_K still falls at "
        "larger step limits. The other 2 are the same at the two largest."
    )


def test_what_passes() -> None:
    study = made_up.study_of([(64, 16)], target=0.95)
    cells = [{"m": 64, "d_model": 16}]
    errors = parse_study({"name": "errors", "model": "value", "cells": cells})
    for asked, what in (
        (study, "a mean test score of 0.95 over"),
        (errors, "a mean test error (MSE) of at most 0.5 over"),
    ):
        (said, *_) = paragraphs(summary.section(made_up.results_of(asked, [], [])))
        assert what in said


def test_a_certificate_without_a_pass_tells_the_failure() -> None:
    text = '{"pass": null, "fail": {"d_k": 5, "mean_score": 0.9, "n_seeds": 10}}'
    assert certificate_words(text, 10) == "fails at 5 (10 seeds, mean 0.9000)"
