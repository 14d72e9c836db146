"""Files of a store on a disk and in a bucket: where they are, what is listed, when they are safe.

The bucket is pyarrow's own in memory; ``test_object_storage`` has a server.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from rgr_dist.store.storage import Storage, StoreError, write_atomically
from tests.store.made_up_runs import tree

BUCKET = "mock:///bucket/results"


def test_a_file_has_an_address_that_can_be_opened(tmp_path: Path) -> None:
    for root in (tmp_path, f"file://{tmp_path}"):
        storage = Storage(root)
        assert storage.local_path == tmp_path
        assert storage.address("runs/a.parquet") == str(tmp_path / "runs/a.parquet")
    for root in (f"{BUCKET}?region=x&a=?", f"{BUCKET}/?region=x&a=?"):
        storage = Storage(root)
        assert storage.local_path is None
        assert storage.uri == root
        assert storage.address("runs/a.parquet") == f"{BUCKET}/runs/a.parquet?region=x&a=?"


def test_a_password_is_used_and_never_shown() -> None:
    uri = "mock://key:secret@bucket/results"
    storage = Storage(uri)
    assert storage.uri == uri
    assert "secret" not in storage.root + storage.address("a")


@pytest.mark.parametrize("place", ["disk", "bucket"])
def test_a_file_is_read_listed_and_removed(tmp_path: Path, place: str) -> None:
    storage = Storage({"disk": str(tmp_path / "new"), "bucket": BUCKET}[place])
    assert storage.read_bytes("a/b.txt") is None
    assert storage.read_text("a/b.txt") is None
    assert storage.files("a") == []
    storage.write_text("a/c.txt", "∫")
    storage.write_bytes("a/b.txt", b"\xff!")
    assert [file.base_name for file in storage.files("a")] == ["b.txt", "c.txt"]
    assert storage.read_bytes("a/b.txt") == b"\xff!"
    assert storage.read_text("a/b.txt") == "\N{REPLACEMENT CHARACTER}!"
    assert storage.read_text("a/c.txt") == "∫"
    storage.write_text("a/c.txt", "new")
    assert storage.read_text("a/c.txt") == "new"
    for _ in range(2):
        storage.remove("a/b.txt")
    assert [file.base_name for file in storage.files("a")] == ["c.txt"]


def test_a_file_is_complete_and_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, fsync = tmp_path / "a/b.txt", os.fsync
    file.parent.mkdir()
    file.write_text("old")
    seen: list[tuple[str, list[str]]] = []

    def noted(handle: int) -> None:
        fsync(handle)
        seen.append((file.read_text(), tree(file.parent)))

    monkeypatch.setattr(os, "fsync", noted)
    Storage(tmp_path).write_bytes("a/b.txt", b"new")
    (before, names), (after, left) = seen  # the file, then its folder
    assert (before, after) == ("old", "new")
    assert [name.startswith(".") for name in names] == [True, False]
    assert left == ["b.txt"]
    Storage(tmp_path).write_bytes("a/b.txt", b"quick", sync=False)
    write_atomically(file, b"quicker", sync=False)
    assert len(seen) == 2
    write_atomically(file, b"safe")
    assert len(seen) == 4
    assert file.read_bytes() == b"safe"


def test_a_fault_is_told_with_its_place_and_reason_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "x/a").mkdir(parents=True)
    (tmp_path / "b").write_text("")
    storage = Storage(tmp_path)
    for fault in (
        lambda: storage.write_bytes("x/a", b""),
        lambda: storage.write_bytes("b/c", b""),
        lambda: storage.read_bytes("x/a"),
        lambda: storage.remove("x/a"),
        lambda: Storage(tmp_path / "b"),
    ):
        with pytest.raises(StoreError) as error:
            fault()
        assert str(error.value).startswith(f"--store {tmp_path}")
        assert len(str(error.value).splitlines()) == 1
        assert "None" not in str(error.value)
    with pytest.raises(StoreError) as error:
        storage.write_bytes("x/a", b"")
    assert os.strerror(errno.EISDIR) in str(error.value)
    assert "Errno" not in str(error.value)
