"""What the page says of settings, cost and origins, and its tables as plain rows."""

from __future__ import annotations

import pandas as pd

from rgr_dist.analysis.page.section import Section
from rgr_dist.analysis.report.provenance import differences, origins, settings
from rgr_dist.analysis.rows import by_size, rows_of
from rgr_dist.study.address import PROTOCOL
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up
from tests.analysis.page_numbers.reading import paragraphs


def cost_words(**values: float) -> str:
    """What a page says of these totals."""
    none = dict.fromkeys(["probes", "runs", "failed", "spared", "steps", "seconds"], 0)
    total = pd.Series(none | values)
    section = Section(name="cost", title="", template="cost", values={"total": total})
    (said,) = paragraphs(section)
    return said


def test_the_cost_in_words() -> None:
    assert cost_words() == "Nothing has been trained yet."
    spent = {"probes": 2, "runs": 1, "steps": 30_000, "seconds": 200.0, "spared": 19}
    assert cost_words(**spent) == (
        "1 run of 2 probes: 30,000 training steps in 3 minutes and 20 seconds of processor time, "
        "150 steps per second. 19 seeds of these probes did not run: no verdict needed them."
    )
    assert cost_words(**spent, failed=2).endswith("needed them. 2 runs failed.")
    assert cost_words(runs=1) == (
        "1 run of 0 probes: 0 training steps in 0 seconds of processor time."
    )


def test_settings_name_the_cells_that_differ_after_the_most_common_value() -> None:
    steps = {(32, 16): 9, (64, 16): 7, (128, 16): 7, (256, 16): 7, (512, 16): 9, (512, 32): 8}
    cells = [
        {"m": m, "d_model": d_model, "training": {"max_steps": limit}}
        for (m, d_model), limit in steps.items()
    ]
    search = {"heads": [1, 2], "seeds": 3, "keep_within": None}
    rows = settings(parse_study({"name": "made-up", "cells": cells, "search": search}))
    told = dict(rows)
    assert rows[0] == ("training protocol version", str(PROTOCOL))
    assert told["training.max_steps"] == (
        "7, but 9 (m=32,d_model=16; m=512,d_model=16), 8 (m=512,d_model=32)"
    )
    shown = {"graph.family": "permutation", "search.heads": "1, 2", "search.keep_within": "none"}
    assert told | shown == told
    assert not {"m", "d_model", "training.tolerance", "training.batch_size"} & set(told)


def test_origins_count_what_trained_the_runs() -> None:
    study = made_up.study_of([(64, 16)], heads=[2], seeds=3, extra_seeds=0)
    (cell,) = study.cells
    ended = pd.Timestamp("2026-01-02T05:06:07Z")
    rows = [
        made_up.run_row(cell, 2, 5, 0, 0.9, git_revision="0123abc"),
        made_up.run_row(cell, 2, 5, 1, 0.999, engine="fused", git_revision="0123abc"),
        made_up.run_row(cell, 2, 5, 2, 0.9, finished_at=ended),
        made_up.run_row(cell, 2, 5, 3, 0.9, engine="a seed too many"),
    ]
    results = made_up.results_of(study, rows, [])
    assert origins(results.runs, study) == [
        ("engine", "made up (2 runs); fused (1 run)"),
        ("versions", "rgr-dist=0.1.0"),
        ("source revision", "0123abc"),
        ("processor", "cpu: made up"),
        ("stop reason", "max_steps (2 runs); converged (1 run)"),
        ("seeds", "0 to 2"),
        ("runs ended", "2026-01-02 03:04 UTC to 2026-01-02 05:06 UTC"),
    ]
    one = made_up.results_of(study, rows[:1], [])
    assert origins(one.runs, study)[-1] == ("runs ended", "2026-01-02 03:04 UTC")
    none = origins(made_up.results_of(study, [], []).runs, study)
    titles = ["engine", "versions", "source revision", "processor", "stop reason", "seeds"]
    assert none == [(title, "–") for title in titles]


def test_rows_are_plain_and_sorted_by_size() -> None:
    values = [(128, 16, 1, 5.0, 0.5, "found"), (64, 32, 1, None, None, None),
              (64, 16, 4, 3.0, 1.0, "open"), (64, 16, 1, 2.0, 0.25, "x")]  # fmt: skip
    names = ["m", "d_model", "degree", "d_k", "mean_score", "status"]
    table = pd.DataFrame(values, columns=names).astype({"m": "Int64"})
    rows = [tuple(row.values()) for row in by_size(table)]
    assert rows == [values[3], values[2], values[1], values[0]]
    assert [type(value) for value in rows_of(table)[0].values()] == [int, int, int, int, float, str]


def test_what_differs_from_the_paper_is_told_and_nothing_else() -> None:
    cells = [{"m": 64, "d_model": 16}, {"m": 512, "d_model": 16}]
    table_2 = {"training": {"max_steps": 80_000}}
    as_there = parse_study({"name": "same", "cells": [cells[0], cells[1] | table_2]})
    assert differences(as_there) == []
    changed = parse_study(
        {
            "name": "other",
            "cells": [cells[0], cells[1] | {"training": {"max_steps": 20_000, "patience": 9}}],
            "training": {"learning_rate": 0.01},
            "context": {"length": 8},
            "search": {"seeds": 3, "heads": [1, 2]},
        }
    )
    assert differences(changed) == [
        ("context.length", "8", "16"),
        ("training.learning_rate", "0.01", "0.001"),
        ("training.max_steps", "20,000 (m=512,d_model=16)", "80,000"),
        ("training.patience", "9 (m=512,d_model=16)", "5"),
        ("search.seeds", "3", "10"),
    ]


def test_cells_are_named_where_their_names_do_not_tell_the_setting() -> None:
    cells = [
        {"m": m, "d_model": 16, "training": {"learning_rate": 0.01 if m < 71 else 0.001}}
        for m in range(64, 80)
    ]
    study = parse_study({"name": "by-size", "cells": cells})
    names = "; ".join(f"m={m},d_model=16" for m in range(64, 71))
    assert dict(settings(study))["training.learning_rate"] == f"0.001, but 0.01 ({names})"
    assert ("training.learning_rate", f"0.01 ({names})", "0.001") in differences(study)


def test_cells_that_differ_are_counted_where_they_are_many() -> None:
    rates = {"learning_rate": [0.001, 0.01]}
    cells = [{"m": [64, 128, 256, 512], "d_model": [16, 32]}]
    study = parse_study({"name": "many", "cells": cells, "training": rates | {"max_steps": 20_000}})
    assert dict(settings(study))["training.learning_rate"] == "0.001, but 0.01 (8 cells)"
    at_256, at_512 = (
        "; ".join(f"m={m},d_model=16,learning_rate={rate}" for rate in (0.001, 0.01))
        for m in (256, 512)
    )
    assert differences(study) == [
        ("training.learning_rate", "0.01 (8 cells)", "0.001"),
        ("training.max_steps", f"20,000 ({at_256})", "30,000"),
        ("training.max_steps", f"20,000 ({at_512})", "80,000"),
    ]
