"""``rgr watch``: a study in a browser as it runs, from its store alone, on this machine."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from socket import SHUT_RD
from threading import Lock, Thread, Timer
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rgr_dist.cli.options import Out, Set, StudyName, opened
from rgr_dist.faults import UserError, shown

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

    from rgr_dist.store.store import Store
    from rgr_dist.study.study import Study

HOST = "127.0.0.1"
ASK_WITHIN = 5.0
"""Seconds within which a browser must send its request."""
REFRESH = """
setInterval(async () => {
  try {
    const answer = await fetch("/version");
    const now = await answer.text();
    if (answer.ok && now !== document.documentElement.dataset.version) location.reload();
  } catch (gone) { document.title = "not watched any more"; }
}, 2000);
"""
"""Asks every two seconds whether the store has changed; if so, loads the new page."""


def watch(
    study: StudyName,
    out: Out = "results",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8765,
    set_: Set = None,
) -> None:
    """Show a study in a browser as it runs, until interrupted. It only reads the store."""
    with opened(study, set_, out) as (resolved, store):
        pass
    try:
        server = make_server(resolved, store, port)
    except OSError as error:
        raise UserError(
            f"--port {port}: cannot be used ({error.strerror}); valid: a free one, or 0"
        ) from None
    address = f"http://{HOST}:{server.server_port}/"
    print(shown(f"{address} shows {study} of {store.root}; Ctrl-C ends it"), flush=True)
    if sys.stdout.isatty() and any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
        Thread(target=webbrowser.open, args=[address], daemon=True).start()  # some browsers block
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


def _page(study: Study, store: Store, version: str) -> str:
    from rgr_dist.analysis.heads import section as heads
    from rgr_dist.analysis.load import results_of
    from rgr_dist.analysis.page.render import render
    from rgr_dist.analysis.report.contents import Make
    from rgr_dist.analysis.report.sections import state
    from rgr_dist.analysis.splits import section as accuracy
    from rgr_dist.analysis.thresholds import section as cells
    from rgr_dist.analysis.transitions import section as transitions
    from rgr_dist.planning.portfolio import stored_search

    search = stored_search(study, store)
    results = results_of(study, search)
    head = state.section(results, search)
    sections = [replace(head, words=[*store.left_out, *head.words])]
    if not results.runs.empty:
        makers: tuple[Make, ...]
        if study.record.finds == "D_K":
            makers = (transitions.curves, cells.section)
        elif study.record.finds_thresholds:
            makers = (cells.section, heads.section)
        else:
            makers = (accuracy.section,)
        sections += [made for make in makers if (made := make(results)) is not None]
    page = render(f"{study.name} · rgr watch", sections, {})
    page = page.replace("<html ", f'<html data-version="{version}" ', 1)
    return page.replace("</body>", f"<script>{REFRESH}</script>\n</body>", 1)


def make_server(study: Study, store: Store, port: int) -> ThreadingHTTPServer:
    """A server on the loopback interface that answers ``/`` and ``/version``.

    Raises:
        OSError: the port is taken.
    """
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Server(ThreadingHTTPServer):
        """Reports errors, except those of a browser that has disconnected."""

        request_queue_size = 64  # of 5, the seventh who connects at once waits a second

        def handle_error(self, request: Any, client_address: Any) -> None:
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)

    one_at_a_time = Lock()
    page_of = lru_cache(maxsize=1)(partial(_page, study, store))

    def page() -> str:
        with one_at_a_time:
            return page_of(store.version())

    class Handler(BaseHTTPRequestHandler):
        timeout = ASK_WITHIN  # of each read and write

        def setup(self) -> None:
            super().setup()
            self.until = Timer(ASK_WITHIN, self.listen_no_more)
            self.until.daemon = True
            self.until.start()

        def listen_no_more(self) -> None:
            with suppress(OSError):  # the browser is gone
                self.connection.shutdown(SHUT_RD)

        def finish(self) -> None:
            self.until.cancel()
            super().finish()

        def do_GET(self) -> None:
            host = self.headers.get("Host", "").partition(":")[0]  # port 80 is left out
            if host not in (HOST, "localhost"):  # another name that points at this machine
                self.send_error(403)
                return
            try:
                answers: dict[str, Callable[[], str]] = {
                    "/": page,
                    "/version": store.version,
                    "/favicon.ico": str,
                }
                if self.path not in answers:
                    self.send_error(404)
                    return
                body = answers[self.path]().encode()
            except UserError as error:
                self.send_error(503, explain=str(error))
                return
            self.send_response(200)
            kind = "text/html" if self.path == "/" else "text/plain"
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing: a line for each request is of no use."""

    return Server((HOST, port), Handler)
