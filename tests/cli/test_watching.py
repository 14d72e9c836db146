"""``rgr watch``: the page of a study that runs, served from its store."""

from __future__ import annotations

import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.error import HTTPError

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page, Request

from rgr_dist.cli import call, watching
from rgr_dist.cli.watching import make_server
from rgr_dist.planning.bracket_signs import MEANINGS
from rgr_dist.store.store import Store
from rgr_dist.study.study_file import load_study
from tests.chromium import chromium, needs_chromium


@pytest.fixture
def watched(finished: Path, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of the small study's page and its store, with the first of its runs."""
    runs = Store(finished / "results").runs().head(9)
    rows = runs.astype("object").where(runs.notna(), None).to_dict("records")
    Store(tmp_path / "results").append(rows)
    with served(finished, tmp_path / "results") as address:
        yield address, tmp_path / "results"


@contextmanager
def served(finished: Path, store: Path) -> Iterator[str]:
    """The address of the small study's page."""
    server = make_server(load_study(str(finished / "small.yaml")), Store(store), 0)
    # to look for its end, which else takes half a second
    thread = threading.Thread(target=server.serve_forever, args=[0.02])
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.read().decode()


def test_the_page_fills_in_as_runs_are_stored(watched: tuple[str, Path], finished: Path) -> None:
    address, store = watched
    before, version = read(f"{address}/"), read(f"{address}/version")
    assert f'data-version="{version}"' in before
    left = r"9 runs stored; about \d+ runs or more left, \d+ seconds at the pace of the latest 9\."
    assert re.search(left, before)
    last = pq.read_table(store / "runs", columns=["finished_at"])["finished_at"].to_pylist()
    assert f"The last one ended at {max(last):%Y-%m-%d %H:%M:%S} UTC." in before
    assert all(meaning in before for _, meaning in MEANINGS)
    for part in (finished / "results/runs").iterdir():
        shutil.copy(part, store / "runs" / part.name)
    assert read(f"{address}/version") != version
    after = read(f"{address}/")
    assert "nothing is left" in after
    assert after.count("finished</td>") == 2
    assert "Scores so far" in after
    assert not list(store.glob("studies")), "it writes nothing"


def test_the_page_names_what_is_damaged(watched: tuple[str, Path]) -> None:
    address, store = watched
    (part,) = (store / "runs").iterdir()
    part.write_bytes(part.read_bytes()[:-9])
    page = read(f"{address}/")
    assert f"{part.name} in {store} is damaged and was left out: " in page
    assert "0 runs stored" in page


def test_a_study_whose_runs_all_failed_has_a_page(finished: Path, tmp_path: Path) -> None:
    runs = Store(finished / "results").runs()
    runs[["stop_reason", "error"]] = ["failed", "the worker died"]
    runs[["score", "val_score", "threshold_tau"]] = None
    rows = runs.astype("object").where(runs.notna(), None).to_dict("records")
    Store(tmp_path / "results").append(rows)
    with served(finished, tmp_path / "results") as address:
        assert f"{len(rows)} runs failed: the worker died" in read(f"{address}/")


def test_it_opens_the_browser_that_there_is(watched: tuple[str, Path], finished: Path) -> None:
    store = watched[1]
    told, browser = store.parent / "told", store.parent / "browser"
    os.mkfifo(told)
    browser.write_text(f'#!/bin/sh\necho "$1" > "{told}"\n')
    browser.chmod(0o755)
    _, terminal = os.openpty()
    asked = ["watch", str(finished / "small.yaml"), "--store", str(store), "--port", "0"]
    environment = os.environ | {"BROWSER": f"{browser} %s", "DISPLAY": ":0"}
    command = [sys.executable, "-m", "rgr_dist", *asked]
    with subprocess.Popen(command, stdout=terminal, env=environment) as process:
        assert "runs stored" in read(told.read_text().strip())
        process.terminate()
    os.close(terminal)
    assert process.returncode == 0


def test_a_reader_who_leaves_is_nothing_to_tell(
    watched: tuple[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    address, _ = watched
    host, port = address.removeprefix("http://").split(":")
    for name in (host, "elsewhere.example") * 3:
        with socket.create_connection((host, int(port))) as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            reader.sendall(f"GET / HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n".encode())
        assert read(f"{address}/version")
    assert read(f"{address}/")
    assert capfd.readouterr().err == ""


def test_whoever_connects_and_asks_nothing_is_not_waited_for(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "ASK_WITHIN", 0.1)
    with served(finished, tmp_path) as address:
        place = ("127.0.0.1", int(address.rpartition(":")[2]))
        silent = [socket.create_connection(place, timeout=30) for _ in range(24)]
        assert [reader.recv(1) for reader in silent] == [b""] * 24
        assert read(f"{address}/version")
        for reader in silent:
            reader.close()


def test_whoever_asks_letter_by_letter_is_not_waited_for(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "ASK_WITHIN", 0.3)
    with served(finished, tmp_path) as address:
        place = ("127.0.0.1", int(address.rpartition(":")[2]))
        with socket.create_connection(place, timeout=0.05) as slow:
            for _ in range(200):  # a letter each 0.05 s
                slow.sendall(b"G")
                with suppress(TimeoutError):
                    slow.recv(1)
                    return
    raise AssertionError("it is still waited for")


@needs_chromium
def test_a_browser_shows_the_curves_fill_in_and_keeps_them_at_the_end(
    watched: tuple[str, Path], finished: Path
) -> None:
    address, store = watched
    faults: list[str] = []

    def asked(request: Request) -> None:
        if not request.url.startswith((f"{address}/", "data:")):
            faults.append(f"asked for {request.url}")

    def opened(browser: Browser, width: int) -> Page:
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", asked)
        page.clock.install()
        page.goto(f"{address}/")
        return page

    def asks_again(page: Page) -> int:
        """Points that a page draws once it has asked for news and shows every run."""
        with page.expect_response(f"{address}/version"):
            page.clock.run_for(2_000)
        page.get_by_text(f"{len(Store(store).runs())} runs stored").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
        return page.locator("svg.plot .pt").count()

    parts = sorted((finished / "results/runs").iterdir())
    with chromium() as browser:
        pages = [opened(browser, width) for width in (400, 1200)]
        drawn = [[asks_again(page)] for page in pages]
        for some in parts[: len(parts) // 2], parts:
            for part in some:
                shutil.copy(part, store / "runs" / part.name)
            for page, points in zip(pages, drawn, strict=True):
                points.append(asks_again(page))
        for page, points in zip(pages, drawn, strict=True):
            assert points[0] < points[1] < points[2] == asks_again(page), "it stays at the end"
            assert page.get_by_text("nothing is left").is_visible()
    assert faults == []


def test_only_this_machine_by_its_own_name_is_answered(watched: tuple[str, Path]) -> None:
    address, _ = watched
    port = int(address.rpartition(":")[2])
    names = {f"localhost:{port}": 200, "localhost": 200, "127.0.0.1": 200}
    for host, status in (
        names | {f"elsewhere.example:{port}": 403, "elsewhere.example": 403}
    ).items():
        asked = HTTPConnection("127.0.0.1", port, timeout=30)
        asked.request("GET", "/version", headers={"Host": host})
        assert asked.getresponse().status == status
        asked.close()
    with pytest.raises(HTTPError, match="404"):
        read(f"{address}/../etc/passwd")


def test_a_port_that_is_taken_is_told_in_one_line(
    watched: tuple[str, Path], finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = watched[0].rpartition(":")[2]
    store = str(watched[1])
    study = str(finished / "small.yaml")
    assert call(["watch", study, "--port", port, "--store", store]) == 2
    told = capsys.readouterr()
    assert (told.out, len(told.err.splitlines())) == ("", 1)
    assert f"--port {port}: cannot be used" in told.err
