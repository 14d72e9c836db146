"""An S3 server on this machine: moto's, behind a gate that can be slow and refuse requests."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "bucket"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
}
DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"


class Gate:
    """Passes requests on to an application; late, or not at all, as it is told.

    Attributes:
        latency: seconds that every request waits.
        refuses: share of the requests that are answered by 503, as S3 does under load.
        requests, refused: how many there were.
        is_private: refuses requests that nobody has signed.
        users: the access keys by which requests were signed; "" for none.
    """

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self.application = application
        self.latency = self.refuses = 0.0
        self.requests = self.refused = 0
        self.is_private, self.users = False, set[str]()
        self._draw, self._lock = random.Random(0), threading.Lock()

    def __call__(self, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request."""
        time.sleep(self.latency)
        with self._lock:
            self.requests += 1
            is_refused = self._draw.random() < self.refuses
            self.refused += is_refused
        signed = re.search(r"Credential=([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
        self.users.add(signed[1] if signed else "")
        is_denied = self.is_private and not signed
        if is_refused or is_denied:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            status = "403 Forbidden" if is_denied else "503 Slow Down"
            respond(status, [("Content-Type", "application/xml")])
            return [DENIED if is_denied else SLOW_DOWN]
        return self.application(environ, respond)


class Quiet(WSGIRequestHandler):
    """Keeps connections open, and logs no request."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        """Log nothing."""


def uri(port: int, prefix: str = "results") -> str:
    """A store on a server of this machine."""
    server = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
    return f"s3://{BUCKET}/{prefix}?{server}"


@contextmanager
def s3_server() -> Iterator[tuple[Gate, int]]:
    """A server with one bucket: its gate and its port."""
    gate = Gate(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, gate, threaded=True, request_handler=Quiet)
    # to look for its end, which else takes half a second
    serving = threading.Thread(target=server.serve_forever, args=[0.02], daemon=True)
    serving.start()
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{server.server_port}",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.create_bucket(Bucket=BUCKET)
    try:
        yield gate, server.server_port
    finally:
        server.shutdown()
        server.server_close()
        serving.join()


def has_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pyarrow, here and in processes started from here, log in as anybody."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
