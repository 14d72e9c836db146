"""Where a store may be, and what happens where it may not."""

from __future__ import annotations

import re
import resource
from pathlib import Path

import pytest

from rgr_dist.store import storage
from rgr_dist.store.storage import StoreError
from rgr_dist.store.store import Store
from tests.store.made_up_runs import run_row, tree


def test_a_file_uri_names_the_same_store_as_its_path(tmp_path: Path) -> None:
    Store(tmp_path.as_uri()).append([run_row(seed=0)])
    Store(str(tmp_path)).append([run_row(seed=1)])
    for root in (tmp_path.as_uri(), str(tmp_path), tmp_path, f"{tmp_path}/"):
        assert list(Store(root).runs()["seed"]) == [0, 1]
    with Store(tmp_path.as_uri()).held("rgr run x"):
        pass
    assert Store(tmp_path.as_uri()).local_path == tmp_path
    assert Store("mock://bucket/prefix").local_path is None  # pyarrow's file system in memory


def test_object_storage_that_refuses_is_told_in_one_line() -> None:
    store = Store("mock://bucket/prefix")
    store.write_text("studies/s", "")
    store.write_text("drivers", "a file where a folder should be")
    with pytest.raises(StoreError) as caught, store.held("rgr run x"):
        pass
    told = str(caught.value)
    assert told.startswith("--store mock://bucket/prefix: cannot store drivers/")
    assert told.endswith("; give a folder or URI where files can be made")
    assert "None" not in told


def test_studies_are_the_folders_of_studies_by_name(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.studies() == []
    for name in ("b", "a"):
        store.write_text(f"studies/{name}/study.yaml", f"name: {name}")
    store.write_text("studies/notes.txt", "mine")
    assert not [name for name in tree(tmp_path) if Path(name).name.startswith(".")]
    assert store.studies() == ["a", "b"]
    assert store.read_text("studies/a/study.yaml") == "name: a"
    assert store.read_text("studies/c/study.yaml") is None


def test_a_relative_path_stays_where_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store("here")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.append([run_row()])
    assert len(Store(tmp_path / "here").runs()) == 1


@pytest.mark.parametrize(
    "root",
    ["", " ", "s3://", "mock://", "://", "nowhere://b/c", "a\0b", "file:///a?b", "s3://a/b#c"],
)
def test_a_uri_that_names_no_location_is_refused_in_one_line(root: str) -> None:
    told = f"--store {root}: cannot be opened: ".replace("\0", r"\x00")
    told = told if root.strip() else "--store: empty; give"
    with pytest.raises(StoreError, match=rf"^{re.escape(told)}.+$") as caught:
        Store(root)
    assert not str(caught.value).endswith("None")


@pytest.mark.parametrize("root", ["memory://x", "S3://b/x", "nowhere://b/c"])
def test_a_scheme_that_nothing_opens_is_told_with_what_would_be_valid(root: str) -> None:
    said = f"--store {root}: cannot be opened: Unrecognized filesystem type in URI: {root}; give a "
    with pytest.raises(StoreError, match=rf"^{re.escape(said)}folder, or a URI such as s3://"):
        Store(root)


@pytest.mark.parametrize("user", ["user:secret", ":secret"])
def test_a_password_in_a_uri_is_shown_nowhere(user: str) -> None:
    assert Store(f"mock://{user}@bucket/prefix").root == "mock://***@bucket/prefix"
    with pytest.raises(StoreError, match=r"^--store nowhere://\*\*\*@b/c: ") as caught:
        Store(f"nowhere://{user}@b/c")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("slip", ["file:/there", "s3:bucket/x"])
def test_a_scheme_without_two_slashes_is_no_folder(slip: str) -> None:
    scheme = slip.partition(":")[0]
    with pytest.raises(StoreError, match=f"^--store {slip}: write {scheme}://… or, for a folder, "):
        Store(slip)
    assert Store(f"./{slip}").local_path == Path.cwd() / slip


@pytest.mark.parametrize("below", ["", "x", "x/y/z"])
def test_a_root_at_or_below_a_file_is_refused_in_one_line(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("mine")
    root = tmp_path / "file" / below
    for attempt in (
        lambda store: store.held("rgr run x").__enter__(),
        lambda store: store.append([run_row()]),
        lambda store: store.write_text("studies/s/study.yaml", "name: s"),
        lambda store: store.write_study_table("s", "thresholds", []),
    ):
        with pytest.raises(StoreError) as caught:
            attempt(Store(root))
        told = str(caught.value)
        assert "\n" not in told
        why = r"cannot store \S+: .*Not a dir" if below else "cannot be opened: it is a file"
        assert re.match(rf"--store {root}: {why}", told)
    assert tree(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_is_no_folder_is_refused_when_read(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("mine")
    with pytest.raises(StoreError) as caught:
        Store(tmp_path).runs()
    told = str(caught.value)
    assert told.startswith(f"--store {tmp_path}: cannot be read: Cannot list directory")
    assert told.endswith("Not a directory")
    assert tree(tmp_path) == ["runs"]


@pytest.mark.parametrize("there", [[], ["a"], ["a/b"], ["a/b/runs"], ["a/b/runs", "a/b/studies"]])
def test_checking_leaves_nothing_that_was_not_there(tmp_path: Path, there: list[str]) -> None:
    for folder in there:
        (tmp_path / folder).mkdir(parents=True)
    store = Store(tmp_path / "a/b")
    if "a/b/runs" in there:
        store.append([run_row()])
    before = tree(tmp_path)
    with store.held("rgr run x"):
        pass
    assert tree(tmp_path) == before


def test_a_text_larger_than_any_of_ours_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "study.yaml").open("wb") as file:
        file.truncate(2**27)
        assert Store(tmp_path).read_text("study.yaml") is not None
        file.truncate(2**27 + 1)
    told = "study.yaml cannot be read: it is larger than 134,217,728 bytes"
    with pytest.raises(StoreError, match=told):
        Store(tmp_path).read_text("study.yaml")


def test_a_file_larger_than_any_memory_is_told_in_one_line(tmp_path: Path) -> None:
    """If it is none of ours, it is damage that takes no memory."""
    Store(tmp_path).append([run_row()])
    with (tmp_path / "runs/part-9.parquet").open("wb") as part:
        part.truncate(2**42)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + 2**31, before[1]))
    try:
        store = Store(tmp_path)
        assert len(store.runs()) == 1
        assert list(store.damaged) == ["runs/part-9.parquet"]
        with (tmp_path / "runs/part-9.parquet").open("ab") as part:
            part.write(b"PAR1")
        with pytest.raises(StoreError) as caught:
            store.runs()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    why = "runs/part-9.parquet cannot be read: it does not fit in memory"
    assert str(caught.value) == f"--store {tmp_path}: {why}"


def test_where_a_file_lies_is_told_as_a_path_or_a_uri_with_its_options(tmp_path: Path) -> None:
    store, page = Store(f"{tmp_path}/store/"), "studies/s/report/index.html"
    store.write_bytes(page, b"\x00\xff", sync=False)
    assert Path(store.address(page)).read_bytes() == b"\x00\xff"
    assert store.address(page) == f"{tmp_path}/store/{page}"
    assert Store("mock://bucket/prefix?now=0").address(page) == f"mock://bucket/prefix/{page}?now=0"


def test_a_folder_that_may_not_be_entered_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)

    def denied(path: Path) -> bool:  # root, as which tests may run, is denied nothing
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", denied)
    with pytest.raises(StoreError, match=r"cannot be read: Permission denied$"), store.held("rgr"):
        pass


def test_the_whole_reason_why_a_uri_cannot_be_opened_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(storage, "TRY", 'import sys; sys.exit("no token\\nsee the manual")')
    with pytest.raises(StoreError, match=r"cannot be opened: no token see the manual$"):
        Store("gs://bucket/results")
