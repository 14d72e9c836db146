"""The journal of trials, in a folder and in a bucket."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from rgr_dist.store.storage import StoreError
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study
from rgr_dist.tuning.journal import finished_trials, journal_place, open_journal
from tests.planning.made_up_runs import study_of

NAME = "made-up-trials"


def add_trials(store: Store, study: Study, count: int) -> None:
    journal = open_journal(store, study)
    trials = optuna.create_study(
        storage=journal, study_name=NAME, load_if_exists=True, direction="maximize"
    )
    for _ in range(count):
        trial = trials.ask()
        trial.report(0.5, 1)
        trials.tell(trial, trial.suggest_float("x", 0, 1))


@pytest.mark.parametrize("root", ["mock://bucket/results", None])
def test_trials_are_read_back_in_order_and_gone_on_with(root: str | None, tmp_path: Path) -> None:
    store, study = Store(root or tmp_path), study_of()
    assert finished_trials(open_journal(store, study), NAME) == []
    seen = []
    for count in (2, 1):
        add_trials(store, study, count)
        trials = finished_trials(open_journal(store, study), NAME)
        assert [trial.number for trial in trials] == list(range(len(trials)))
        assert [trial.value for trial in trials] == [trial.params["x"] for trial in trials]
        assert trials[: len(seen)] == seen
        seen = trials
    assert len(seen) == 3
    assert finished_trials(open_journal(store, study), "other") == []


def test_optuna_reads_the_file_of_a_folder(tmp_path: Path) -> None:
    store, study = Store(tmp_path), study_of()
    add_trials(store, study, 2)
    journal = JournalFileBackend(journal_place(store, study))
    summaries = optuna.get_all_study_summaries(JournalStorage(journal))
    assert [(summary.study_name, summary.n_trials) for summary in summaries] == [(NAME, 2)]


def test_a_last_line_without_an_end_is_left_out(tmp_path: Path) -> None:
    store, study = Store(tmp_path), study_of()
    add_trials(store, study, 1)
    with Path(journal_place(store, study)).open("a") as file:
        file.write('{"op_code": 5, "torn')
    assert len(finished_trials(open_journal(store, study), NAME)) == 1
    add_trials(store, study, 1)
    assert len(finished_trials(open_journal(store, study), NAME)) == 2


@pytest.mark.parametrize("score", ["[]", '["x"]', "[true]", "[7.5]", "[-1]", "[NaN]", "[0.1,0.2]"])
def test_a_score_that_no_trial_can_have_is_told(score: str, tmp_path: Path) -> None:
    store, study = Store(tmp_path), study_of()
    add_trials(store, study, 1)
    place = Path(journal_place(store, study))
    text = place.read_text()
    (value,) = [
        json.dumps(trial.values) for trial in finished_trials(open_journal(store, study), NAME)
    ]
    assert text.count(f'"values":{value}') == 1
    place.write_text(text.replace(value, score))
    with pytest.raises(StoreError, match=r"tuning\.journal: not a readable journal: "):
        open_journal(store, study)


@pytest.mark.parametrize("value", ["[]", "null", '"x"', "-5", "1.5", "1e308", "NaN", "true", None])
def test_a_protocol_that_no_trial_can_have_is_told(value: str | None, tmp_path: Path) -> None:
    """None leaves the value of the second trial out."""
    store, study = Store(tmp_path), study_of()
    add_trials(store, study, 2)
    place = Path(journal_place(store, study))
    lines = place.read_text().splitlines(keepends=True)
    at = max(number for number, line in enumerate(lines) if "param_value_internal" in line)
    changed = {**json.loads(lines[at]), "param_value_internal": json.loads(value or "0")}
    lines[at] = json.dumps(changed) + "\n" if value else ""
    place.write_text("".join(lines))
    with pytest.raises(StoreError, match=r"not a readable journal: trial 1 has "):
        open_journal(store, study)


@pytest.mark.parametrize(
    ("kind", "attributes", "value"),
    [
        ("Categorical", {"choices": ["a"]}, 1),
        ("Categorical", {"choices": [0.5]}, 0),
        ("Int", {"step": 1, "low": 1, "high": 2, "log": False}, math.inf),
        ("IntUniform", {"low": 1, "high": 2}, 1),
    ],
)
def test_a_distribution_of_another_kind_is_told(
    kind: str, attributes: dict[str, Any], value: float, tmp_path: Path
) -> None:
    store, study = Store(tmp_path), study_of()
    add_trials(store, study, 1)
    place = Path(journal_place(store, study))
    lines = place.read_text().splitlines()
    (at,) = [number for number, line in enumerate(lines) if "param_value_internal" in line]
    other = json.dumps({"name": f"{kind}Distribution", "attributes": attributes})
    changed = {**json.loads(lines[at]), "distribution": other, "param_value_internal": value}
    lines[at] = json.dumps(changed)
    place.write_text("\n".join(lines) + "\n")
    with pytest.raises(StoreError, match=r"not a readable journal: .*; move it away"):
        open_journal(store, study)


@pytest.mark.parametrize("directions", [[], [1], [2, 2]])
def test_trials_that_look_for_another_score_are_told(directions: list[int], tmp_path: Path) -> None:
    store, study = Store(tmp_path), study_of()
    add_trials(store, study, 1)
    place = Path(journal_place(store, study))
    text = place.read_text()
    assert text.count('"directions":[2]') == 1
    place.write_text(text.replace('"directions":[2]', f'"directions":{directions}'))
    with pytest.raises(StoreError, match="not a readable journal: "):
        open_journal(store, study)


def test_trials_whose_lines_have_shifted_are_told(tmp_path: Path) -> None:
    store, study = Store(tmp_path), study_of()
    add_trials(store, study, 2)
    place = Path(journal_place(store, study))
    lines = [json.loads(line) for line in place.read_text().splitlines()]
    created = [line for line in lines if line["op_code"] == 4]
    changed = [[line for line in lines if line is not lost] for lost in created]
    changed += [
        [{**line, "study_id": 9} if line is lost else line for line in lines] for lost in created
    ]
    changed += [
        [{**line, "trial_id": other} if line.get("trial_id") == 1 else line for line in lines]
        for other in (-1, 2, 0.5, math.nan, None, [1])
    ]
    for logs in changed:
        place.write_text("".join(json.dumps(log) + "\n" for log in logs))
        with pytest.raises(StoreError, match="not a readable journal: "):
            open_journal(store, study)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000 + "\n",
        "nothing of\nthe kind\n",
        "[1]\n",
        '{"op_code": 0}\n',
        '{"op_code": 0, "torn',
        '{"op_code":3,"study_id":0,"system_attr":{}}\n',
        '{"op_code": 99}\n',
        "\xff\n",
    ],
)
def test_what_is_no_journal_is_told_by_its_place(text: str, tmp_path: Path) -> None:
    store, study = Store(tmp_path), study_of()
    place = Path(journal_place(store, study))
    place.parent.mkdir(parents=True)
    place.write_bytes(text.encode("latin-1"))
    with pytest.raises(StoreError, match=r"tuning\.journal: not a readable journal"):
        open_journal(store, study)
