"""
A webhook that requires a client certificate and a token.

    python hook.py 8443 FOLDER

FOLDER has tls.crt and tls.key (of the server), ca.crt (the CA of its clients) and token.
"""

import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Server(BaseHTTPRequestHandler):
    """Responds to a POST with the right token."""

    token = ""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != f"Bearer {self.token}":
            self.send_response(401)
            self.end_headers()
            return
        name, text = request["parent"]["metadata"]["name"], request["parent"]["spec"]["text"]
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"children": [child]}).encode())

    def log_message(self, *words: object) -> None:
        """Write no access log."""


if __name__ == "__main__":
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    Server.token = (folder / "token").read_text().strip()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "ca.crt"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    server = HTTPServer(("127.0.0.1", port), Server)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()
