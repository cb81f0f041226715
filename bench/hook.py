"""A hook that is never the bottleneck: as many ConfigMaps as the parent asks for, with what it says in them."""

import asyncio
import json
import sys
from typing import cast

import uvloop


def answer(body: bytes) -> bytes:
    """Return what the hook wants for a request."""
    said = json.loads(body)
    if "object" in said:
        target = said["object"]
        made = [_child(target, 0, target["data"]["value"])]
        return json.dumps({"attachments": made, "labels": {"decorated": "yes"}}).encode()
    parent = said["parent"]
    spec = parent["spec"]
    made = [_child(parent, number, spec["value"]) for number in range(spec["children"])]
    return json.dumps({"children": made, "status": {"wanted": spec["children"]}}).encode()


def _child(parent: dict[str, dict[str, str]], number: int, value: str) -> dict[str, object]:
    name = f"{parent['metadata']['name']}-{number}"
    metadata = {"name": name, "labels": {"of": parent["metadata"]["name"]}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


class Hook(asyncio.Protocol):
    """One connection: a request with a length, an answer, the next. Who only gets hears how often it was called."""

    calls = 0

    def __init__(self) -> None:
        self._heard = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, found, body = self._heard.partition(b"\r\n\r\n")
        if not found:
            return
        lines = head.lower().split(b"\r\n")
        if lines[0].startswith(b"get "):
            self._heard = b""
            self._say(str(Hook.calls).encode())
            return
        length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
        if len(body) < length:
            return
        # Nobody asks again before the answer is there.
        self._heard = b""
        Hook.calls += 1
        self._say(answer(body))

    def _say(self, said: bytes) -> None:
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
            % (len(said), said)
        )


async def serve() -> None:
    """Serve on any free port of loopback, and print which."""
    server = await asyncio.get_running_loop().create_server(Hook, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
    sys.exit(0)
