"""
One control plane in this process, whole but for a way in from outside.

A store, a server on it, what is there from the beginning, the actors that stand
in for the rest of a cluster, and the chosen families. Nothing here opens a
socket or a file: whoever wants a listener, certificates or state that lasts
brings them along, so a test has a cluster in a few milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import orjson

from lamina.actors import WORKLOADS, embedded_actors, machines
from lamina.actors.stages import Stage
from lamina.actors.workloads.provisioning import STANDARD
from lamina.admission.inside import Inside
from lamina.client.client import Client
from lamina.client.inprocess import PATIENCE, InProcessTransport
from lamina.clock import Clock, PacedClock
from lamina.core.controller import AnyController
from lamina.core.family import Family
from lamina.errors import from_status
from lamina.families.every import Manner, chosen, gated
from lamina.hooks.files import Hooks
from lamina.logs import log
from lamina.objects.types import Made
from lamina.product import Brings, declare, follow, install, product
from lamina.runtime.calls import Calls
from lamina.runtime.manager import Manager
from lamina.runtime.meter import Meter
from lamina.server.assembly import assemble
from lamina.server.housekeeping import forget_old_versions, publish_groups
from lamina.server.identity import Authenticator
from lamina.server.memory import MemoryStore
from lamina.server.request import ADMIN, ITSELF, Answer, Identity, Request
from lamina.server.seed import SYSTEM_PRIORITIES, own_service
from lamina.server.store import Store
from lamina.settings import Settings
from lamina.stages import load_stages

if TYPE_CHECKING:
    from lamina.runtime.metrics import Metrics

CONTROLLERS = Identity("system:kube-controller-manager", ("system:masters", "system:authenticated"))
_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_PORT = 6443
_DISCOVERS = 3600.0
"""How often is looked what is served, in seconds: kinds come and go with their definitions here, and those are heard."""
_QUIET = 32
"""After how many turns of the loop in which nobody had anything to do it is believed that nobody has."""


class EmbeddedCluster:
    """
    One control plane: a server without a listener, its actors and its families.

    Requests are answered as soon as it is made; what belongs to every cluster is
    there, and what runs on it runs, inside `async with`. Of the settings it heeds
    what they say of a cluster: simulate, stages, nodes, families, hooks, history.
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
        serves: Sequence[Brings] = (),
        also: Sequence[Callable[[EmbeddedCluster], Manager]] = (),
        metrics: Metrics | None = None,
    ) -> None:
        """
        Make a cluster on a store, or on one that is forgotten at the end.

        A store that is handed in stays open. `authority` is the certificate, in
        PEM, that leads to trust in whoever serves this cluster, and `port` is where.
        `stages` are those that the settings name, where they have been read already.
        What `also` returns runs on it besides, for as long as it does, and what that
        takes to be served is what `serves` brings. `metrics` count what families do.
        """
        self.settings = settings if settings is not None else Settings()
        self.name = name
        self.clock: Clock = clock or PacedClock(self.settings.speed)
        self.store: Store = store if store is not None else MemoryStore()
        self.reload_hooks: Callable[[], None] = lambda: None
        self.authenticator = authenticator or Authenticator({})
        self._owns_store = store is None
        self._also, self._serves, self._metrics = also, serves, metrics
        self._authority, self._port = authority, port
        pods = self.settings.simulate == "pods"
        self._stages = () if not pods else load_stages(self.settings.stages) if stages is None else stages
        self._stack = AsyncExitStack()
        self._asking: set[Request] = set()
        """What its own clients wait for an answer to."""
        self._calls: Calls | None = None
        self._tasks: Background
        self._ready = asyncio.Event()
        self.managers: list[Manager] = []
        """What runs the actors, and the families if there are any."""
        self.api = assemble(
            self.store,
            self.clock.now,
            self.authenticator,
            {"ping": _true, "log": _true, "actors": self._ready.is_set},
        )
        self.api.administration.clock = self.clock
        self.api.administration.settled = self.settled

    async def __aenter__(self) -> Self:
        await self.serve()
        await self.live()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def serve(self) -> None:
        """Have everything there that is there from the beginning; nobody acts on anything before it lives."""
        await self._or_end(self._begin())

    async def live(self) -> None:
        """Have everybody act who belongs to it."""
        await self._or_end(self._enliven())

    async def _or_end(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End actors and families; a store of its own finishes the writes it accepted, and ends its watches."""
        self._ready.clear()
        await self._stack.aclose()
        # Those who knew each other would stay until somebody looks for garbage.
        self.managers.clear()
        self.api.administration.settled = _at_once

    @property
    def is_ready(self) -> bool:
        """Say whether everything that belongs to it is there."""
        return self._ready.is_set()

    @property
    def is_idle(self) -> bool:
        """Say whether everybody who runs on it has nothing to do but wait."""
        return self._ready.is_set() and all(manager.is_idle for manager in self.managers)

    @property
    def asks(self) -> bool:
        """Say whether somebody here waits for an answer that is on its way: from the server, or from a hook."""
        calls = self._calls is not None and self._calls.under_way > 0
        return calls or not all(one.held and one.silenced for one in self._asking)

    @property
    def is_unheard(self) -> bool:
        """Say whether somebody waits for an answer from here that does not come, because of a fault."""
        return any(one.held and one.silenced for one in self._asking)

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
            request = Request(method, path, query, headers, body, user)
            self._asking.add(request)
            try:
                return await self.api.handle(request)
            finally:
                self._asking.discard(request)

        return Client(InProcessTransport(handle, self._patience))

    def _patience(self) -> float | None:
        """Return how long its own clients wait for an answer: as others do, where one may fail to come."""
        return PATIENCE if self.api.faults else None

    async def settled(self) -> None:
        """Wait until everybody who runs on it has nothing to do but wait, or until that takes too long."""
        await settled((self,))

    async def _begin(self) -> None:
        if self._owns_store:
            self._stack.push_async_callback(self.store.close)
        self._stack.push_async_callback(self.api.plane.asker.close)
        self._tasks = tasks = await self._stack.enter_async_context(Background())
        if self._owns_store:
            tasks.start(forget_old_versions(self.store, self.settings.history))
        tasks.start(publish_groups(self.api.plane))
        await self._seed()
        # Before anybody watches: each new kind has everybody look anew.
        await install(self.client(ITSELF), (*self._families(), *self._serves))

    async def _enliven(self) -> None:
        tasks = self._tasks
        await self._start_actors(tasks)
        if families := self._families():
            await self._start_families(families)
        for manager in self._also:
            await self._run(manager(self), tasks)
        self._ready.set()

    def _families(self) -> Sequence[Family]:
        said = self.settings
        manner = Manner(schedules=said.scheduler, manifest_limit=said.manifest_limit)
        return chosen(said.families, gated(manner, said.feature_gates)) if said.simulate != "off" else ()

    async def _seed(self) -> None:
        """Create what is there from the beginning, where it is not there yet."""
        # Side by side: what is written in one turn of the loop is one write to the log.
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
        if self.api.answer_now(Request("GET", f"{path}/{name}", user=ITSELF)) is not None:
            return
        answer = await self.request("POST", path, body=orjson.dumps(obj), user=ITSELF)
        if answer.status not in (201, 409):
            raise from_status(
                orjson.loads(answer.body) if isinstance(answer.body, bytes) else {}, answer.status
            )

    async def _start_actors(self, tasks: Background) -> None:
        await self._run(
            Manager(
                self.client(CONTROLLERS), self._actors(), clock=self.clock, log=log, discovers=_DISCOVERS
            ),
            tasks,
        )

    async def _run(self, manager: Manager, tasks: Background) -> None:
        self.managers.append(manager)
        tasks.start(manager.run())
        # Whoever looks at other clusters may have to wait for them; this one is there without.
        if not manager.looks_elsewhere:
            await manager.ready()

    def _actors(self) -> tuple[AnyController, ...]:
        actors = embedded_actors(self._authority)
        if self.settings.simulate != "off":
            actors += WORKLOADS
        if self.settings.simulate == "pods":
            actors += machines(self._stages, self.settings.nodes)
        return actors

    async def _start_families(self, families: Sequence[Family]) -> None:
        counted, hooks = self._metrics, Hooks(self.settings.hooks, log)
        client = self.client()
        await hooks.start()
        self._stack.push_async_callback(hooks.close)
        self._calls = calls = Calls(local=hooks.find, meter=counted.calls if counted is not None else None)
        self._stack.push_async_callback(calls.close)
        checks = [check for family in families for check in family.checks]
        inside = Inside(checks, client, self._port, log)
        self._stack.callback(self.api.plane.asker.here.clear)
        await inside.answer(self.api.plane.asker.here)
        await declare(self.client(ITSELF), hooks.manifests)
        # They end before the hooks they would call.
        tasks = await self._stack.enter_async_context(Background())
        tasks.start(inside.keep())
        meters = counted.of if counted is not None else lambda name: Meter()
        manager = product(client, families, self.clock, calls, meters=meters, discovers=_DISCOVERS)
        await self._run(manager, tasks)
        if self.settings.hooks:
            self.reload_hooks = hooks.reload
            tasks.start(follow(hooks, client, calls, manager))


async def settled(clusters: Iterable[EmbeddedCluster]) -> None:
    """
    Wait until nobody on some clusters has anything to do but wait, or until that takes too long.

    Whoever asked for something that is met with silence waits, too: nobody else is kept
    from living through a day by those who are not heard in it.
    """
    turns = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while turns < _QUIET:
                # What one controller writes is told to the others within a few turns of the loop.
                await asyncio.sleep(0)
                turns = turns + 1 if _are_at_rest(clusters) else 0


def _are_at_rest(clusters: Iterable[EmbeddedCluster]) -> bool:
    if all(cluster.is_idle for cluster in clusters):
        return True
    return any(cluster.is_unheard for cluster in clusters) and not any(cluster.asks for cluster in clusters)


class Background:
    """Work that goes on until somebody ends it."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        return self

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(_say_why)
        self._tasks.append(task)

    async def __aexit__(self, *_: object) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _say_why(task: asyncio.Task[None]) -> None:
    """Say why work has ended that nobody ended."""
    if not task.cancelled() and (failure := task.exception()) is not None:
        log.error("work in the background failed", because=str(failure), exc_info=failure)


def _true() -> bool:
    return True


async def _at_once() -> None:
    """Wait for nobody: nobody is there any more."""
