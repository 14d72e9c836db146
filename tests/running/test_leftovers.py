"""What killed runs leave is swept by the next one; what belongs to others is not touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ray._common.utils import get_default_ray_temp_dir

from rgr_dist.running.leftovers import give_up_session, remove_leftovers, scratch_folder
from rgr_dist.store.owner import is_abandoned, mark

MARK = "from rgr_dist.store.owner import mark; print(mark(), flush=True); input()"


@contextmanager
def another_process() -> Iterator[str]:
    """The mark of a process that lives until the end."""
    with subprocess.Popen(
        [sys.executable, "-c", MARK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


NAME = "session_2026-11-22_02-51-03_824275_2204"


def left_by(owner: str, folder: Path) -> tuple[Path, Path]:
    """A scratch folder and a session folder of Ray with something in them, and its claim."""
    scratch, session = folder / f"rgr-{owner}-abcd", folder / "ray" / NAME
    for place in (scratch / "inner", session / "logs"):
        place.mkdir(parents=True)
        (place / "file").write_text("something")
    claim_of(owner, session).touch()
    return scratch, session


def claim_of(owner: str, session: Path) -> Path:
    return session.parent / f"rgr-{owner}-{session.name}"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_a_process_leaves_is_swept_once_it_has_ended(temporary: Path) -> None:
    with another_process() as owner:
        scratch, session = left_by(owner, temporary)
        assert not is_abandoned(owner)
        remove_leftovers(temporary / "ray")
        assert (scratch / "inner/file").exists()
        assert (session / "logs/file").exists()
    assert is_abandoned(owner)
    remove_leftovers(temporary / "ray")
    assert not scratch.exists()
    assert not session.exists()
    session.mkdir()  # as a process may that outlives its driver
    remove_leftovers(temporary / "ray")
    assert not session.exists()
    remove_leftovers(temporary / "ray")
    claim = claim_of(owner, session)
    assert claim.exists()
    os.utime(claim, (0, 0))
    remove_leftovers(temporary / "ray")
    assert list((temporary / "ray").iterdir()) == []


def test_nothing_of_others_is_swept(temporary: Path) -> None:
    with another_process() as owner:
        pass
    machine, process, born = owner.split("-")
    elsewhere = left_by(
        f"{'0' if machine[0] != '0' else '1'}{machine[1:]}-{process}-{born}", temporary
    )
    unmarked = temporary / "ray/session_of_somebody"
    unmarked.mkdir()
    named_alike = temporary / "rgr-notes"
    named_alike.mkdir()
    linked = temporary / f"rgr-{owner}-link"
    linked.symlink_to(named_alike)
    remove_leftovers(temporary / "ray")
    assert all(path.exists() for path in (*elsewhere, unmarked, named_alike, linked))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another user")
def test_nothing_of_another_user_is_swept(temporary: Path) -> None:
    with another_process() as owner:
        pass
    scratch, session = left_by(owner, temporary)
    for path in (scratch, claim_of(owner, session)):
        os.chown(path, 12345, 12345)
    remove_leftovers(temporary / "ray")
    assert scratch.exists()
    assert session.exists()


def test_a_number_given_to_another_process_does_not_keep_what_the_first_left(
    temporary: Path,
) -> None:
    machine, process, born = mark().split("-")
    assert not is_abandoned(mark())
    assert is_abandoned(f"{machine}-{process}-{int(born) - 1}")


def test_a_scratch_folder_says_whose_it_is_and_goes(temporary: Path) -> None:
    with scratch_folder() as folder:
        assert mark() in folder.name
        remove_leftovers(temporary / "ray")
        assert folder.exists()
    assert list(temporary.iterdir()) == []


KILLED_AS_RAY_STARTS = """
import os, signal
from pathlib import Path
from ray._common.utils import get_default_ray_temp_dir
from rgr_dist.running.cluster import connect

def sessions():
    return set(Path(get_default_ray_temp_dir()).glob(f"session_*_{os.getpid()}"))

def kill():
    while sessions() <= earlier:
        pass
    os.kill(os.getpid(), signal.SIGKILL)

earlier = sessions()  # of a process that had this number before
with connect("local", meanwhile=kill):
    pass
"""


def test_what_a_run_leaves_that_is_killed_as_ray_starts_is_swept(
    temporary: Path,
) -> None:
    rays = Path(get_default_ray_temp_dir())
    earlier = set(rays.glob("rgr-*-session_*"))
    killed = subprocess.Popen([sys.executable, "-c", KILLED_AS_RAY_STARTS])
    assert killed.wait() == -signal.SIGKILL
    (claim,) = set(rays.glob(f"rgr-*-session_*_{killed.pid}")) - earlier
    session = rays / claim.name[claim.name.index("session_") :]
    assert session.exists()
    remove_leftovers(rays)
    assert not session.exists()
    assert claim.exists()  # what Ray has begun may go on for a moment


def test_a_session_that_has_ended_leaves_nothing(tmp_path: Path) -> None:
    session = tmp_path / NAME
    session.mkdir()
    claim_of(mark(), session).touch()
    give_up_session(session)
    assert list(tmp_path.iterdir()) == []
