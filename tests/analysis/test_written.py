"""A report in a store: what is written there, and when it would be written the same again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rgr_dist.analysis.load import StudyResults, open_results
from rgr_dist.analysis.report.publish import comparison, publish, publish_comparison, report
from rgr_dist.analysis.report.report_cache import Written, origin_of, written_before
from rgr_dist.store.storage import StoreError
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study
from tests.analysis.pages.made_up_studies import (
    answers,
    facts_study,
    relations,
    searched,
    study_of,
    triples,
)
from tests.store.made_up_runs import run_row

HOME = "studies/made-up"


def small() -> Study:
    return study_of([{"m": 32, "d_model": 16}], search={"seeds": 2, "heads": [1, 2]})


def results_in(store: Store) -> StudyResults:
    store.write_text(f"{HOME}/study.yaml", small().to_yaml())
    return searched(small(), store, relations)


def again(store: Store, study: Study | None = None) -> Written | None:
    return written_before(open_results(study or small(), store), store)


@pytest.mark.parametrize("root", ["store", "mock://bucket/prefix"])
def test_a_report_lies_in_the_store_and_is_known_there(root: str, tmp_path: Path) -> None:
    store = Store(root if "://" in root else tmp_path / root)
    results = results_in(store)
    written = publish(results, store)
    home = f"{tmp_path}/store" if root == "store" else "mock://bucket/prefix"
    assert written.address == f"{home}/{HOME}/report/index.html"
    at = r"At \(m, d_model\) = \(\d+, \d+\), D_K\* = \d+ \[\d+–\d+\] at h\* = \d+\."
    assert re.fullmatch(at, written.headline)
    page, files = report(results)
    assert store.read_text(f"{HOME}/report/index.html") == page
    for name, content in files.items():
        assert store.read_bytes(f"{HOME}/report/{name}") == content
    assert store.read_bytes(f"{HOME}/laws.json") == files["laws.json"]
    kept = json.loads(store.read_text(f"{HOME}/written.json") or "")
    assert kept["files"][f"{HOME}/laws.json"] == hashlib.sha256(files["laws.json"]).hexdigest()
    assert len(kept["files"]) == len(files) + 2
    assert again(store) == written


def test_whatever_a_report_follows_from_has_it_written_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(results_in(store), store)
    widths = [{"cell_id": "x", "model": "max", "graph": "permutation", "degree": 1, "m": 2}]
    changes: list[tuple[bool, Callable[[], object]]] = [
        (True, lambda: store.write_study_table("made-up", "thresholds", widths)),
        (False, lambda: store.write_study_table("other", "thresholds", widths)),
        (False, lambda: store.write_text(f"{HOME}/prior.json", "{}")),
        (False, lambda: store.append([run_row(cell=small().cells[0], seed=77)])),
    ]
    assert again(store) is not None
    for is_same, change in changes:
        before = origin_of(open_results(small(), store), store)
        change()
        assert (origin_of(open_results(small(), store), store) == before) == is_same
    assert again(store) is None
    publish(open_results(small(), store), store)
    assert again(store) is not None
    assert again(store, study_of([{"m": 32, "d_model": 16}], search={"heads": [1, 2]})) is None


@pytest.mark.parametrize("name", ["report/index.html", "report/best.csv", "laws.json"])
def test_a_report_that_is_not_whole_is_written_again(name: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(results_in(store), store)
    assert again(store) is not None
    (tmp_path / HOME / name).write_text("torn")
    assert again(store) is None
    (tmp_path / HOME / name).unlink()
    assert again(store) is None


def test_a_report_without_laws_leaves_no_file_of_them(tmp_path: Path) -> None:
    store = Store(tmp_path)
    search = {"mode": "grid", "D_K": [8, 16], "heads": [1, 2], "seeds": 2}
    cells = [{"m": 64, "d_model": 16}]
    study = study_of(cells, model="transformer", context={"length": 8}, search=search)
    told = publish(searched(study, store, answers), store)
    assert "accuracy" in told.headline
    assert store.read_bytes(f"{HOME}/laws.json") is None
    of_facts = Store(tmp_path / "facts")
    told = publish(searched(facts_study(), of_facts, triples), of_facts)
    assert "D_V* is 2 to 6 in 5 of 5 cells of 8 to 64 facts" in told.headline


@pytest.mark.parametrize("root", ["", "mock://bucket/prefix"])
def test_a_comparison_lies_beside_the_first_report(root: str, tmp_path: Path) -> None:
    store = Store(root or tmp_path / "one")
    one = results_in(store)
    other = results_in(Store(tmp_path / "other"))
    address = publish_comparison(one, other, ("one", "other"), store)
    assert address == f"{root or tmp_path / 'one'}/{HOME}/beside-made-up/index.html"
    page, files = comparison(one, other, ("one", "other"))
    assert store.read_text(f"{HOME}/beside-made-up/index.html") == page
    assert store.read_bytes(f"{HOME}/beside-made-up/study-b.yaml") == files["study-b.yaml"]


def test_a_folder_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    store = Store(tmp_path)
    results = results_in(store)
    (tmp_path / HOME).mkdir(parents=True, exist_ok=True)
    (tmp_path / HOME / "report").write_text("a file where a folder should be")
    with pytest.raises(StoreError) as caught:
        publish(results, store)
    told = str(caught.value)
    assert told.startswith(f"--store {tmp_path}: cannot store {HOME}/report/")
    assert "None" not in told
