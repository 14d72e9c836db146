"""Tables, sentences and figures of facts from rows made up by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rgr_dist.analysis.facts import tables as facts
from rgr_dist.analysis.facts.figures import draw_ranks
from rgr_dist.analysis.facts.section import ranks, splits
from rgr_dist.analysis.facts.statements import statements
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.report import contents
from rgr_dist.analysis.report.sections import summary
from rgr_dist.analysis.thresholds.listing import best_records
from rgr_dist.store.schema import RUNS, THRESHOLDS
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis.made_up import frame, results_of, run_row
from tests.analysis.test_facts import TINY


def made_up() -> tuple[Study, StudyResults]:
    """The tiny study: one cell found in both settings, one censored, one not finished."""
    study = parse_study(TINY)
    seeds = {"mean_score": 0.9, "n_seeds": 2}
    ends = {"pass": {"D_V": 3, "d_vo": 3, **seeds}, "fail": {"D_V": 2, "d_vo": 2, **seeds}}
    told = {
        (0, 1): {"d_vo": 3, "D_V": 3, "D_V_low": 2, "D_V_high": 4, "status": "found",
                 "mean_score": 0.9, "n_seeds": 2, "certificate": json.dumps(ends),
                 "confirmed": True},
        (0, 2): {"d_vo": 3, "D_V": 3, "D_V_low": 3, "D_V_high": 3, "status": "found",
                 "mean_score": 0.95, "n_seeds": 2},
        (1, 1): {"status": "censored"},
        (1, 2): {"status": "open", "D_V_low": 2},
        (2, 1): {"status": "open"},
    }  # fmt: skip
    rows = [
        {"cell_id": cell.cell_id, "model": "facts", "m": cell.m, "d_model": cell.d_model}
        | {"n_edges": cell.m, "max_steps": cell.training.max_steps, "h": 1, "d_k": d_qk}
        | told[at, d_qk]
        for at, cell in enumerate(study.cells)
        for d_qk in (1, 2)
        if (at, d_qk) in told
    ]
    return study, StudyResults(study, frame([], RUNS), frame(rows, THRESHOLDS))


def test_thresholds_known_by_hand() -> None:
    study, results = made_up()
    rows = facts.rows_of_facts(results)
    names = ("facts", "d_qk", "d_vo", "D_V", "D_V_low", "D_V_high", "D_V_fails", "parameters")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (18, 1, 3, 3, 2, 4, 2, 2 * 6 * (1 + 3)),
        (18, 2, 3, 3, 3, 3, 0, 2 * 6 * (2 + 3)),
        (6, 1, None, None, 5, None, 4, None),
        (6, 2, None, None, 2, None, 0, None),
        (12, 1, None, None, None, None, 0, None),
    ]
    first = rows[0]
    sizes = ("model", "database", "keys", "queries", "values", "d_model", "h", "max_steps")
    assert [first[name] for name in sizes] == ["facts", "low-rank", 6, 3, 4, 6, 1, 30]
    assert first["layer_rank_bound"] == min(3 * 3 + 3, 6 * 3, 6 * 3, 6 * 4, 3 * 4)
    assert (first["confirmed"], rows[1]["confirmed"], rows[1]["certificate"]) == (True, None, None)
    best = best_records(results)
    assert [type(row["h"]) for row in best] == [int, type(None), type(None)]
    assert [(row["d_qk"], row["D_V"], row["D_V_low"], row["status"]) for row in best] == [
        (2, 3, 3, "found"),  # of equals, the better mean
        (None, None, 2, "open"),
        (None, None, None, "open"),
    ]
    assert facts.headline(rows, study) == (
        "D_V* is 3 in 1 of 3 cells of 18 facts; d_qk = 1 is enough for it."
    )
    assert facts.headline(rows[2:], study) == "No threshold was found."
    worse = [rows[0] | {"D_V": 4, "d_vo": 4}, rows[1], rows[2] | {"D_V": 2, "d_vo": 2}]
    assert facts.headline(worse, study).startswith("D_V* is 2 to 3 in 2 of 2 cells of 6 to 18 fac")
    assert facts.headline(worse, study).endswith("; d_qk = 1 is enough for it in 1 of those 2.")
    found = [row for row in rows if row["D_V"]]
    (mark,) = draw_ranks(found, "d_qk").panels[0].points
    assert (mark.x, mark.y, "d_qk = 1, 2" in mark.text) == (rows[0]["rank_high"], 12, True)
    (named,) = draw_ranks(found, "d_qk", is_of_each_arm=False).panels[0].lines[1:]
    assert (named.points, named.label) == (((mark.x, mark.y),), rows[0]["short"])


def test_means_at_each_tau() -> None:
    rows = [
        {"by_tau": [[0.5, 1.0, 8], [0.9, 0.5, 6]], "rank_logits": 7, "rank_bound": 7},
        {"by_tau": [[0.5, 0.5, 4], [0.9, 0.25, 2]], "rank_logits": 5, "rank_bound": 4},
    ]
    assert facts.by_tau(rows) == [
        {"tau": 0.5, "accuracy": 0.75, "rank": 6.0, "above_bound": 1, "gap": 1.0, "n": 2},
        {"tau": 0.9, "accuracy": 0.375, "rank": 4.0, "above_bound": 0, "gap": 2.0, "n": 2},
    ]


def frontier(cell: str, widths: dict[int, int | None]) -> list[dict[str, Any]]:
    return [{"cell_id": cell, "d_qk": d_qk, "d_vo": d_vo} for d_qk, d_vo in widths.items()]


def test_which_width_capacity_follows() -> None:
    halves = frontier("a", {1: 8, 2: 4, 4: 2, 8: None})
    level, falls = frontier("b", {1: 4, 2: 4, 4: 4}), frontier("c", {1: 8, 4: 4})
    alone = frontier("d", {1: 4, 2: None})
    told = statements([*halves, *level, *alone], [], "d_qk")[0]
    assert (told["verdict"], told["cells"]) == ("mixed", 2)
    assert [told[name] for name in ("change", "change_low", "change_high")] == pytest.approx(
        [2**-0.5 - 1, -0.5, 0.0]
    )
    (supported, *_), (at_half, *_) = (
        statements([*level, *frontier("c", {1: 9, 4: width})], [], "d_qk") for width in (5, 4)
    )
    assert (supported["verdict"], at_half["verdict"]) == ("supported", "mixed")
    assert statements(falls, [], "d_qk")[0]["cells"] == 1
    for rows, arm in ((alone, "d_qk"), ([row | {"h": 1} for row in halves], "h")):
        open_ = statements(rows, [], arm)[0]
        assert (open_["verdict"], "cells" in open_) == ("not asked by this study", False)


def test_where_key_width_stops_to_save_value_width() -> None:
    falls = frontier("a", {8: 20, 1: 40, 4: 22, 2: 23})  # 22 is the most that is within 10 % of 20
    rises = frontier("b", {1: 10, 2: 12, 8: 13})
    told = statements([*falls, *rises], [], "d_qk")[1]
    del told["statement"]
    assert told == {
        "verdict": "supported", "cells": 2, "first_knee": 1, "last_knee": 4, "largest": 8,
        "worse": 1,
    }  # fmt: skip
    late = statements([*frontier("a", {1: 9, 2: 7, 4: 5})], [], "d_qk")[1]
    assert (late["verdict"], late["first_knee"]) == ("mixed", 4)
    by_heads = [row | {"h": row["d_qk"]} for row in falls]
    for rows, arm in ((frontier("a", {1: 9, 2: 7, 4: None}), "d_qk"), (by_heads, "h")):
        assert statements(rows, [], arm)[1]["verdict"] == "not asked by this study"


@pytest.mark.parametrize(
    ("widths", "knee", "worse"),
    [
        ({1: 2, 2: 1, 4: 1}, 2, 0),
        ({1: 3, 2: 2, 4: 2, 8: 3}, 2, 1),
        ({1: 12, 2: 11, 4: 10, 8: 12}, 2, 1),
    ],
)
def test_of_small_widths_one_more_is_not_within_a_tenth(
    widths: dict[int, int | None], knee: int, worse: int
) -> None:
    told = statements(frontier("a", widths), [], "d_qk")[1]
    assert (told["first_knee"], told["worse"]) == (knee, worse)


def layer(gaps: dict[float, int], argmax: int = 5, bound: int = 6) -> dict[str, Any]:
    """A run whose logits have rank 10 and whose tensors at each tau miss it by so much."""
    by_tau = [[tau, 0.5, 10 - gap] for tau, gap in gaps.items()]
    return {"rank_logits": 10, "rank_argmax": argmax, "rank_bound": bound, "by_tau": by_tau}


def test_which_tau_matches_the_rank() -> None:
    runs = [layer({0.5: 4, 0.9: 1, 0.95: 1}), layer({0.5: 2, 0.9: -2, 0.95: 2})]
    told = statements([], runs, "d_qk")[2]
    del told["statement"]
    assert told == {
        "verdict": "supported", "layers": 2, "best_tau": "0.9, 0.95", "gap": 1.5,
        "claimed_gap": 1.5, "largest_gap": 3.0, "rank_logits": 10.0,
    }  # fmt: skip
    other = statements([], [layer({0.5: 0, 0.95: 1})], "d_qk")[2]
    assert other["verdict"] == "not supported"
    alike = statements([], [layer({0.5: 1, 0.95: 1})], "d_qk")[2]
    assert alike["verdict"] == "undecided, since the rank hardly changes with τ"
    assert statements([], [], "d_qk")[2]["verdict"] == "not asked by this study"


def test_layers_whose_argmax_has_more_rank_than_their_logits_can_have() -> None:
    runs = [layer({0.95: 0}, argmax=6, bound=6), layer({0.95: 0}, argmax=15, bound=10)]
    told = statements([], runs, "d_qk")[3]
    del told["statement"]
    assert told == {
        "verdict": "supported", "layers": 2, "above": 1, "most": 1.5, "logits_above": 1,
    }  # fmt: skip
    assert statements([], runs[:1], "d_qk")[3]["verdict"] == "not seen"
    assert statements([], [], "d_qk")[3] == {
        "statement": "Argmax and softmax inflate rank",
        "verdict": "not asked by this study",
    }


def test_every_split_of_a_total_has_its_mean() -> None:
    """Scores by hand; the page begins with a point for each split, and fits no law by d_qk.

    The narrowest split that passes is D_V*: marked, and the only one compared with a rank.
    """
    search = {"axis": "d_vo", "mode": "grid", "per": {"total": 4}, "seeds": 2}
    search["target"] = 0.9
    study = parse_study(TINY | {"cells": TINY["cells"][:1], "search": search})
    scores = {1: (0.59, 0.61), 2: (1.0, 0.8), 3: (0.2, 0.2)}  # by d_vo
    rows = [
        run_row(study.cells[0], 1, 4 - d_vo, seed, score, d_vo=d_vo, D_V=d_vo)
        for d_vo, own in scores.items()
        for seed, score in enumerate(own)
    ]
    cell, ends = study.cells[0], {"status": "found", "mean_score": 0.9, "n_seeds": 2}
    sizes = {"cell_id": cell.cell_id, "m": cell.m, "d_model": cell.d_model, "n_edges": cell.m}
    passing = [
        sizes | ends | {"model": "facts", "h": 1, "d_k": 4 - d_vo, "d_vo": d_vo, "D_V": d_vo}
        for d_vo in (2, 3)
    ]
    results = results_of(study, rows, passing)
    told = facts.by_split(results)
    assert told[["d_vo", "d_qk"]].to_numpy().tolist() == [[1, 3], [2, 2], [3, 1]]
    assert told["mean_score"].tolist() == pytest.approx([0.6, 0.9, 0.2])
    assert told["high"][0] - 0.6 == pytest.approx(12.7062 * 0.01)  # Student's t of one degree
    assert (told["low"][1], told["high"][1]) == (0, 1)
    assert facts.wider_fails(results) == {study.cells[0].cell_id}
    rows[-1]["score"] = 1.0  # the mean of the widest is 0.6, but its interval ends at 1
    maybe = results_of(study, rows, passing)
    assert facts.wider_fails(maybe) == set()
    assert facts.wider_fails(maybe, "mean_score") == {study.cells[0].cell_id}
    again = "In 1 of 1 cell the mean of a wider split misses the target again, though its 95 %"
    assert summary.findings(maybe)[1].startswith(again)
    assert not any("again" in said for said in summary.findings(results))
    section = splits(results)
    assert section is not None
    (panel,) = section.figures[0].panels
    assert [point.x for point in panel.points] == [1, 2, 3]
    assert [point.y for point in panel.points] == pytest.approx([0.6, 0.9, 0.2])
    (star,) = [line for line in panel.lines if line.look == "guide"]
    assert ({x for x, _ in star.points}, panel.title[1]) == ({2}, "D_V* = 2")
    assert [row["D_V"] for row in ranks(results).shown[0].rows] == [2]
    assert [one.name for one in contents.sections(results)][:3] == ["summary", "totals", "cells"]
    passes = {"d_vo": 2, "D_V": 2, "cell_id": "one", "facts": 18, "D_V_fails": 0}
    fails = passes | {"d_vo": None, "D_V": None, "D_V_fails": 3}
    said = "At d_qk + d_vo = 4, D_V* is 2 in 1 of 1 cell of 18 facts"
    assert facts.headline([passes, fails], study) == f"{said}."
    assert facts.headline([passes, fails], study, 1) == f"{said}; in 1 of them a wider one fails."
    other = fails | {"cell_id": "other"}
    assert facts.headline([passes, other], study) == f"{said.replace('1 cell', '2 cells')}."
