"""
Puts the pieces together; the only file that knows them all.

One frozen `Settings` value in, one running server out. Everything is
handed down from here: nobody else builds their own collaborators.
"""

from __future__ import annotations

import dataclasses
import gc
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property, partial
from pathlib import Path
from socket import socket
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from lamina.actors.stages import Stage
from lamina.client.client import Client
from lamina.client.kubeconfig import Access
from lamina.client.writing import write_kubeconfig
from lamina.clock import Clock, PacedClock
from lamina.clusters import Clusters
from lamina.embedded import Background, EmbeddedCluster, settled
from lamina.families.every import chosen
from lamina.server.api import Api
from lamina.server.certificates import Certificates, ensure_certificates, write_private
from lamina.server.gate import FIRST, check_name
from lamina.server.housekeeping import forget_old_versions
from lamina.server.identity import Authenticator
from lamina.server.listener import Listener, TlsFiles, listen, open_socket
from lamina.server.log import Log
from lamina.server.memory import MemoryStore
from lamina.server.pages import version
from lamina.server.request import ADMIN, Answer, Identity, Request
from lamina.server.sqlite import SqliteStore
from lamina.server.store import Store
from lamina.settings import Settings, home
from lamina.stages import load_stages
from lamina.timekeeping import Timekeeper

if TYPE_CHECKING:
    from lamina.agents import EmbeddedHub, FormerHub
    from lamina.runtime.metrics import Metrics

_HOSTS = ("127.0.0.1", "localhost", "::1", "kubernetes.default.svc")


class App:
    """One server in this process: its clusters, a listener before them, and a kubeconfig that leads to each."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or PacedClock(settings.speed)
        self._stack = AsyncExitStack()
        self.url = ""
        self.token = ""
        self.data: Path | None = None
        self.kubeconfig: Path
        self.api: Api
        self.cluster: EmbeddedCluster
        self.store: Log
        self.certificates: Certificates
        self.clusters: Clusters
        self.served: Callable[[], None] = lambda: None
        """Called once the server answers for every cluster; those beside the first come to life after that."""
        self.changed: Callable[[], None] = lambda: None
        """Called when there are other clusters than before."""
        self._port = 0
        self._stages: Sequence[Stage] = ()
        self._metrics: Metrics | None = None

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
        await self._stack.aclose()

    async def _start(self) -> None:
        # First of all: what is wrong with these should not be found out once everything else stands.
        for name in self.settings.clusters:
            check_name(name)
        self._stages = load_stages(self.settings.stages) if self.settings.simulate == "pods" else ()
        await self._count()
        folder = self._folders()
        self.certificates = ensure_certificates(
            folder / "pki", _hosts(self.settings.host), ADMIN.name, ("system:masters",)
        )
        self.token = _token(folder / "token")
        self.store = self._open_store()
        self._stack.push_async_callback(self.store.close)
        timekeeper = self._keep_time()
        opened = open_socket(self.settings.host, self.settings.port)
        self._stack.callback(opened.close)
        host, self._port = opened.getsockname()[:2]
        self.url = f"https://{f'[{host}]' if ':' in host else host}:{self._port}"
        self.cluster = self._make("", self.store, Authenticator({self.token: ADMIN}))
        self.api = self.cluster.api
        self.clusters = Clusters(
            self.store,
            self.cluster,
            self.token,
            self._make,
            self._clusters_changed,
            hub=lambda: self._hub,
            former=self._former_hub,
        )
        self.clusters.url = self.url
        self.api.administration.settled = self.settled
        listener = await self._listen(opened)
        tasks = await self._stack.enter_async_context(Background())
        if timekeeper is not None:
            self.api.administration.wound = timekeeper.note
            tasks.start(timekeeper.keep())
        tasks.start(forget_old_versions(self.store, self.settings.history))
        await self._stack.enter_async_context(self.cluster)
        self._stack.push_async_callback(self.clusters.stop)
        await self.clusters.start(self.settings.clusters)
        # Ends first, too: requests in progress may still want webhooks, actors and the other clusters.
        self._stack.push_async_callback(listener.stop)
        gc.freeze()
        gc.set_threshold(200_000, 50, 100)
        self._write_kubeconfig()
        self.served()
        await self.clusters.live()

    def _make(self, name: str, store: Store, authenticator: Authenticator) -> EmbeddedCluster:
        """
        Make a cluster: the first one, or one beside it.

        What runs on which is decided here and nowhere else. Actors run on every
        cluster, as parts of it; families and their hooks run on the first. Where
        that makes it a hub, each of the others has an agent.
        """
        is_first = not name
        hub = None if is_first else self._hub
        return EmbeddedCluster(
            self.settings if is_first else dataclasses.replace(self.settings, families="none", hooks=()),
            name=name,
            store=store,
            clock=self.clock,
            authenticator=authenticator,
            authority=self.certificates.authority.certificate_pem.decode(),
            port=self._port,
            stages=self._stages,
            serves=hub.serves if hub is not None else (),
            also=(partial(hub.agent, name),) if hub is not None else (),
            metrics=self._metrics if is_first else None,
        )

    async def _count(self) -> None:
        """Have what the families do counted and shown, where somebody wants to see it."""
        if self.settings.metrics_address in ("", "0"):
            return
        from lamina.runtime.metrics import Metrics
        from lamina.runtime.probes import listening

        self._metrics = Metrics()
        pages = listening((self.settings.metrics_address, {"/metrics": self._metrics.text}))
        await self._stack.enter_async_context(pages)

    @cached_property
    def _hub(self) -> EmbeddedHub | None:
        """Return the hub that the first cluster is, if its families make it one."""
        if self.settings.simulate == "off":
            return None
        if not any(family.name == "manifestwork" for family in chosen(self.settings.families)):
            return None
        # Most control planes have one cluster, and no agent to load.
        from lamina.agents import EmbeddedHub

        return EmbeddedHub(self.cluster, self.clusters.address, version()["gitVersion"])

    def _former_hub(self) -> FormerHub:
        from lamina.agents import FormerHub

        return FormerHub(self.cluster)

    async def settled(self) -> None:
        """Wait until nobody on any cluster has anything to do but wait, or until that takes too long."""
        # Together: what an agent does on its cluster makes work on the first, and the other way round.
        await settled(self.clusters)

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

    def _open_store(self) -> Log:
        if self.data is None:
            return MemoryStore()
        return SqliteStore.open(self.data)

    def _keep_time(self) -> Timekeeper | None:
        """Have the clock go on from where it had got to, where what it stamped is kept."""
        if self.data is None or not isinstance(self.clock, PacedClock):
            return None
        kept = Timekeeper(self.store, self.clock)
        kept.resume()
        self._stack.push_async_callback(kept.note)
        return kept

    async def _listen(self, opened: socket) -> Listener:
        pair = self.certificates.server
        files = TlsFiles(pair.certificate, pair.key, self.certificates.authority.certificate)
        listener = await listen(opened, self.clusters.gate, self.clusters.gate, files)
        self._stack.push_async_callback(listener.stop)
        return listener

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        user: Identity = ADMIN,
    ) -> Answer:
        """Hand a request to the server without HTTP in between, for any of its clusters."""
        return await self.clusters.gate.handle(Request(method, path, query, headers, body, user))

    def client(self, user: Identity = ADMIN) -> Client:
        """Return a client that reaches the first cluster without HTTP, as some user."""
        return self.cluster.client(user)

    def reload_hooks(self) -> None:
        """Read the hooks files again."""
        self.cluster.reload_hooks()

    def _write_kubeconfig(self) -> None:
        """Lead the way to the server, last of all: whoever waits for the file waits for the server."""
        access = Access(
            server=self.url,
            authority=self.certificates.authority.certificate_pem,
            token=self.token,
            certificate=self.certificates.admin.certificate_pem,
            key=self.certificates.admin.key_pem,
        )
        # A certificate would go first, and it is the server administrator's.
        nameless = replace(access, certificate=b"", key=b"")
        others = {
            name: replace(nameless, server=self.clusters.address(name), token=token)
            for name, token in self.clusters.tokens.items()
        }
        write_kubeconfig(self.kubeconfig, access, name=FIRST, others=others)

    def _clusters_changed(self) -> None:
        self._write_kubeconfig()
        self.changed()


def _hosts(host: str) -> list[str]:
    return [*_HOSTS, host] if host not in (*_HOSTS, "0.0.0.0", "::") else list(_HOSTS)


def _token(path: Path) -> str:
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(32)
        write_private(path, token.encode())
        return token
