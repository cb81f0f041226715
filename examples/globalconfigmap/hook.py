"""
A ConfigMap that is copied into every namespace: a webhook with Python's standard library.

    python hook.py 8080
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


def sync(request: dict[str, Any]) -> dict[str, Any]:
    related = request["related"]
    copies = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": request["parent"]["metadata"]["name"], "namespace": namespace},
            "data": source.get("data", {}),
        }
        for source in related["ConfigMap.v1"].values()
        for namespace in related["Namespace.v1"]
        if namespace != source["metadata"]["namespace"]
    ]
    return {"children": copies, "status": {"namespaces": len(copies)}}


def customize(request: dict[str, Any]) -> dict[str, Any]:
    spec = request["parent"]["spec"]
    return {
        "relatedResources": [
            {
                "apiVersion": "v1",
                "resource": "configmaps",
                "namespace": spec["sourceNamespace"],
                "names": [spec["sourceName"]],
            },
            {"apiVersion": "v1", "resource": "namespaces", "labelSelector": {}},
        ]
    }


HOOKS = {"/sync": sync, "/customize": customize}


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
