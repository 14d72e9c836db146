"""The documentation as a site: built without a warning, read without the network, searched."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.chromium import chromium, needs_chromium
from tests.docs.pages import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        build,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_pages_ask_nothing_of_the_network_and_have_their_math_set(site: Path) -> None:
    pages = list(site.glob("*.html"))
    assert site / "index.html" in pages
    for page in pages:
        text = page.read_text("utf-8")
        loaded = re.findall(r"<(?:script|img|link|iframe)\b[^>]*(?:src|href)=\"([^\"]+)\"", text)
        assert [address for address in loaded if re.match(r"(\w+:)?//", address)] == [], page
        assert 'class="arithmatex"' not in text, page
    assert "<math" in (site / "index.html").read_text("utf-8")


@needs_chromium
def test_it_is_searched(site: Path) -> None:
    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}/"
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{here}index.html")
        page.click("input.md-search__input")
        page.keyboard.type("keep_within")
        page.wait_for_selector(".md-search-result__item h2")
        found = page.locator(".md-search-result__item a").first.get_attribute("href")
    server.shutdown()
    server.server_close()
    assert found is not None
    assert "study-file.html" in found
    assert [url for url in asked if not url.startswith((here, "data:", "blob:"))] == []
