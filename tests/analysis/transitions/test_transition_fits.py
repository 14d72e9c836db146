"""The curves fitted to a transition: shares of passing seeds and scores, recomputed."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.transitions.probes import mean_words, probes_of
from rgr_dist.analysis.transitions.transition_fits import transitions_of
from tests.analysis import made_up


def diverged() -> StudyResults:
    study = made_up.study_of([(64, 16)], heads=[2], seeds=4)
    (cell,) = study.cells
    scores = {
        (2, 9): [0.5, 0.55, 0.5, 0.52],
        (2, 10): [0.999, 0.998, 0.999, None],
        (2, 11): [1.0, 1.0, 1.0, 0.3],
    }
    runs = made_up.probe_rows(cell, scores)
    runs.append(made_up.run_row(cell, 2, 12, 0, None, stop_reason="failed", error="lost"))
    runs.append(made_up.run_row(cell, 2, 12, 1, 1.0))
    return made_up.results_of(study, runs, [made_up.threshold_row(cell, 2, None)])


def test_diverged_collapsed_and_failed_runs_are_counted() -> None:
    results = diverged()
    table = probes_of(results).set_index("d_k")
    assert table["diverged"].to_dict() == {9: 0, 10: 1, 11: 0, 12: 0}
    assert table["collapsed"].to_dict() == {9: 0, 10: 1, 11: 1, 12: 0}
    assert table["failed"].to_dict() == {9: 0, 10: 0, 11: 0, 12: 1}
    assert table["passing"].to_dict() == {9: 0, 10: 3, 11: 3, 12: 1}


def test_a_mean_says_of_how_many_seeds_it_is() -> None:
    table = probes_of(diverged()).set_index("d_k")
    assert mean_words(table.loc[9]) == "0.5175, of 4 seeds"
    assert mean_words(table.loc[12]) == "1.0000, of the one seed that ran; of all, at most 1.0000"
    assert table.loc[12, "mean_low"] == 0.25
    assert not table.loc[12, "complete"]


def test_a_curve_of_scores_is_found_again_whatever_ran_astray() -> None:
    study = made_up.study_of([(64, 16)], heads=[1], seeds=4)
    scores: dict[tuple[int, int], list[float | None]] = {
        (1, d_k): [0.9 / (1 + 2 ** (-(math.log2(d_k) - 4) * 6))] * 3 for d_k in range(6, 33, 2)
    }
    scores[1, 20] += [0.2]
    scores[1, 24] += [None]
    runs = made_up.probe_rows(study.cells[0], scores)
    row = transitions_of(made_up.results_of(study, runs, [])).iloc[0]
    assert (row["score_status"], row["share_status"]) == ("fitted", "never")
    assert row["top"] == pytest.approx(0.9, abs=1e-4)
    assert row["score_middle"] == pytest.approx(16, rel=1e-3)
    assert row["score_width"] == pytest.approx(1 / (6 * math.log(2)), rel=1e-3)


def told_of(heads: np.ndarray) -> pd.DataFrame:
    """The transitions of heads at six widths, with these scores: (heads, widths, seeds)."""
    study = made_up.study_of([(64, 16)], heads=list(range(1, 1 + len(heads))))
    runs = [
        made_up.run_row(study.cells[0], h, d_k, seed, float(score))
        for h, scores in enumerate(heads, 1)
        for d_k, own in zip((2, 4, 6, 8, 12, 16), scores, strict=True)
        for seed, score in enumerate(own)
    ]
    return transitions_of(made_up.results_of(study, runs, []))


def test_equal_scores_have_no_transition() -> None:
    scores = [0.0, 0.5, 0.9, 1.0]
    told = told_of(np.stack([np.full((6, 3), score) for score in scores]))
    assert told["score_status"].tolist() == ["flat"] * 4
    assert told["top"].tolist() == scores
    assert told[["score_middle", "score_width"]].isna().all(axis=None)


def test_scores_that_only_seeds_tell_apart_have_no_transition() -> None:
    """No more often than an F test of 5 % errs: at most 5 of 40, which chance exceeds at 1.4 %."""
    noise = np.random.default_rng(0).normal(0, 0.02, (40, 6, 5))
    assert (told_of(0.6 + noise)["score_status"] == "fitted").sum() <= 5
    rising = np.array([0.3, 0.55, 0.6, 0.65, 0.67, 0.68])[:, None] + noise
    assert (told_of(rising)["score_status"] == "fitted").all()


def test_equal_shares_of_passing_seeds_have_no_transition() -> None:
    row = told_of(np.tile([0.999, 0.9], (1, 6, 1))).iloc[0]
    assert row["share_status"] == "not rising"
    assert pd.isna(row["share_middle"])
