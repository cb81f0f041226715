"""
The `lamina` command with its requests counted: `python -m bench.counted_lamina PORT run ...`.

Only the client knows which of its requests are dry runs: the metrics of the embedded
server do not tell. GET on the port returns the number of requests by name as JSON:
`POST configmaps`, `PATCH objectsets/status`, `DRYRUN configmaps`. Watches are left out.
"""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from lamina.client.transport import http
from lamina.client.transport.base import Query, Response
from lamina.client.write_guard import WriteGuard
from lamina.objects.api_paths import parse_resource_path

DRY_RUN = "DRYRUN"
"""The verb under which dry runs are counted."""
_sent: Counter[str] = Counter()


def request_name(method: str, path: str, query: Query) -> str:
    """Return the name under which a request is counted; empty for those that are not about objects."""
    asked, parsed = dict(query), parse_resource_path(path)
    if parsed is None or asked.get("watch") in ("1", "true"):
        return ""
    what = f"{parsed.plural}/{parsed.subresource}" if parsed.subresource else parsed.plural
    if "dryRun" in asked:
        return f"{DRY_RUN} {what}"
    return f"{'LIST' if method == 'GET' and not parsed.name else method} {what}"


class CountedTransport(http.HttpTransport):
    """A transport whose requests are counted by name."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str],
        body: bytes | None = None,
        streams: bool = False,
        guard: WriteGuard | None = None,
    ) -> Response:
        if name := request_name(method, path, query):
            _sent[name] += 1
        return await super().request(
            method, path, query=query, headers=headers, body=body, streams=streams, guard=guard
        )


class _Counts(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(dict(_sent)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the log of the command is on standard error."""


def serve(port: int) -> None:
    """Serve the counts from a thread that ends with the process."""
    Thread(target=HTTPServer(("127.0.0.1", port), _Counts).serve_forever, daemon=True).start()


if __name__ == "__main__":
    serve(int(sys.argv.pop(1)))
    # Before the command is imported, whose modules take the class from here.
    vars(http)["HttpTransport"] = CountedTransport
    from lamina.cli.main import main

    main()
