"""
One cluster in this process: a store, an API server without a listener, and controllers.

The controllers are the actors, which stand in for the components of a cluster that
Lamina does not run, and the selected families. Nothing here opens a socket or a
file; a caller that needs a listener, certificates or a durable store passes them
in, so that a test has a cluster in a few milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import orjson

from lamina.actors import WORKLOADS, embedded_actors, machines, signing
from lamina.actors.csr_signing import Sign
from lamina.actors.stages import Stage
from lamina.actors.workloads.pv_provisioner import STANDARD
from lamina.admission.inprocess import InProcessReviewer
from lamina.client.client import Client
from lamina.client.transport.inprocess import TIMEOUT, InProcessTransport
from lamina.clock import Clock, PacedClock
from lamina.control_plane.install import (
    CrdProvider,
    apply_controllers,
    build_manager,
    install,
    watch_hooks,
)
from lamina.control_plane.load_stages import load_stages
from lamina.core.model.controller import AnyController
from lamina.core.model.family import Family
from lamina.errors import from_status
from lamina.families.registry import FamilyOptions, chosen, gated
from lamina.hooks.supervisor import Hooks
from lamina.logs import log
from lamina.objects.types import Made
from lamina.runtime.controller.manager import Manager
from lamina.runtime.hooks.client import HookClient
from lamina.runtime.metrics.recorder import Recorder
from lamina.server.api.apiservices import publish_groups
from lamina.server.api.assembly import assemble
from lamina.server.api.authn import Authenticator
from lamina.server.bootstrap_objects import SYSTEM_PRIORITIES, own_service
from lamina.server.http.request import Request, Response
from lamina.server.identity import ADMIN, LOOPBACK, Identity
from lamina.server.storage.compaction_timer import compact_periodically
from lamina.server.storage.memory_store import MemoryStore
from lamina.server.storage.store import Store
from lamina.settings import Settings

if TYPE_CHECKING:
    from lamina.runtime.metrics.prometheus import Metrics

CONTROLLERS = Identity("system:kube-controller-manager", ("system:masters", "system:authenticated"))
_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_PORT = 6443
_DISCOVERY_PERIOD = 3600.0
"""In seconds; rare, since kinds are served by CustomResourceDefinitions here, and those are watched."""
_IDLE_TURNS = 32
"""The number of consecutive idle turns of the event loop after which a cluster counts as idle."""


class EmbeddedCluster:
    """
    One cluster: an API server without a listener, the actors, and the families.

    It serves requests once it is constructed; bootstrap objects and controllers
    exist inside `async with`. It uses the settings of a cluster: simulate, stages,
    nodes, families, hooks, history.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        name: str = "",
        store: Store | None = None,
        clock: Clock | None = None,
        authenticator: Authenticator | None = None,
        authority: str = "",
        port: int = _PORT,
        stages: Sequence[Stage] | None = None,
        crd_providers: Sequence[CrdProvider] = (),
        extra_managers: Sequence[Callable[[EmbeddedCluster], Manager]] = (),
        metrics: Metrics | None = None,
        client_timeout: float = TIMEOUT,
        sign: Sign | None = None,
    ) -> None:
        """
        Create a cluster on a store; without one, it owns a store in memory.

        A store that is passed in stays open. `authority` is the certificate of the
        authority that signs for this server, in PEM, and `port` its port. `stages` are
        those of the settings, if they are loaded already. `extra_managers` run on it
        besides actors and families, and `crd_providers` have the definitions that they
        need. `metrics` records the families. `sign` issues client certificates for
        approved CertificateSigningRequests; without it they are not signed.
        """
        self.settings = settings if settings is not None else Settings()
        self.name = name
        self.clock: Clock = clock or PacedClock(self.settings.speed)
        self.store: Store = store if store is not None else MemoryStore()
        self.reload_hooks: Callable[[], None] = lambda: None
        self.authenticator = authenticator or Authenticator({})
        self._owns_store, self._sign = store is None, sign
        self._extra_managers, self._crd_providers, self._metrics = extra_managers, crd_providers, metrics
        self._authority, self._port, self._timeout = authority, port, client_timeout
        pods = self.settings.simulate == "pods"
        self._stages = () if not pods else load_stages(self.settings.stages) if stages is None else stages
        self._stack = AsyncExitStack()
        self._pending: set[Request] = set()
        """Requests of its own clients that have no response yet."""
        self._calls: HookClient | None = None
        self._tasks: BackgroundTasks
        self._ready = asyncio.Event()
        self.managers: list[Manager] = []
        """The managers of the actors, of the families, and the extra ones."""
        self.api = assemble(
            self.store,
            self.clock.now,
            self.authenticator,
            {"ping": _true, "log": _true, "actors": self._ready.is_set},
        )
        self.api.admin.clock = self.clock
        self.api.admin.settled = self.settled

    async def __aenter__(self) -> Self:
        await self.serve()
        await self.start_controllers()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def serve(self) -> None:
        """Create the bootstrap objects and install the definitions of the families; no controller runs yet."""
        await self._or_stop(self._serve())

    async def start_controllers(self) -> None:
        """Run the actors, the families and the extra managers."""
        await self._or_stop(self._start_controllers())

    async def _or_stop(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop the controllers; an own store commits the writes it has accepted, and ends its watches."""
        self._ready.clear()
        await self._stack.aclose()
        # Managers and cluster refer to each other: break the cycle instead of waiting for the garbage collector.
        self.managers.clear()
        self.api.admin.settled = _no_wait

    @property
    def is_ready(self) -> bool:
        """Say whether all controllers run."""
        return self._ready.is_set()

    @property
    def is_idle(self) -> bool:
        """Say whether all controllers run and are idle."""
        return self._ready.is_set() and all(manager.is_idle for manager in self.managers)

    @property
    def awaits_response(self) -> bool:
        """Say whether a controller waits for a response that will come: from this server, or from a hook."""
        calls = self._calls is not None and self._calls.calls_in_flight > 0
        return calls or not all(one.abandonable and one.silenced for one in self._pending)

    @property
    def awaits_silenced_response(self) -> bool:
        """Say whether a controller waits for a response that a Silence fault withholds."""
        return any(one.abandonable and one.silenced for one in self._pending)

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        user: Identity = ADMIN,
    ) -> Response:
        """Send a request to the server without HTTP."""
        return await self.api.handle(Request(method, path, query, headers, body, user))

    def client(self, user: Identity = ADMIN) -> Client:
        """Return a client of this server without HTTP, authenticated as a user."""

        async def handle(
            method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
        ) -> Response:
            request = Request(method, path, query, headers, body, user)
            self._pending.add(request)
            try:
                return await self.api.handle(request)
            finally:
                self._pending.discard(request)

        return Client(InProcessTransport(handle, self._client_timeout))

    def _client_timeout(self) -> float | None:
        """Return the timeout of its own clients; they need one only while a fault may withhold a response."""
        return self._timeout if self.api.faults else None

    async def settled(self) -> None:
        """Wait until its controllers are idle, for at most the timeout of a request."""
        await settled((self,))

    async def _serve(self) -> None:
        if self._owns_store:
            self._stack.push_async_callback(self.store.close)
        self._stack.push_async_callback(self.api.context.dispatcher.close)
        self._tasks = tasks = await self._stack.enter_async_context(BackgroundTasks())
        if self._owns_store:
            tasks.start(compact_periodically(self.store, self.settings.history))
        tasks.start(publish_groups(self.api.context))
        await self._create_bootstrap_objects()
        # Before controllers watch: a new kind restarts the discovery of each of them.
        await install(self.client(LOOPBACK), (*self._families(), *self._crd_providers))

    async def _start_controllers(self) -> None:
        tasks = self._tasks
        await self._start_actors(tasks)
        if families := self._families():
            await self._start_families(families)
        for build in self._extra_managers:
            await self._run(build(self), tasks)
        self._ready.set()

    def _families(self) -> Sequence[Family]:
        settings = self.settings
        if settings.simulate == "off":
            return ()
        options = FamilyOptions(schedules=settings.scheduler, manifest_limit=settings.manifest_limit)
        return chosen(settings.families, gated(options, settings.feature_gates))

    async def _create_bootstrap_objects(self) -> None:
        """Create the namespaces, priority classes, Service and StorageClass that every cluster has."""
        # Concurrently: writes of one turn of the event loop share a commit.
        await asyncio.gather(
            *(self._ensure("/api/v1/namespaces", {"metadata": {"name": name}}) for name in _NAMESPACES),
            *(
                self._ensure("/apis/scheduling.k8s.io/v1/priorityclasses", priority)
                for priority in SYSTEM_PRIORITIES
            ),
        )
        await self._ensure("/api/v1/namespaces/default/services", own_service(self._port))
        if self.settings.simulate != "off":
            await self._ensure("/apis/storage.k8s.io/v1/storageclasses", STANDARD)

    async def _ensure(self, path: str, obj: Made) -> None:
        name = obj["metadata"]["name"]
        if self.api.handle_nowait(Request("GET", f"{path}/{name}", user=LOOPBACK)) is not None:
            return
        response = await self.request("POST", path, body=orjson.dumps(obj), user=LOOPBACK)
        if response.status not in (201, 409):
            raise from_status(
                orjson.loads(response.body) if isinstance(response.body, bytes) else {}, response.status
            )

    async def _start_actors(self, tasks: BackgroundTasks) -> None:
        await self._run(
            Manager(
                self.client(CONTROLLERS),
                self._actors(),
                clock=self.clock,
                log=log,
                discovery_period=_DISCOVERY_PERIOD,
            ),
            tasks,
        )

    async def _run(self, manager: Manager, tasks: BackgroundTasks) -> None:
        self.managers.append(manager)
        tasks.start(manager.run())
        # The start does not depend on other clusters, which may be unreachable.
        if not manager.has_other_clusters:
            await manager.ready()

    def _actors(self) -> tuple[AnyController, ...]:
        actors = embedded_actors(self._authority)
        if self._sign is not None:
            actors += (signing(self._sign),)
        if self.settings.simulate != "off":
            actors += WORKLOADS
        if self.settings.simulate == "pods":
            actors += machines(self._stages, self.settings.nodes)
        return actors

    async def _start_families(self, families: Sequence[Family]) -> None:
        metrics, hooks = self._metrics, Hooks(self.settings.hooks, log)
        client = self.client()
        await hooks.start()
        self._stack.push_async_callback(hooks.close)
        self._calls = calls = HookClient(
            local=hooks.find, meter=metrics.calls if metrics is not None else None
        )
        self._stack.push_async_callback(calls.close)
        checks = [check for family in families for check in family.checks]
        reviewer = InProcessReviewer(checks, client, self._port, log)
        self._stack.callback(self.api.context.dispatcher.here.clear)
        await reviewer.register(self.api.context.dispatcher.here)
        await apply_controllers(self.client(LOOPBACK), hooks.manifests)
        # A group of its own, which stops before the hooks that its controllers call.
        tasks = await self._stack.enter_async_context(BackgroundTasks())
        tasks.start(reviewer.keep())
        meters = metrics.of if metrics is not None else lambda name: Recorder()
        manager = build_manager(
            client, families, self.clock, calls, meters=meters, discovery_period=_DISCOVERY_PERIOD
        )
        await self._run(manager, tasks)
        if self.settings.hooks:
            self.reload_hooks = hooks.reload
            tasks.start(watch_hooks(hooks, client, calls, manager))


async def settled(clusters: Iterable[EmbeddedCluster]) -> None:
    """
    Wait until the controllers of all these clusters are idle, for at most the timeout of a request.

    A controller whose request a Silence fault withholds counts as idle: it would not
    get a response before its timeout, and the clock has to advance meanwhile.
    """
    turns = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(TIMEOUT):
            while turns < _IDLE_TURNS:
                # A write reaches the other controllers within a few turns of the event loop.
                await asyncio.sleep(0)
                turns = turns + 1 if _are_idle(clusters) else 0


def _are_idle(clusters: Iterable[EmbeddedCluster]) -> bool:
    if all(cluster.is_idle for cluster in clusters):
        return True
    return any(cluster.awaits_silenced_response for cluster in clusters) and not any(
        cluster.awaits_response for cluster in clusters
    )


class BackgroundTasks:
    """Tasks that are cancelled at the end of the block."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        return self

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(_log_failure)
        self._tasks.append(task)

    async def __aexit__(self, *_: object) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (failure := task.exception()) is not None:
        log.error("background task failed", because=str(failure), exc_info=failure)


def _true() -> bool:
    return True


async def _no_wait() -> None:
    """Replace `settled` once no controller runs any more."""
