"""A server, and a webhook server beside it."""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.bed.certificates import Authority
from tests.bed.fixtures import api, namespace, server

__all__ = ["api", "namespace", "server"]

Review = dict[str, Any]


class Webhook:
    """An HTTPS server on loopback: `answer` makes a response of a request, and `asked` records the requests."""

    def __init__(self, port: int, bundle: bytes) -> None:
        self.port = port
        self.bundle = base64.b64encode(bundle).decode()
        self.answer: Callable[[Review], Any] = lambda request: {"allowed": True}
        self.asked: list[Review] = []
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/check"

    def reply(self, path: str, body: bytes) -> bytes:
        review = json.loads(body)
        request = review["request"]
        self.asked.append(request)
        self.paths.append(path)
        made = self.answer(request)
        if isinstance(made, bytes):
            return made
        response = {"uid": request["uid"], **made}
        return json.dumps(
            {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
        ).encode()


@pytest.fixture
def webhook(tmp_path: Path) -> Iterator[Webhook]:
    authority = Authority(tmp_path)
    pair = authority.server("webhook", "hook.somewhere.svc")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            answer = found.reply(self.path, self.rfile.read(length))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            # In chunks, as any server may send it.
            for piece in (answer[:40], answer[40:]):
                self.wfile.write(piece)
                self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing: the tests record the requests."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.socket = context.wrap_socket(listening.socket, server_side=True)
    found = Webhook(listening.server_address[1], authority.certificate.read_bytes())
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()
