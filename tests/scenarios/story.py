"""One example, told on an embedded server of its own: its manifests are applied, and what it says is waited for."""

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
from lamina.core.definitions import DEFINITION, is_established
from lamina.errors import Forbidden, NotFound, UnknownKind
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.settings import Settings

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE = 120.0


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
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.client.apply(named, manager="test", force=True)
                    return
                except Forbidden:
                    # A namespace or its service account that is not quite there yet.
                    await asyncio.sleep(0.02)

    async def _served(self, obj: Made) -> bool:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return (await self.client.kind(obj["apiVersion"], obj["kind"])).namespaced
                except UnknownKind:
                    await asyncio.sleep(0.02)

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
        """Wait until an object, or its absence, is as it should be."""
        seen: Made | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    seen = await self.get(ref)
                    if is_so(seen):
                        return seen or {}
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{ref} never became so; it is {seen}") from None

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
        seen: list[str] = []
        try:
            async with asyncio.timeout(PATIENCE):
                while seen != sorted(wanted):
                    listing = await self.client.list((api_version, kind), "default")
                    ignored = ("kube-root-ca.crt", "kubernetes")
                    seen = sorted(meta.name(one) for one in listing.items if meta.name(one) not in ignored)
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"the {kind}s never became {wanted}; they are {seen}") from None


@asynccontextmanager
async def telling(
    folder: str, *, hooks: bool = True, nodes: int = 1, families: str = "all", clusters: Sequence[str] = ()
) -> AsyncIterator[Story]:
    """Run a server with the hooks of an example until the end of the block."""
    files = (EXAMPLES / folder / "hooks.py",) if hooks else ()
    settings = Settings(
        ephemeral=True, port=0, hooks=files, nodes=nodes, families=families, clusters=tuple(clusters)
    )
    async with App(settings) as app:
        yield Story(EXAMPLES / folder, app.client(), app.kubeconfig)


def free_port() -> int:
    """Return a port that nobody listens on."""
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
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.02)
                else:
                    writer.close()
                    break
        yield port
    finally:
        process.kill()
        await process.wait()
