"""
A stage for scenarios of ObjectSets: a namespace, the controllers of the family, and what users do.

Scenarios run on the embedded server and, where LAMINA_TEST_SERVER says so, on a
real one. A scenario has a namespace of its own. The controllers are started and
stopped by the scenario, keep nothing in memory, and have a clock that can be wound.

With `is_cluster` the same scenario has ClusterObjectSets, whose objects are in two
namespaces in turn; with `phase_class` its phases are served as ObjectSetPhases.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

from lamina.client.client import Client
from lamina.clock import WoundClock
from lamina.core.model.effects import Written
from lamina.core.model.family import Family
from lamina.core.model.plan import Action, Gauge
from lamina.errors import AlreadyExists, ApiError, Conflict, NotFound
from lamina.families.objectset.family import family
from lamina.families.objectset.labels import API_VERSION, DEPLOYMENTS, PHASES, REVISION, SETS, SLICES
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.controller.manager import Manager
from lamina.runtime.metrics.prometheus import Metrics
from lamina.runtime.metrics.recorder import Recorder
from lamina.testing.waiting import eventually, idle
from tests.bed.fixtures import chosen_server
from tests.scenarios.objectset.clients import Crashing, Journal
from tests.scenarios.objectset.record import Record
from tests.scenarios.parity import Parity
from tests.unit.families.objectset import revisions

FAMILY: Family = family()
TIMEOUT = 60.0 if chosen_server() == "real" else 20.0
CONFIG_MAP = ("v1", "ConfigMap")
Predicate: TypeAlias = Callable[[Made], object]
RevisionsPredicate: TypeAlias = Callable[[list[Made]], object]


# What an object says


def condition(obj: Obj | None, name: str) -> tuple[str, str] | None:
    """Return the status and the reason of a condition; None where it is absent, or about an older generation."""
    found = conditions.find(conditions.of(obj or {}), name)
    if obj is None or found is None or found.get("observedGeneration") != meta.generation(obj):
        return None
    return found["status"], found.get("reason", "")


def has_condition(obj: Obj, name: str) -> bool:
    """Say whether a condition is there at all, whatever generation it is about."""
    return conditions.find(conditions.of(obj), name) is not None


def message(obj: Obj, name: str) -> str:
    found = conditions.find(conditions.of(obj), name)
    return found.get("message", "") if found is not None else ""


def controlled(obj: Obj) -> list[str]:
    """Return the names of the objects that a status lists in controllerOf, in order."""
    return [one["name"] for one in (obj.get("status") or {}).get("controllerOf") or ()]


def controller(live: Obj | None) -> str:
    """Return the name of the controller of an object, empty where it has none or does not exist."""
    found = meta.controller_of(live) if live is not None else None
    return found["name"] if found is not None else ""


def owners(live: Obj) -> dict[str, bool]:
    """Return the names of the owners of an object, and whether each is the controller."""
    return {one["name"]: bool(one.get("controller")) for one in meta.owner_refs(live)}


def revision_of(live: Obj) -> str:
    """Return the number of the revision that wrote an object last, as its annotation says."""
    return meta.annotations(live).get(REVISION, "")


def state(obj: Obj) -> str:
    """Return the lifecycle state of a set."""
    return str(obj["spec"].get("lifecycleState", "Active"))


def is_available(obj: Obj | None) -> bool:
    return condition(obj, "Available") == ("True", "Available")


def is_finished(obj: Obj | None) -> bool:
    """Say whether a set is available and controls all of its objects."""
    return obj is not None and is_available(obj) and not has_condition(obj, "InTransition")


def is_archived(obj: Obj | None) -> bool:
    # An archived set is final: its conditions stay those of the generation in which it was archived.
    return obj is not None and conditions.is_true(conditions.of(obj), "Archived")


@dataclass
class Stage:
    """The namespace, the controllers and the objects of one scenario."""

    client: Client
    id: str
    is_cluster: bool = False
    phase_class: str = ""
    clock: WoundClock = field(default_factory=WoundClock)
    journal: Journal = field(init=False)
    """The client of the controllers, with the requests that they made."""

    def __post_init__(self) -> None:
        self.namespace = f"os-{self.id}"
        self.namespaces = (self.namespace, f"{self.namespace}-2") if self.is_cluster else (self.namespace,)
        self.parity = Parity({"": self.client})
        self.journal = Journal(self.client)
        self.metrics = Metrics()
        """Has the metrics of the sets; the controllers are not counted."""
        self.passes: Counter[str] = Counter()
        """How often each controller has reconciled something."""
        self._places: dict[str, str] = {}
        self._running: list[tuple[Manager, asyncio.Task[None]]] = []

    async def begin(self) -> None:
        for name in self.namespaces:
            await self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    # ── manifests ──

    def named(self, name: str) -> str:
        """Return the name of a set or deployment: one of cluster scope must differ from those of other scenarios."""
        return f"{name}-{self.id}" if self.is_cluster else name

    def place(self, name: str) -> str:
        """Return the namespace of an object by its name."""
        return self._places.setdefault(name, self.namespaces[len(self._places) % len(self.namespaces)])

    def config_map(self, name: str, *, healthy: bool = True, **data: str) -> Made:
        """A ConfigMap; one that is not healthy lacks the annotation that the probe looks for."""
        where = self.place(name) if self.is_cluster else ""
        return revisions.config_map(name, healthy=healthy, namespace=where, **data)

    def phase(self, name: str, *objects: Made, **fields: Any) -> Made:
        if self.phase_class:
            fields = {"class": self.phase_class, **fields}
        return revisions.phase(name, *objects, **fields)

    def object_set(
        self, name: str, *phases: Made, previous: Iterable[str] = (), probed: bool = True, **fields: Any
    ) -> Made:
        """A set; `previous` are the names of the sets that it may take objects from."""
        spec = revisions.template(*phases, probed=probed)
        earlier = [self.named(one) for one in previous]
        made = revisions.object_set(
            self.named(name), spec, previous=earlier, cluster=self.is_cluster, **fields
        )
        return self._here(made)

    def deployment(
        self, name: str, *phases: Made, probed: bool = True, template: Obj | None = None, **fields: Any
    ) -> Made:
        """A deployment; `template` has further fields of the spec of its template."""
        spec = revisions.template(*phases, probed=probed, **(template or {}))
        labels = {"app": self.named(name)}
        made = revisions.deployment(self.named(name), spec, cluster=self.is_cluster, labels=labels, **fields)
        return self._here(made)

    def _here(self, made: Made) -> Made:
        return made if self.is_cluster else meta.with_metadata(made, namespace=self.namespace)

    # ── what users do ──

    async def given_set(self, name: str, *phases: Made, **fields: Any) -> Made:
        return await self.client.create(self.object_set(name, *phases, **fields))

    async def given_deployment(self, name: str, *phases: Made, **fields: Any) -> Made:
        return await self.client.create(self.deployment(name, *phases, **fields))

    async def want(self, name: str, *phases: Made, **fields: Any) -> None:
        """Replace the template of a deployment, whole."""
        wanted = self.deployment(name, *phases, **fields)
        await self.update(
            self.deployment_ref(name),
            lambda old: {**old, "spec": {**old["spec"], "template": wanted["spec"]["template"]}},
        )

    async def update(self, ref: Ref, change: Callable[[Made], Obj]) -> Made:
        """Replace an object by what is made of it, again where another write came first."""

        async def updated() -> Made | None:
            with suppress(Conflict):
                return await self.client.update(change(await self.client.get(ref)), manager="user")
            return None

        made = await eventually(updated, seconds=TIMEOUT, interval=0)
        assert made is not None
        return made

    async def edit(self, ref: Ref, patch: Obj) -> Made:
        """Patch an object as a user does, with a field manager of its own."""
        return await self.client.patch(ref, patch, manager="user")

    async def set_state(self, name: str, lifecycle_state: str) -> None:
        await self.edit(self.set_ref(name), {"spec": {"lifecycleState": lifecycle_state}})

    async def heal(self, name: str) -> None:
        """Give a ConfigMap the annotation that the probe looks for."""
        await self.edit(self.object_ref(name), {"metadata": {"annotations": {"name": name}}})

    async def hurt(self, name: str) -> None:
        """Give a ConfigMap another annotation than the probe looks for."""
        await self.edit(self.object_ref(name), {"metadata": {"annotations": {"name": "another"}}})

    # ── the controllers ──

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Stage"]:
        """Run the controllers until the end of the block."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    async def start(self, client: Journal | None = None) -> None:
        """Start the controllers with nothing in memory; beside others, if some run."""
        manager = Manager(
            client or self.journal,  # type: ignore[arg-type]  # it does what a client does
            FAMILY.controllers,
            self.clock,
            sources=FAMILY.sources,
            meters=lambda name: _Meter(self, name),
        )
        self._running.append((manager, asyncio.create_task(manager.run())))
        await manager.ready()

    async def stop(self) -> None:
        """Kill the controllers in the middle of what they do, and compare what they wrote with a simulation."""
        for _, task in self._running:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._running = []
        await self.parity.check()

    async def crash(self, writes: int) -> bool:
        """Run controllers until they crash after so many writes; False where they settle before."""
        client = Crashing(self.client, writes)
        await self.start(client)
        settled = asyncio.ensure_future(self.settled())
        crashed = asyncio.ensure_future(client.crashed.wait())
        await asyncio.wait([settled, crashed], return_when=asyncio.FIRST_COMPLETED)
        for task in (settled, crashed):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self.stop()
        return client.crashed.is_set()

    def pass_time(self, seconds: float) -> None:
        self.clock.wind(timedelta(seconds=seconds))

    def is_due(self, set_name: str, within: float) -> bool:
        """Say whether a set is reconciled within so many seconds, if no event comes before."""
        due = [manager.due(self.set_ref(set_name)) for manager, _ in self._running]
        return any(one is not None and one <= self.clock.now() + timedelta(seconds=within) for one in due)

    # ── what is observed ──

    def set_ref(self, name: str) -> Ref:
        """Return the reference of a set by the name that the scenario has for it."""
        return self._ref("ObjectSet", self.named(name))

    def deployment_ref(self, name: str) -> Ref:
        return self._ref("ObjectDeployment", self.named(name))

    def phase_ref(self, set_name: str, phase: str) -> Ref:
        """Return the reference of the ObjectSetPhase of a phase with a class."""
        return self._ref("ObjectSetPhase", f"{self.named(set_name)}-{phase}")

    def owner_of(self, set_name: str, phase: str) -> str:
        """Return the name of what owns the objects of a phase: its ObjectSetPhase or the set."""
        return f"{self.named(set_name)}-{phase}" if self.phase_class else self.named(set_name)

    def owner_in(self, obj: Obj, phase: str) -> str:
        """Return the name of what owns the objects of a phase of this set, which a deployment made."""
        return f"{meta.name(obj)}-{phase}" if self.phase_class else meta.name(obj)

    def _ref(self, kind: str, name: str) -> Ref:
        if self.is_cluster:
            return Ref(API_VERSION, f"Cluster{kind}", "", name)
        return Ref(API_VERSION, kind, self.namespace, name)

    def object_ref(self, name: str, api_version: str = "v1", kind: str = "ConfigMap") -> Ref:
        """Return the reference of a managed object, by default a ConfigMap."""
        return Ref(api_version, kind, self.place(name), name)

    async def get(self, ref: Ref) -> Made | None:
        try:
            return await self.client.get(ref)
        except NotFound:
            return None

    async def set(self, name: str) -> Made:
        return await self.client.get(self.set_ref(name))

    async def deployment_named(self, name: str) -> Made:
        return await self.client.get(self.deployment_ref(name))

    async def object(self, name: str) -> Made | None:
        """Return a ConfigMap, None where it does not exist."""
        return await self.get(self.object_ref(name))

    async def live(self, name: str) -> Made:
        """Return a ConfigMap that exists."""
        return await self.client.get(self.object_ref(name))

    async def until(self, ref: Ref, is_so: Predicate) -> Made:
        """Wait until an object exists and meets a condition."""
        found = await eventually(
            lambda: self.get(ref),
            lambda obj: obj is not None and is_so(obj),
            seconds=TIMEOUT,
            describe=_described,
        )
        assert found is not None
        return found

    async def until_gone(self, ref: Ref) -> None:
        await eventually(lambda: self.get(ref), lambda obj: obj is None, seconds=TIMEOUT, describe=_described)

    async def until_set(self, name: str, is_so: Predicate = is_finished) -> Made:
        """Wait until a set meets a condition: by default, that it is available and controls all of its objects."""
        return await self.until(self.set_ref(name), is_so)

    async def until_object(self, name: str, is_so: Predicate = bool) -> Made:
        """Wait until a ConfigMap exists and meets a condition."""
        return await self.until(self.object_ref(name), is_so)

    async def until_deployment(self, name: str, is_so: Predicate) -> Made:
        return await self.until(self.deployment_ref(name), is_so)

    async def revisions(self, deployment: str) -> list[Made]:
        """Return the sets that a deployment controls, by their numbers."""
        kind = self.set_ref("").kind
        where = "" if self.is_cluster else self.namespace
        sets = (await self.client.list((API_VERSION, kind), where)).items
        owned = [one for one in sets if controller(one) == self.named(deployment)]
        return sorted(owned, key=lambda one: one["spec"].get("revision", 0))

    async def until_revisions(self, deployment: str, are_so: RevisionsPredicate) -> list[Made]:
        """Wait until the sets of a deployment, by their numbers, meet a condition."""
        return await eventually(
            lambda: self.revisions(deployment),
            are_so,
            seconds=TIMEOUT,
            describe=lambda found: [_described(one) for one in found],
        )

    async def until_rolled_out(self, deployment: str, number: int) -> list[Made]:
        """Wait until the revision of this number is finished and all others are archived; return all of them."""
        await self.until_revisions(
            deployment,
            lambda found: (
                bool(found)
                and found[-1]["spec"].get("revision") == number
                and is_finished(found[-1])
                and all(is_archived(one) for one in found[:-1])
            ),
        )
        await self.settled()
        return await self.revisions(deployment)

    async def settled(self) -> None:
        """Wait until the controllers are idle and no object of the scenario changes."""
        await idle(
            *(manager for manager, _ in self._running),
            unchanged=self._newest,
            rounds=8,
            interval=0.03,
            seconds=TIMEOUT,
        )

    async def _newest(self) -> int:
        found = [one for kind in self._kinds() for one in await self.listed(kind)]
        return max((int(meta.resource_version(one)) for one in found), default=0)

    def _kinds(self) -> Sequence[tuple[str, str]]:
        index = int(self.is_cluster)
        return (CONFIG_MAP, *((API_VERSION, kinds[index].kind) for kinds in (SETS, DEPLOYMENTS, PHASES)))

    async def listed(self, kind: tuple[str, str]) -> list[Made]:
        """Return the objects of a kind that belong to the scenario."""
        if kind[1].startswith("Cluster"):
            return [one for one in (await self.client.list(kind)).items if self.is_mine(one)]
        return [
            one
            for namespace in self.namespaces
            for one in (await self.client.list(kind, namespace)).items
            if meta.name(one) != "kube-root-ca.crt"
        ]

    def is_mine(self, obj: Obj) -> bool:
        """Say whether an object belongs to the scenario."""
        where = meta.namespace(obj)
        return where in self.namespaces if where else self.id in meta.name(obj)

    @asynccontextmanager
    async def recording(self, *kinds: tuple[str, str]) -> AsyncIterator[Record]:
        """Record every change of the objects of the scenario of these kinds, by default ConfigMaps and sets."""
        kinds = kinds or (CONFIG_MAP, (API_VERSION, self.set_ref("").kind))
        async with Record(self.client, kinds, self.is_mine) as record:
            yield record

    # ── the end ──

    async def end(self) -> None:
        """Delete what the scenario made; finalizers are removed, since no controller is left to do it."""
        await self.stop()
        index = int(self.is_cluster)
        for kinds in (DEPLOYMENTS, SETS, PHASES, SLICES):
            for one in await self.listed((API_VERSION, kinds[index].kind)):
                await self._take_away(one)
        for one in await self.listed(CONFIG_MAP):
            if meta.finalizers(one):
                await self._take_away(one)
        for name in self.namespaces:
            with suppress(NotFound, Conflict):
                await self.client.delete(Ref("v1", "Namespace", "", name))

    async def _take_away(self, obj: Obj) -> None:
        with suppress(NotFound, Conflict, AlreadyExists):
            if meta.finalizers(obj):
                await self.client.patch(meta.ref(obj), {"metadata": {"finalizers": None}})
            await self.client.delete(meta.ref(obj))


class _Meter(Recorder):
    """Counts the passes of a controller, and collects its writes for the parity check."""

    def __init__(self, stage: Stage, controller: str) -> None:
        self._passes, self._name = stage.passes, controller
        self._parity, self._metrics = stage.parity.recorder(controller), stage.metrics.of(controller)

    def worked(self, result: str, seconds: float) -> None:
        self._passes[self._name] += 1

    def wrote(self, action: Action, written: Sequence[Written] = ()) -> None:
        self._parity.wrote(action, written)

    def refused(self, action: Action, error: ApiError) -> None:
        self._parity.refused(action, error)

    def gauges(self, ref: Ref, gauges: Sequence[Gauge]) -> None:
        self._metrics.gauges(ref, gauges)


def _described(obj: Made | None) -> object:
    if obj is None:
        return None
    return {key: value for key, value in obj.items() if key != "metadata"} | {
        "name": meta.name(obj),
        "annotations": dict(meta.annotations(obj)),
        "owners": owners(obj),
        "finalizers": list(meta.finalizers(obj)),
        "isDeleting": meta.is_deleting(obj),
    }
