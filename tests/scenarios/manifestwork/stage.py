"""
A stage for stories about a fleet: a hub, clusters that answer, and a process of ours that can die at any time.

Stories run on the embedded server and, where LAMINA_TEST_SERVER says so, on a
real one. A story has a namespace and clusters of its own.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from lamina.client.client import Client
from lamina.clock import PacedClock
from lamina.core.model.controller import AnyController
from lamina.core.rollout.revision_object import CONTROLLER_REVISION_VERSION
from lamina.errors import AlreadyExists, Conflict, LaminaError, NotFound
from lamina.families.manifestwork.hub.controller import hub
from lamina.families.manifestwork.labels import (
    DISPATCHED,
    GROUP_INDEX,
    GROUP_NAME,
    HASH,
    OWNER,
    PLACEMENT_LABEL,
    PLACEMENT_VERSION,
    REPLICA_SET_VERSION,
    WORK_VERSION,
)
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.controller.concurrency import run_concurrently
from lamina.runtime.controller.manager import Manager
from lamina.runtime.metrics.recorder import Recorder
from lamina.testing.waiting import eventually, idle
from tests.bed.fixtures import chosen_server
from tests.scenarios.manifestwork.spokes import Spokes
from tests.scenarios.parity import Parity, composed
from tests.unit.families.manifestwork.fleet import OK1
from tests.unit.families.manifestwork.fleet import progressive as on_paper

TIMEOUT = 60.0 if chosen_server() == "real" else 20.0
Job = TypeVar("Job")
SHOWN = ("PlacementVerified", "ManifestworkApplied", "Progressing", "PlacementRolledOut")


def progressive(**settings: Any) -> Made:
    """Return a strategy of the simulated stories, with a deadline that a slow machine does not exceed."""
    return on_paper(**{"progressDeadline": "60s", **settings})


@dataclass
class Seen:
    """The hub at one moment, clusters under the names the story has for them."""

    suffix: str
    app: Made
    works: Sequence[Made]
    revisions: Sequence[Made]

    @property
    def status(self) -> Made:
        return self.app.get("status") or {}

    def _by_cluster(self, read: Callable[[Made], Any]) -> dict[str, Any]:
        return {meta.namespace(work).removesuffix(self.suffix): read(work) for work in self.works}

    @property
    def revs(self) -> dict[str, str]:
        """Which template each cluster has, by its rev."""
        return self._by_cluster(lambda work: _rev(work["spec"]))

    @property
    def hashes(self) -> dict[str, str]:
        return self._by_cluster(lambda work: meta.labels(work).get(HASH, ""))

    @property
    def generations(self) -> dict[str, int]:
        return self._by_cluster(meta.generation)

    @property
    def dispatched(self) -> dict[str, str]:
        return self._by_cluster(lambda work: meta.annotations(work).get(DISPATCHED, ""))

    @property
    def history(self) -> list[tuple[int, str]]:
        """The revisions that are kept, with the rev each holds, by number."""
        return sorted(
            (one["revision"], _rev(one["data"]["spec"]["manifestWorkTemplate"])) for one in self.revisions
        )

    def said(self, name: str) -> tuple[str, str]:
        found = conditions.find(self.status.get("conditions") or (), name)
        return (found["status"], found.get("reason", "")) if found is not None else ("", "")

    def message(self, name: str = "Progressing") -> str:
        found = conditions.find(self.status.get("conditions") or (), name)
        return found.get("message", "") if found is not None else ""

    @property
    def row(self) -> tuple[str, ...]:
        return row(self.app)

    @property
    def summary(self) -> dict[str, int]:
        return self.status.get("summary") or {}

    @property
    def current(self) -> str:
        return str(self.status.get("currentRevision", ""))

    @property
    def update(self) -> str:
        return str(self.status.get("updateRevision", ""))

    @property
    def aborted(self) -> str:
        return str(self.status.get("abortedTime", ""))

    @property
    def is_done(self) -> bool:
        """Whether all clusters have the wanted revision, and the status says so for this spec."""
        found = conditions.find(self.status.get("conditions") or (), "PlacementRolledOut")
        return (
            found is not None
            and found["status"] == "True"
            and found.get("observedGeneration") == meta.generation(self.app)
        )

    @property
    def is_aborted(self) -> bool:
        return self.said("Progressing") == ("False", "RolloutAborted")

    @property
    def is_restored(self) -> bool:
        """Whether an aborted rollout has come all the way back, as far as the status says."""
        found = re.search(r"(\d+) of (\d+) clusters restored", self.message())
        return self.is_aborted and found is not None and found[1] == found[2]


def _rev(template: Obj) -> str:
    return str(template["workload"]["manifests"][0]["data"]["rev"])


def row(app: Obj) -> tuple[str, ...]:
    """Return what the conditions of a replica set say: verified, applied, progressing, rolled out."""
    said = (app.get("status") or {}).get("conditions") or ()
    found = [conditions.find(said, name) for name in SHOWN]
    return tuple(f"{one['status'][:1]} {one.get('reason')}" if one is not None else "-" for one in found)


@dataclass
class Stage:
    """One story's hub and fleet."""

    client: Client
    id: str
    clock: PacedClock = field(default_factory=PacedClock)
    own: Client | None = None
    """The client that the hub itself uses, where it is to be another than the story's."""
    meters: Callable[[str], Recorder] = lambda controller: Recorder()
    """Counts what the hub does."""
    made: list[Ref] = field(default_factory=list)
    namespaces: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.namespace, self.suffix = f"team-{self.id}", f"-{self.id}"
        self.app = Ref(REPLICA_SET_VERSION, "ManifestWorkReplicaSet", self.namespace, "app")
        self.spokes = Spokes(self.suffix)
        self.parity = Parity({"": self.client})
        self._running: list[tuple[Manager, asyncio.Task[None]]] = []
        self._agents: tuple[Manager, asyncio.Task[None]] | None = None

    # ── what users do ──

    async def given(
        self, content: Obj = OK1, clusters: int | Sequence[str] = 4, strategy: Obj | None = None, **spec: Any
    ) -> Made:
        """Make a placement that selects so many clusters, and a replica set that uses it."""
        names = [f"c{number}" for number in range(1, clusters + 1)] if isinstance(clusters, int) else clusters
        await self.place("place", {0: names})
        return await self.given_set(
            content, {"place": strategy if strategy is not None else progressive()}, **spec
        )

    async def given_set(
        self, content: Obj, strategies: Mapping[str, Obj], *, name: str = "app", **more: Any
    ) -> Made:
        refs = [{"name": one, "rolloutStrategy": how} for one, how in strategies.items()]
        metadata = {"name": name, "namespace": self.namespace, **more.pop("metadata", {})}
        api_version = more.pop("api_version", REPLICA_SET_VERSION)
        spec = {"placementRefs": refs, "manifestWorkTemplate": content, **more}
        return await self.create(
            {"apiVersion": api_version, "kind": "ManifestWorkReplicaSet", "metadata": metadata, "spec": spec}
        )

    async def given_namespace(self, name: str) -> None:
        if name not in self.namespaces:
            self.namespaces.add(name)
            with suppress(AlreadyExists):
                await self.client.create(
                    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                )

    def cluster(self, name: str) -> str:
        """Return what a cluster of this story is really called."""
        return f"{name}{self.suffix}"

    async def place(
        self, name: str, groups: Mapping[int, Sequence[str]], names: Mapping[int, str] | None = None
    ) -> None:
        """Have a placement select these clusters, in these groups, and no others."""
        await self.given_namespace(self.namespace)
        members = {one for those in groups.values() for one in those}
        await _each(sorted(members), lambda one: self.given_namespace(self.cluster(one)))
        with suppress(AlreadyExists):
            await self.create(self._of("Placement", name, spec={}))
        there = {meta.name(one): one for one in await self.decisions(name)}
        # A decision has at most a hundred clusters; an empty one exists, too.
        parts = [
            (
                f"{name}-decision-{index + 1}{f'-{first}' if first else ''}",
                index,
                clusters[first : first + 100],
            )
            for index, clusters in groups.items()
            for first in range(0, max(1, len(clusters)), 100)
        ]
        for called, index, clusters in parts:
            labels = {
                PLACEMENT_LABEL: name,
                GROUP_INDEX: str(index),
                GROUP_NAME: (names or {}).get(index, ""),
            }
            if called not in there:
                await self.create(self._of("PlacementDecision", called, labels=labels))
            decided = [{"clusterName": self.cluster(one), "reason": ""} for one in clusters]
            await self.client.patch(
                self.at("PlacementDecision", called), {"status": {"decisions": decided}}, subresource="status"
            )
            there.pop(called, None)
        for gone in there.values():
            await self.client.delete(meta.ref(gone))

    async def decisions(self, placement: str) -> Sequence[Made]:
        labels = f"{PLACEMENT_LABEL}={placement}"
        return (
            await self.client.list((PLACEMENT_VERSION, "PlacementDecision"), self.namespace, labels=labels)
        ).items

    def _of(self, kind: str, name: str, labels: Obj | None = None, **fields: Any) -> Made:
        metadata = {"name": name, "namespace": self.namespace, **({"labels": labels} if labels else {})}
        return {"apiVersion": PLACEMENT_VERSION, "kind": kind, "metadata": metadata, **fields}

    def at(self, kind: str, name: str) -> Ref:
        return Ref(PLACEMENT_VERSION, kind, self.namespace, name)

    async def want(self, content: Obj) -> None:
        """Replace the template, whole."""
        await self.set(manifestWorkTemplate=content)

    async def set(self, **spec: Any) -> None:
        """Replace parts of the spec, each whole."""

        async def is_written() -> bool:
            old = await self.client.get(self.app)
            with suppress(Conflict):
                await self.client.update({**old, "spec": {**old["spec"], **spec}})
                return True
            return False

        await eventually(is_written, seconds=TIMEOUT, interval=0)

    async def strategy(self, how: Obj) -> None:
        await self.set(placementRefs=[{"name": "place", "rolloutStrategy": how}])

    async def create(self, obj: Obj) -> Made:
        await self.given_namespace(meta.namespace(obj))
        made = await self.client.create(obj)
        self.made.append(meta.ref(made))
        return made

    # ── the hub and its agents ──

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Stage"]:
        """Run the hub and the agents until the end of the block."""
        await self.start_agents()
        await self.start()
        try:
            yield self
        finally:
            await self.stop()
            await self.stop_agents()

    async def start(self, client: Client | None = None) -> None:
        """Start a hub with nothing remembered; another beside the one that runs, if one does."""
        self._running.append(await self._run(client or self.own or self.client, hub()))

    async def stop(self) -> None:
        """Die, in the middle of whatever is going on."""
        for _, task in self._running:
            await _ended(task)
        self._running = []
        await self.parity.check()

    async def start_agents(self) -> None:
        if self._agents is None:
            self._agents = await self._run(self.client, self.spokes.controller())

    async def stop_agents(self) -> None:
        if self._agents is not None:
            await _ended(self._agents[1])
            self._agents = None

    async def _run(self, client: Client, controller: AnyController) -> tuple[Manager, asyncio.Task[None]]:
        manager = Manager(client, [controller], self.clock, meters=self._meter)
        task = asyncio.create_task(manager.run())
        await manager.ready()
        return manager, task

    def _meter(self, controller: str) -> Recorder:
        return composed(self.meters(controller), self.parity.recorder(controller))

    def reconcile_everything(self) -> None:
        """Have the agents look at everything: the story has changed how things are."""
        if self._agents is not None:
            self._agents[0].resync()

    def pass_time(self, seconds: float) -> None:
        self.clock.wind(timedelta(seconds=seconds))

    # ── what is seen ──

    async def seen(self, *, works_first: bool = False) -> Seen:
        """
        Read the replica set and then its works, or the other way round.

        The reads are separate, and the hub may write between them. It writes the status before the
        works, so only a status that is read after the works is at least as new as they are.
        """
        labels = f"{OWNER}={self.namespace}.app"
        before = None if works_first else await self.client.get(self.app)
        works = (await self.client.list((WORK_VERSION, "ManifestWork"), labels=labels)).items
        app = before or await self.client.get(self.app)
        kept = (
            await self.client.list(
                (CONTROLLER_REVISION_VERSION, "ControllerRevision"), self.namespace, labels=labels
            )
        ).items
        return Seen(self.suffix, app, works, kept)

    async def until(
        self, is_so: Callable[[Seen], bool], timeout: float = TIMEOUT, *, works_first: bool = False
    ) -> Seen:
        """Wait until the hub meets a condition."""
        return await eventually(
            lambda: self.seen(works_first=works_first),
            is_so,
            seconds=timeout,
            describe=lambda seen: (seen.row, seen.revs, seen.history, seen.status),
        )

    async def until_said(self, is_so: Callable[[Seen], bool]) -> Seen:
        """Wait until the status of the replica set meets a condition; its works are too many to list each time."""

        async def read() -> Seen:
            return Seen(self.suffix, await self.client.get(self.app), (), ())

        return await eventually(
            read, is_so, seconds=6 * TIMEOUT, interval=0.1, describe=lambda seen: seen.status
        )

    async def until_done(self) -> Seen:
        """Wait until all clusters have the wanted revision, and no process writes any more."""
        await self.until(lambda now: now.is_done)
        return await self.settled()

    async def until_aborted(self) -> Seen:
        """Wait until an aborted rollout has come all the way back."""
        await self.until(lambda now: now.is_restored)
        return await self.settled()

    async def until_aborted_at_last(self) -> Seen:
        """Wait until an aborted rollout is rolled back completely, however busy all processes are meanwhile."""
        return await self.until(lambda now: now.is_restored, 3 * TIMEOUT)

    async def settled(self) -> Seen:
        """Wait until the hub and the agents are idle and no work changes."""
        managers = [one for one, _ in self._running] + ([self._agents[0]] if self._agents else [])

        async def newest() -> int:
            listing = await self.client.list((WORK_VERSION, "ManifestWork"))
            return max((int(meta.resource_version(one) or 0) for one in listing.items), default=0)

        await idle(*managers, unchanged=newest, rounds=8, interval=0.03, seconds=TIMEOUT)
        return await self.seen()

    @asynccontextmanager
    async def recording(self) -> AsyncIterator[list[tuple[tuple[str, ...], str, str, str]]]:
        """Write down every row that the conditions go through, with both revisions and the time of an abort."""
        rows: list[tuple[tuple[str, ...], str, str, str]] = []
        started = asyncio.Event()

        async def record() -> None:
            watching = self.client.watch(
                (REPLICA_SET_VERSION, "ManifestWorkReplicaSet"), self.namespace, initial=True
            )
            async for event in watching:
                if event["type"] == "BOOKMARK":
                    started.set()
                    continue
                status = event["object"].get("status") or {}
                shown = [
                    str(status.get(name, "")) for name in ("currentRevision", "updateRevision", "abortedTime")
                ]
                found = (row(event["object"]), shown[0], shown[1], shown[2])
                if not rows or rows[-1] != found:
                    rows.append(found)

        task = asyncio.create_task(record())
        await started.wait()
        try:
            yield rows
        finally:
            await _ended(task)

    async def get(self, ref: Ref) -> Made | None:
        try:
            return await self.client.get(ref)
        except NotFound:
            return None

    async def until_gone(self, ref: Ref) -> None:
        await eventually(lambda: self.get(ref), lambda obj: obj is None, seconds=TIMEOUT)

    async def end(self) -> None:
        """Take away what the story made, and what would outlive it first."""
        await self.stop()
        await self.stop_agents()
        works = [meta.ref(one) for one in (await self.client.list((WORK_VERSION, "ManifestWork"))).items]
        await _each([one for one in works if one.namespace.endswith(self.suffix)], self._take_away)
        for ref in reversed(self.made):
            await self._take_away(ref)
        await _each(sorted(self.namespaces), self._close)

    async def _close(self, namespace: str) -> None:
        with suppress(NotFound, Conflict):
            await self.client.delete(Ref("v1", "Namespace", "", namespace))

    async def _take_away(self, ref: Ref) -> None:
        with suppress(NotFound, Conflict):
            found = await self.client.get(ref)
            if meta.finalizers(found):
                await self.client.patch(ref, {"metadata": {"finalizers": None}})
            await self.client.delete(ref)


async def _each(jobs: Sequence[Job], do: Callable[[Job], Awaitable[None]]) -> None:
    """Do something with each of some, a few at a time."""
    for outcome in await run_concurrently(jobs, do, at_once=16):
        if isinstance(outcome, LaminaError):
            raise outcome


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
