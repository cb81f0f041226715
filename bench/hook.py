"""A fast hook: returns the number of ConfigMaps that the parent asks for, with the parent's value."""

import asyncio
import json
import sys
from typing import cast

import uvloop


def answer(body: bytes) -> bytes:
    """Return the hook's response to a request."""
    request = json.loads(body)
    if "object" in request:
        target = request["object"]
        made = [_child(target, 0, target["data"]["value"])]
        return json.dumps({"attachments": made, "labels": {"decorated": "yes"}}).encode()
    parent = request["parent"]
    spec = parent["spec"]
    made = [_child(parent, number, spec["value"]) for number in range(spec["children"])]
    return json.dumps({"children": made, "status": {"wanted": spec["children"]}}).encode()


def _child(parent: dict[str, dict[str, str]], number: int, value: str) -> dict[str, object]:
    name = f"{parent['metadata']['name']}-{number}"
    metadata = {"name": name, "labels": {"of": parent["metadata"]["name"]}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


class Hook(asyncio.Protocol):
    """One keep-alive connection; a GET returns the number of calls."""

    calls = 0

    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found:
            return
        lines = head.lower().split(b"\r\n")
        if lines[0].startswith(b"get "):
            self._received = b""
            self._respond(str(Hook.calls).encode())
            return
        length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
        if len(body) < length:
            return
        # No pipelining: a client sends its next request after the response.
        self._received = b""
        Hook.calls += 1
        self._respond(answer(body))

    def _respond(self, content: bytes) -> None:
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
            % (len(content), content)
        )


async def serve() -> None:
    """Serve on a free port of the loopback interface, and print the port."""
    server = await asyncio.get_running_loop().create_server(Hook, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
    sys.exit(0)
