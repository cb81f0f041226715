"""
The composition root of `lamina up`: builds a running server from one frozen `Settings` value.

Every component gets its collaborators from here and constructs none of its own.
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
from lamina.client.kubeconfig.read import Access
from lamina.client.kubeconfig.write import write_kubeconfig
from lamina.client.transport.inprocess import TIMEOUT
from lamina.clock import Clock, PacedClock
from lamina.control_plane.clock_offset import ClockOffset
from lamina.control_plane.cluster import BackgroundTasks, EmbeddedCluster, settled
from lamina.control_plane.clusters import HUB_TIMEOUT, Clusters, Hub
from lamina.control_plane.load_stages import load_stages
from lamina.families.registry import chosen
from lamina.server.api.authn import Authenticator
from lamina.server.api.dispatch import Api
from lamina.server.api.nonresource import version
from lamina.server.http.cluster_router import FIRST_CLUSTER, check_name
from lamina.server.http.listener import Listener, TlsFiles, listen, open_socket
from lamina.server.http.request import Request, Response
from lamina.server.identity import ADMIN, Identity
from lamina.server.storage.compaction_timer import compact_periodically
from lamina.server.storage.log_store import LogStore
from lamina.server.storage.memory_store import MemoryStore
from lamina.server.storage.sqlite import SqliteStore
from lamina.server.storage.store import Store
from lamina.server.tls.certificates import (
    Certificates,
    ensure_certificates,
    sign_client_certificate,
    write_private,
)
from lamina.settings import Settings, data_home

if TYPE_CHECKING:
    from lamina.control_plane.cluster_controllers import EmbeddedClusterControllers
    from lamina.control_plane.hub import EmbeddedHub
    from lamina.runtime.controller.manager import Manager
    from lamina.runtime.metrics.prometheus import Metrics

_HOSTS = ("127.0.0.1", "localhost", "::1", "kubernetes.default.svc")


class App:
    """One server in this process: its clusters, the listener they share, and a kubeconfig with a context for each."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock | None = None,
        *,
        client_timeout: float = TIMEOUT,
        hub_timeout: float = HUB_TIMEOUT,
        metrics: Metrics | None = None,
    ) -> None:
        """`metrics` record the families of the first cluster, even if no address serves them."""
        self.settings = settings
        self._client_timeout, self._hub_timeout = client_timeout, hub_timeout
        self.clock = clock or PacedClock(settings.speed)
        self._stack = AsyncExitStack()
        self.url = ""
        self.token = ""
        self.data: Path | None = None
        self.kubeconfig: Path
        self.api: Api
        self.cluster: EmbeddedCluster
        self.store: LogStore
        self.certificates: Certificates
        self.clusters: Clusters
        self.served: Callable[[], None] = lambda: None
        """Called once every cluster is served; controllers of clusters besides the first start after that."""
        self.changed: Callable[[], None] = lambda: None
        """Called after a cluster is added or removed."""
        self._port = 0
        self._stages: Sequence[Stage] = ()
        self._metrics = metrics

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
        """Stop the controllers, end watches, commit the accepted writes, and close the files."""
        await self._stack.aclose()

    async def _start(self) -> None:
        # First, so that an invalid name fails before anything is started.
        for name in self.settings.clusters:
            check_name(name)
        self._stages = load_stages(self.settings.stages) if self.settings.simulate == "pods" else ()
        await self._serve_metrics()
        folder = self._folders()
        self.certificates = ensure_certificates(
            folder / "pki", _hosts(self.settings.host), ADMIN.name, ("system:masters",)
        )
        self.token = _token(folder / "token")
        self.store = self._open_store()
        self._stack.push_async_callback(self.store.close)
        offset = self._restore_clock()
        opened = open_socket(self.settings.host, self.settings.port)
        self._stack.callback(opened.close)
        host, self._port = opened.getsockname()[:2]
        self.url = f"https://{f'[{host}]' if ':' in host else host}:{self._port}"
        self.cluster = self._make_cluster("", self.store, Authenticator({self.token: ADMIN}))
        self.api = self.cluster.api
        self.clusters = Clusters(
            self.store,
            self.cluster,
            self.token,
            self._make_cluster,
            self._clusters_changed,
            hub=self._joined_hub,
            former=self._former_hub,
            hub_timeout=self._hub_timeout,
        )
        self.clusters.url = self.url
        self.api.admin.settled = self.settled
        listener = await self._listen(opened)
        tasks = await self._stack.enter_async_context(BackgroundTasks())
        if offset is not None:
            self.api.admin.wound = offset.store
            tasks.start(offset.store_periodically())
        tasks.start(compact_periodically(self.store, self.settings.history))
        await self._stack.enter_async_context(self.cluster)
        self._stack.push_async_callback(self.clusters.stop)
        await self.clusters.start(self.settings.clusters)
        # The listener stops first: requests in progress still need webhooks, actors and the other clusters.
        self._stack.push_async_callback(listener.stop)
        gc.freeze()
        gc.set_threshold(200_000, 50, 100)
        self._write_kubeconfig()
        self.served()
        await self.clusters.start_controllers()

    def _make_cluster(self, name: str, store: Store, authenticator: Authenticator) -> EmbeddedCluster:
        """
        Construct the first cluster, which has no name, or another one.

        Actors run on every cluster, families and their hooks on the first. If that
        makes it a hub, an agent runs on each of the others, and so do the controllers
        that families have for each of them.
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
            crd_providers=hub.crd_providers if hub is not None else (),
            extra_managers=() if is_first else self._extra_managers(name),
            metrics=self._metrics if is_first else None,
            client_timeout=self._client_timeout,
            # A client certificate is valid for every cluster, as the administrator's is.
            sign=partial(sign_client_certificate, self.certificates.authority) if is_first else None,
        )

    def _extra_managers(self, name: str) -> Sequence[Callable[[EmbeddedCluster], Manager]]:
        """Return what builds the managers of a cluster besides the first: its agent, and the controllers for it."""
        made: list[Callable[[EmbeddedCluster], Manager]] = []
        if self._hub is not None:
            made.append(partial(self._hub.agent, name))
        if self._cluster_controllers.has_controllers(name):
            made.append(partial(self._cluster_controllers.manager, name))
        return made

    async def _serve_metrics(self) -> None:
        """Record the metrics of the families and serve them, if an address is configured."""
        if self.settings.metrics_address in ("", "0"):
            return
        from lamina.runtime.metrics.healthz import listening
        from lamina.runtime.metrics.prometheus import Metrics

        self._metrics = self._metrics or Metrics()
        pages = listening((self.settings.metrics_address, {"/metrics": self._metrics.text}))
        await self._stack.enter_async_context(pages)

    @cached_property
    def _hub(self) -> EmbeddedHub | None:
        """Return the first cluster as a hub, if its families make it one."""
        if self.settings.simulate == "off":
            return None
        agents = next((one.agents for one in chosen(self.settings.families) if one.agents is not None), None)
        if agents is None:
            return None
        # Most servers have one cluster and do not need this module.
        from lamina.control_plane.hub import EmbeddedHub

        return EmbeddedHub(agents(), self.cluster, self.clusters.address, version()["gitVersion"])

    @cached_property
    def _cluster_controllers(self) -> EmbeddedClusterControllers:
        """Return the controllers that run on the first cluster for each of the others."""
        from lamina.control_plane.cluster_controllers import EmbeddedClusterControllers

        families = chosen(self.settings.families) if self.settings.simulate != "off" else ()
        return EmbeddedClusterControllers(families, chosen("all"), self.cluster)

    def _joined_hub(self) -> Hub | None:
        """Return the hub that clusters join, with everything that it has for them."""
        if self._hub is None:
            return None
        from lamina.control_plane.hub import CombinedHub

        return CombinedHub(self._hub, self._cluster_controllers)

    def _former_hub(self) -> Hub:
        from lamina.control_plane.hub import CombinedHub, FormerHub

        agents = [family.agents() for family in chosen("all") if family.agents is not None]
        return CombinedHub(FormerHub(agents, self.cluster), self._cluster_controllers)

    async def settled(self) -> None:
        """Wait until the controllers of all clusters are idle, for at most the timeout of a request."""
        # All at once: the writes of an agent give controllers of the hub work, and the reverse.
        await settled(self.clusters)

    def _folders(self) -> Path:
        if self.settings.ephemeral:
            folder = Path(tempfile.mkdtemp(prefix="lamina-"))
            self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
            self.kubeconfig = self.settings.kubeconfig or folder / "kubeconfig"
            return folder
        self.data = folder = self.settings.data or data_home() / "default"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.kubeconfig = self.settings.kubeconfig or folder / "kubeconfig"
        return folder

    def _open_store(self) -> LogStore:
        if self.data is None:
            return MemoryStore()
        return SqliteStore.open(self.data)

    def _restore_clock(self) -> ClockOffset | None:
        """Restore the offset of the clock from a durable store, and store it at the end."""
        if self.data is None or not isinstance(self.clock, PacedClock):
            return None
        offset = ClockOffset(self.store, self.clock)
        offset.restore()
        self._stack.push_async_callback(offset.store)
        return offset

    async def _listen(self, opened: socket) -> Listener:
        pair = self.certificates.server
        files = TlsFiles(pair.certificate, pair.key, self.certificates.authority.certificate)
        listener = await listen(opened, self.clusters.router, self.clusters.router, files)
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
    ) -> Response:
        """Send a request to the server without HTTP, for any of its clusters."""
        return await self.clusters.router.handle(Request(method, path, query, headers, body, user))

    def client(self, user: Identity = ADMIN) -> Client:
        """Return a client of the first cluster without HTTP, authenticated as a user."""
        return self.cluster.client(user)

    def reload_hooks(self) -> None:
        """Reload the hooks files."""
        self.cluster.reload_hooks()

    def _write_kubeconfig(self) -> None:
        """Write the kubeconfig; at the start this comes last, so that the file marks a server that is ready."""
        access = Access(
            server=self.url,
            authority=self.certificates.authority.certificate_pem,
            token=self.token,
            certificate=self.certificates.admin.certificate_pem,
            key=self.certificates.admin.key_pem,
        )
        # Clients prefer a certificate to a token, and this one is the server administrator's.
        without_certificate = replace(access, certificate=b"", key=b"")
        others = {
            name: replace(without_certificate, server=self.clusters.address(name), token=token)
            for name, token in self.clusters.tokens.items()
        }
        write_kubeconfig(self.kubeconfig, access, name=FIRST_CLUSTER, others=others)

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
