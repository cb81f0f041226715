"""
A ConfigMap and a Secret with the same text: the first is never updated, the second is recreated.

    python hook.py 8080
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


def sync(request: dict[str, Any]) -> dict[str, Any]:
    metadata, text = request["parent"]["metadata"], request["parent"]["spec"]["text"]
    named = {"name": metadata["name"], "annotations": {"text": text}}
    children = [{"apiVersion": "v1", "kind": kind, "metadata": named} for kind in ("ConfigMap", "Secret")]
    return {"children": children}


HOOKS = {"/sync": sync}


class Server(BaseHTTPRequestHandler):
    """Responds to a POST at the path of a hook."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(HOOKS[self.path](request)).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *words: object) -> None:
        """Write no access log."""


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Server).serve_forever()
