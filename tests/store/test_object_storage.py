"""A store on S3: moto's server, over real requests, some of them late or refused."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest

from rgr_dist.store.storage import StoreError
from rgr_dist.store.store import Store
from tests.store.made_up_runs import run_row
from tests.store.object_storage import Gate, has_credentials, s3_server, uri


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Gate, int]]:
    with s3_server() as running:
        yield running


@pytest.fixture
def gate(server: tuple[Gate, int], monkeypatch: pytest.MonkeyPatch) -> Gate:
    """The gate of the server, open."""
    has_credentials(monkeypatch)
    gate = server[0]
    gate.latency = gate.refuses = 0.0
    return gate


@pytest.fixture
def root(gate: Gate, server: tuple[Gate, int], request: pytest.FixtureRequest) -> str:
    """A place in the bucket that is this test's own."""
    return uri(server[1], str(abs(hash(request.node.name))))


def test_a_bucket_whose_requests_are_late_or_refused_holds_what_a_disk_would(
    gate: Gate, root: str
) -> None:
    gate.latency, gate.refuses, refused = 0.01, 0.1, gate.refused
    store = Store(root)
    assert not store.exists
    assert store.runs().empty
    for seed in range(5):
        store.append([run_row(seed=seed)])
    before = store.runs()
    assert list(before["seed"]) == list(range(5))
    store.compact(above=1)
    pd.testing.assert_frame_equal(Store(root).runs(), before)
    store.write_text("studies/s/note.txt", "name: ∫\n")
    assert Store(root).read_text("studies/s/note.txt") == "name: ∫\n"
    assert Store(root).studies() == ["s"]
    with store.held("s"), Store(root).held("s"):
        pass  # nothing is held in a bucket
    assert gate.refused > refused


def test_a_bucket_that_is_not_there_is_told(gate: Gate, root: str) -> None:
    store = Store(root.replace("s3://", "s3://not-"))
    with pytest.raises(StoreError, match="cannot store"):
        store.append([run_row()])


@pytest.mark.slow
def test_a_bucket_that_refuses_everything_is_told_in_one_line(gate: Gate, root: str) -> None:
    store = Store(root)
    store.append([run_row()])
    gate.refuses = 1.0
    for fault, attempt in (("opened", lambda: Store(root)), ("read", store.runs)):
        with pytest.raises(StoreError, match=f"^--store .*: cannot be {fault}: .*$"):
            attempt()
    with pytest.raises(StoreError, match=r"^--store .*: cannot store .*$"):
        store.append([run_row(seed=1)])
