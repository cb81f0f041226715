"""
One example, run on an embedded server of its own: its manifests are applied, and its states are waited for.

At its end, what the families wrote on the first cluster is compared with what a
simulation makes of it.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from lamina.app import App
from lamina.client.client import Client
from lamina.core.crd.kinds import DEFINITION, is_established
from lamina.errors import Forbidden, NotFound, UnknownKind
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.metrics.prometheus import Metrics
from lamina.runtime.metrics.recorder import Recorder
from lamina.settings import Settings
from lamina.testing.waiting import eventually
from tests.scenarios.parity import Parity

EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS = 120.0
"""How long an example may take to get anywhere."""


@dataclass
class Story:
    """An example on a running server."""

    folder: Path
    client: Client
    kubeconfig: Path | None = None

    async def apply(self, *files: str, instead: tuple[str, str] = ("", "")) -> None:
        """Apply what is in these files, with one text in place of another, and wait for kinds to be served."""
        for file in files:
            text = (self.folder / file).read_text()
            for obj in yaml.safe_load_all(text.replace(*instead) if instead[0] else text):
                await self._apply(obj)

    async def _apply(self, obj: Made) -> None:
        if obj["kind"] == DEFINITION.kind:
            await self.client.apply(obj, manager="test")
            await self.until(meta.ref(obj), lambda found: found is not None and is_established(found))
            return
        kind = await self._served(obj)
        named = meta.with_metadata(obj, namespace=meta.namespace(obj) or "default") if kind else obj

        async def is_applied() -> bool:
            try:
                await self.client.apply(named, manager="test", force=True)
            except Forbidden:
                # The namespace or its service account does not exist yet.
                return False
            return True

        await eventually(is_applied, seconds=SECONDS)

    async def _served(self, obj: Made) -> bool:
        async def find() -> Kind | None:
            try:
                return await self.client.kind(obj["apiVersion"], obj["kind"])
            except UnknownKind:
                return None

        kind = await eventually(find, seconds=SECONDS)
        return kind is not None and kind.namespaced

    def at(self, kind: str, name: str, namespace: str = "default", api_version: str = "v1") -> Ref:
        return Ref(api_version, kind, namespace, name)

    def parent(self, kind: str, name: str, namespace: str = "default") -> Ref:
        return Ref("ctl.example.com/v1", kind, namespace, name)

    async def get(self, ref: Ref) -> Made | None:
        try:
            return await self.client.get(ref)
        except NotFound:
            return None

    async def edit(self, ref: Ref, patch: Obj) -> None:
        await self.client.patch(ref, patch, manager="test")

    async def until(self, ref: Ref, is_so: Callable[[Made | None], bool]) -> Made:
        """Wait until an object, or its absence, meets a condition."""
        return await eventually(lambda: self.get(ref), is_so, seconds=SECONDS) or {}

    async def until_there(self, ref: Ref) -> Made:
        return await self.until(ref, lambda obj: obj is not None)

    async def until_gone(self, ref: Ref) -> None:
        await self.until(ref, lambda obj: obj is None)

    async def until_status(self, ref: Ref, **wanted: object) -> Made:
        """Wait until a status says these things, whatever else it says."""
        return await self.until(
            ref,
            lambda obj: (
                obj is not None
                and all((obj.get("status") or {}).get(key) == value for key, value in wanted.items())
            ),
        )

    async def until_names(self, kind: str, wanted: Sequence[str], api_version: str = "v1") -> None:
        """Wait until exactly these objects of a kind are in the namespace."""

        async def names() -> list[str]:
            listing = await self.client.list((api_version, kind), "default")
            ignored = ("kube-root-ca.crt", "kubernetes")
            return sorted(meta.name(one) for one in listing.items if meta.name(one) not in ignored)

        await eventually(names, lambda found: found == sorted(wanted), seconds=SECONDS)


@asynccontextmanager
async def telling(
    folder: str, *, hooks: bool = True, nodes: int = 1, families: str = "all", clusters: Sequence[str] = ()
) -> AsyncIterator[Story]:
    """Run a server with the hooks of an example until the end of the block."""
    files = (EXAMPLES / folder / "hooks.py",) if hooks else ()
    settings = Settings(
        ephemeral=True, port=0, hooks=files, nodes=nodes, families=families, clusters=tuple(clusters)
    )
    metrics = _Metrics()
    async with App(settings, metrics=metrics) as app:
        metrics.parity.clients = {"": app.client()}
        yield Story(EXAMPLES / folder, app.client(), app.kubeconfig)
        await metrics.parity.check()


class _Metrics(Metrics):
    """Collects the writes of the families for the parity check."""

    def __init__(self) -> None:
        super().__init__()
        self.parity = Parity({})

    def of(self, controller: str) -> Recorder:
        return self.parity.recorder(controller)


def free_port() -> int:
    """Return a port without a listener."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@asynccontextmanager
async def serving(*command: str, by: str = sys.executable) -> AsyncIterator[int]:
    """Run a hook of an example in a process of its own; the port it is given is where `PORT` is said."""
    port = free_port()
    said = [str(port) if word == "PORT" else word for word in command]
    process = await asyncio.create_subprocess_exec(by, *said)
    try:
        await eventually(lambda: _accepts(port), seconds=SECONDS)
        yield port
    finally:
        process.kill()
        await process.wait()


async def _accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
