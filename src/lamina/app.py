"""
Puts the pieces together; the only file that knows them all.

One frozen `Settings` value in, one running control plane out. Everything is
handed down from here: nobody else builds their own collaborators.
"""

from __future__ import annotations

import asyncio
import gc
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from lamina.actors import WORKLOADS, embedded_actors, machines
from lamina.actors.workloads.provisioning import STANDARD
from lamina.client.client import Client
from lamina.client.inprocess import InProcessTransport
from lamina.client.kubeconfig import Access, write_kubeconfig
from lamina.clock import Clock, WallClock
from lamina.core.controller import AnyController
from lamina.errors import from_status
from lamina.families.every import chosen
from lamina.hooks.files import Hooks
from lamina.logs import log
from lamina.objects.types import Made
from lamina.product import declare, follow, install, product
from lamina.runtime.calls import Calls
from lamina.runtime.manager import Manager
from lamina.server.api import Api
from lamina.server.assembly import assemble
from lamina.server.certificates import Certificates, ensure_certificates, write_private
from lamina.server.housekeeping import forget_old_versions, publish_groups
from lamina.server.identity import Authenticator
from lamina.server.listener import TlsFiles, listen, open_socket
from lamina.server.memory import MemoryStore
from lamina.server.request import ADMIN, Answer, Identity, Request
from lamina.server.seed import SYSTEM_PRIORITIES, own_service
from lamina.server.sqlite import SqliteStore
from lamina.server.store import Store
from lamina.settings import Settings, home
from lamina.stages import load_stages

CONTROLLERS = Identity("system:kube-controller-manager", ("system:masters", "system:authenticated"))
_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_HOSTS = ("127.0.0.1", "localhost", "::1", "kubernetes.default.svc")


class App:
    """One control plane in this process: a server, its actors, and a kubeconfig that leads to it."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or WallClock()
        self._stack = AsyncExitStack()
        self._ready = False
        self.url = ""
        self.token = ""
        self.data: Path | None = None
        self.kubeconfig: Path
        self.api: Api
        self.store: Store
        self.certificates: Certificates
        self.reload_hooks: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """End watches and actors, finish the writes that were accepted, and let go of the files."""
        self._ready = False
        await self._stack.aclose()

    async def _start(self) -> None:
        # Read first: what is wrong with them should not be found out once everything else stands.
        self._stages = load_stages(self.settings.stages) if self.settings.simulate == "pods" else ()
        folder = self._folders()
        self.certificates = ensure_certificates(
            folder / "pki", _hosts(self.settings.host), ADMIN.name, ("system:masters",)
        )
        self.token = _token(folder / "token")
        authenticator = Authenticator({self.token: ADMIN})
        self.store = self._open_store()
        self._stack.push_async_callback(self.store.close)
        self.api = assemble(
            self.store,
            self.clock.now,
            authenticator,
            {"ping": _true, "log": _true, "actors": lambda: self._ready},
        )
        await self._listen(authenticator)
        tasks = await self._stack.enter_async_context(_Tasks())
        tasks.start(forget_old_versions(self.api.plane, self.settings.history))
        tasks.start(publish_groups(self.api.plane))
        await self._seed()
        await self._start_actors(tasks)
        await self._start_families()
        self._ready = True
        gc.freeze()
        gc.set_threshold(200_000, 50, 100)
        self._write_kubeconfig()

    def _folders(self) -> Path:
        if self.settings.ephemeral:
            folder = Path(tempfile.mkdtemp(prefix="lamina-"))
            self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
            self.kubeconfig = self.settings.kubeconfig or folder / "kubeconfig"
            return folder
        self.data = folder = self.settings.data or home() / "default"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.kubeconfig = self.settings.kubeconfig or folder / "kubeconfig"
        return folder

    def _open_store(self) -> Store:
        if self.data is None:
            return MemoryStore()
        return SqliteStore.open(self.data)

    async def _listen(self, authenticator: Authenticator) -> None:
        opened = open_socket(self.settings.host, self.settings.port)
        pair = self.certificates.server
        files = TlsFiles(pair.certificate, pair.key, self.certificates.authority.certificate)
        listener = await listen(opened, self.api, authenticator, files)
        self._stack.push_async_callback(listener.stop)
        host, port = opened.getsockname()[:2]
        self.url = f"https://{f'[{host}]' if ':' in host else host}:{port}"

    async def _seed(self) -> None:
        """Create what is there from the beginning, where it is not there yet."""
        for name in _NAMESPACES:
            await self._ensure("/api/v1/namespaces", {"metadata": {"name": name}})
        port = int(self.url.rpartition(":")[2])
        await self._ensure("/api/v1/namespaces/default/services", own_service(port))
        for priority in SYSTEM_PRIORITIES:
            await self._ensure("/apis/scheduling.k8s.io/v1/priorityclasses", priority)
        if self.settings.simulate != "off":
            await self._ensure("/apis/storage.k8s.io/v1/storageclasses", STANDARD)

    async def _ensure(self, path: str, obj: Made) -> None:
        answer = await self.request("POST", path, body=orjson.dumps(obj))
        if answer.status not in (201, 409):
            raise from_status(
                orjson.loads(answer.body) if isinstance(answer.body, bytes) else {}, answer.status
            )

    async def _start_actors(self, tasks: _Tasks) -> None:
        manager = Manager(self.client(CONTROLLERS), self._actors(), clock=self.clock, log=log)
        tasks.start(manager.run())
        await manager.ready()

    async def _start_families(self) -> None:
        families = chosen(self.settings.families) if self.settings.simulate != "off" else ()
        if not families:
            return
        client, hooks = self.client(), Hooks(self.settings.hooks, log)
        await hooks.start()
        self._stack.push_async_callback(hooks.close)
        calls = Calls(local=hooks.find)
        self._stack.push_async_callback(calls.close)
        await install(client, families)
        await declare(client, hooks.manifests)
        # They end before the hooks they would call.
        tasks = await self._stack.enter_async_context(_Tasks())
        manager = product(client, families, self.clock, calls)
        tasks.start(manager.run())
        await manager.ready()
        if self.settings.hooks:
            self.reload_hooks = hooks.reload
            tasks.start(follow(hooks, client, calls, manager))

    def _actors(self) -> tuple[AnyController, ...]:
        actors = embedded_actors(self.certificates.authority.certificate_pem.decode())
        if self.settings.simulate != "off":
            actors += WORKLOADS
        if self.settings.simulate == "pods":
            actors += machines(self._stages, self.settings.nodes)
        return actors

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        user: Identity = ADMIN,
    ) -> Answer:
        """Hand a request to the server without HTTP in between."""
        return await self.api.handle(Request(method, path, query, headers, body, user))

    def client(self, user: Identity = ADMIN) -> Client:
        """Return a client that reaches this server without HTTP, as some user."""

        async def handle(
            method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
        ) -> Answer:
            return await self.request(method, path, query, headers, body, user)

        return Client(InProcessTransport(handle))

    def _write_kubeconfig(self) -> None:
        """Lead the way to the server, last of all: whoever waits for the file waits for the server."""
        access = Access(
            server=self.url,
            authority=self.certificates.authority.certificate_pem,
            token=self.token,
            certificate=self.certificates.admin.certificate_pem,
            key=self.certificates.admin.key_pem,
        )
        write_kubeconfig(self.kubeconfig, access)


class _Tasks:
    """Background work that ends with the process; one that fails is a bug and is raised at the end."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Self:
        return self

    def start(self, work: Any) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _hosts(host: str) -> list[str]:
    return [*_HOSTS, host] if host not in (*_HOSTS, "0.0.0.0", "::") else list(_HOSTS)


def _token(path: Path) -> str:
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(32)
        write_private(path, token.encode())
        return token


def _true() -> bool:
    return True
