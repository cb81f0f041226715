"""
A stage for scenarios of resource graphs: a namespace, an API group, the controllers, and what users do.

Scenarios run on the embedded server and, where LAMINA_TEST_SERVER says so, on a
real one. A scenario has a namespace and an API group of its own for the kinds that it
generates; definitions have the id of the scenario in their names. The controllers are
started and stopped by the scenario, and have a clock that can be wound.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

from lamina.client.client import Client
from lamina.clock import PacedClock
from lamina.core.model.effects import Written
from lamina.core.model.family import Family
from lamina.core.model.plan import Action
from lamina.errors import ApiError, Conflict, NotFound, UnknownKind
from lamina.families.resourcegraph.family import family
from lamina.families.resourcegraph.hashes import label_value
from lamina.families.resourcegraph.labels import API_VERSION
from lamina.families.resourcegraph.options import DEFAULTS, Options
from lamina.graph.language.pluralize import pluralize
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.controller.manager import Manager
from lamina.runtime.metrics.recorder import Recorder
from lamina.testing.waiting import eventually, idle
from tests.bed.fixtures import chosen_server
from tests.scenarios.objectset.clients import Crashing, Journal
from tests.scenarios.parity import Parity

FAMILY: Family = family()
TIMEOUT = 60.0 if chosen_server() == "real" else 20.0
CONFIG_MAP = ("v1", "ConfigMap")
Predicate: TypeAlias = Callable[[Made], object]
DELETING_KINDS = Options(deletes_definitions=True)
"""As upstream with --allow-crd-deletion."""

APP_SPEC: Made = {"name": "string", "replicas": "integer | default=1"}
"""The schema of most scenarios."""


# What an object says


def condition(obj: Obj | None, name: str) -> tuple[str, str] | None:
    """Return the status and the reason of a condition; None where it is absent, or about an older generation."""
    found = conditions.find(conditions.of(obj or {}), name)
    if obj is None or found is None or found.get("observedGeneration") != meta.generation(obj):
        return None
    return found["status"], found.get("reason", "")


def message(obj: Obj, name: str) -> str:
    found = conditions.find(conditions.of(obj), name)
    return found.get("message", "") if found is not None else ""


def status(obj: Obj) -> Obj:
    return obj.get("status") or {}


def is_active(obj: Obj) -> bool:
    """Say whether a definition or an instance is active, and its conditions are about its latest generation."""
    if status(obj).get("state") not in ("Active", "ACTIVE"):
        return False
    # The result of a rollback is about the generation that asked for it.
    found = conditions.without_condition(conditions.of(obj), "RollbackSucceeded")
    return all(one.get("observedGeneration") == meta.generation(obj) for one in found)


def is_refused(obj: Obj, name: str = "GraphAccepted") -> bool:
    found = condition(obj, name)
    return found is not None and found[0] == "False"


def is_on(*, revision: int | None = None, input_revision: int | None = None) -> Predicate:
    """Return whether an instance has completed a revision of its definition, or an input revision, and is active."""

    def holds(obj: Made) -> bool:
        found = status(obj)
        return (
            is_active(obj)
            and (revision is None or found.get("observedRGDRevision") == revision)
            and (input_revision is None or found.get("observedInputRevision") == input_revision)
        )

    return holds


def config_map(name: str, **data: str) -> Made:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": dict(data)}


def node(id: str, template: Obj, **fields: Any) -> Made:
    """A resource of a definition."""
    return {"id": id, "template": template, **fields}


CONFIG = node("config", config_map("${schema.spec.name}-cm", replicas="${string(schema.spec.replicas)}"))
"""The resource of most scenarios."""


@dataclass
class Stage:
    """The namespace, the API group, the controllers and the objects of one scenario."""

    client: Client
    id: str
    clock: PacedClock = field(default_factory=PacedClock)
    journal: Journal = field(init=False)
    """The client of the controllers, with the requests that they made."""

    def __post_init__(self) -> None:
        self.namespace = f"rg-{self.id}"
        self.group = f"g{self.id}.example.com"
        self.parity = Parity({"": self.client})
        self.journal = Journal(self.client)
        self._namespaces = [self.namespace]
        self._kinds: dict[str, tuple[str, bool]] = {}
        """The version and the scope of each kind that a definition generates."""
        self._running: list[tuple[Manager, asyncio.Task[None]]] = []

    async def begin(self) -> None:
        await self._create_namespace(self.namespace)

    async def also_namespace(self, suffix: str) -> str:
        """Create another namespace, and return its name."""
        name = f"{self.namespace}-{suffix}"
        self._namespaces.append(name)
        await self._create_namespace(name)
        return name

    async def _create_namespace(self, name: str) -> None:
        await self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    # ── manifests ──

    def named(self, name: str) -> str:
        """Return the name of a definition: it must differ from those of other scenarios."""
        return f"{name}-{self.id}"

    def definition(
        self,
        *resources: Obj,
        name: str = "app",
        kind: str = "App",
        spec: Obj = APP_SPEC,
        schema: Obj | None = None,
        annotations: Obj | None = None,
        **fields: Any,
    ) -> Made:
        """A definition; `schema` has further fields of its schema, `fields` further ones of its spec."""
        stated = {
            "apiVersion": "v1alpha1",
            "kind": kind,
            "group": self.group,
            "spec": dict(spec),
            **(schema or {}),
        }
        metadata: Made = {"name": self.named(name)}
        if annotations:
            metadata["annotations"] = dict(annotations)
        self._kinds[kind] = (str(stated["apiVersion"]), stated.get("scope") != "Cluster")
        return {
            "apiVersion": API_VERSION,
            "kind": "ResourceGraphDefinition",
            "metadata": metadata,
            "spec": {"schema": stated, "resources": list(resources or (CONFIG,)), **fields},
        }

    def instance(
        self,
        name: str,
        *,
        kind: str = "App",
        namespace: str = "",
        annotations: Obj | None = None,
        **spec: Any,
    ) -> Made:
        """An instance; its spec.name is its own where none is given."""
        version, namespaced = self._kinds[kind]
        metadata: Made = {"name": name}
        if namespaced:
            metadata["namespace"] = namespace or self.namespace
        if annotations:
            metadata["annotations"] = dict(annotations)
        return {
            "apiVersion": f"{self.group}/{version}",
            "kind": kind,
            "metadata": metadata,
            "spec": {"name": name, **spec},
        }

    def placed(self, obj: Obj) -> Made:
        """Return an object in the scenario's namespace."""
        return {**obj, "metadata": {"namespace": self.namespace, **meta.metadata(obj)}}

    # ── what users do ──

    async def given_definition(self, *resources: Obj, **fields: Any) -> Made:
        """Create a definition, and wait until it is active."""
        made = await self.client.create(self.definition(*resources, **fields))
        return await self.until(meta.ref(made), is_active)

    async def refused_definition(
        self, *resources: Obj, condition: str = "GraphAccepted", **fields: Any
    ) -> str:
        """Create a definition that does not compile, and return the message of its condition."""
        made = await self.client.create(self.definition(*resources, **fields))
        found = await self.until(meta.ref(made), lambda obj: is_refused(obj, condition))
        return message(found, condition)

    async def redefine(self, *resources: Obj, **fields: Any) -> Made:
        """Replace the spec of a definition, whole, and return what was written."""
        wanted = self.definition(*resources, **fields)
        return await self.update(meta.ref(wanted), lambda old: {**old, "spec": wanted["spec"]})

    async def given_instance(self, name: str, *, settles: bool = True, **fields: Any) -> Made:
        """Create an instance, and wait until it is active; without `settles` only create it."""
        made = await self.client.create(self.instance(name, **fields))
        return await self.until(meta.ref(made), is_active) if settles else made

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

    async def edit_status(self, ref: Ref, status: Obj) -> Made:
        """Patch the status of an object, as another controller does."""
        return await self.client.patch(ref, {"status": status}, subresource="status", manager="other")

    async def edit_spec(self, name: str, *, kind: str = "App", **spec: Any) -> Made:
        """Patch the spec of an instance."""
        return await self.edit(self.instance_ref(name, kind), {"spec": spec})

    async def annotate(self, ref: Ref, **annotations: str | None) -> Made:
        """Set annotations with the prefix kro.run/; underscores stand for dashes, None removes one."""
        named = {f"kro.run/{key.replace('_', '-')}": value for key, value in annotations.items()}
        return await self.edit(ref, {"metadata": {"annotations": named}})

    async def delete_crd(self, kind: str = "App") -> None:
        """Delete the kind of a definition by hand; its instances go with it."""
        await self.client.delete(self.crd_ref(kind))

    async def until_accepted(self, obj: Obj) -> Made:
        """Create an object, again until the server has what it needs for that: an account of a pod, for example."""

        async def created() -> Made | None:
            with suppress(ApiError):
                return await self.client.create(obj)
            return None

        made = await eventually(created, seconds=TIMEOUT)
        assert made is not None
        return made

    # ── the controllers ──

    @asynccontextmanager
    async def running(self, options: Options = DEFAULTS) -> AsyncIterator["Stage"]:
        """Run the controllers until the end of the block."""
        await self.start(options=options)
        try:
            yield self
        finally:
            await self.stop()

    async def start(self, client: Journal | None = None, *, options: Options = DEFAULTS) -> None:
        """Start the controllers with nothing in memory; beside others, if some run."""
        # Compiled graphs are kept by the family value: a new process has none.
        started = family(options)
        manager = Manager(
            client or self.journal,  # type: ignore[arg-type]  # it does what a client does
            started.controllers,
            self.clock,
            sources=started.sources,
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

    async def restart(self) -> None:
        """Kill the controllers, and start them with nothing in memory."""
        await self.stop()
        await self.start()

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

    # ── what is observed ──

    def definition_ref(self, name: str = "app") -> Ref:
        return Ref(API_VERSION, "ResourceGraphDefinition", "", self.named(name))

    def instance_ref(self, name: str, kind: str = "App", namespace: str = "") -> Ref:
        version, namespaced = self._kinds[kind]
        where = (namespace or self.namespace) if namespaced else ""
        return Ref(f"{self.group}/{version}", kind, where, name)

    def crd_ref(self, kind: str = "App") -> Ref:
        name = f"{pluralize(kind.lower())}.{self.group}"
        return Ref("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name)

    def object_ref(
        self, name: str, *, api_version: str = "v1", kind: str = "ConfigMap", namespace: str = ""
    ) -> Ref:
        """Return the reference of a child, by default a ConfigMap of the scenario's namespace."""
        return Ref(api_version, kind, namespace or self.namespace, name)

    async def get(self, ref: Ref) -> Made | None:
        try:
            return await self.client.get(ref)
        except NotFound:
            return None

    async def definition_now(self, name: str = "app") -> Made:
        return await self.client.get(self.definition_ref(name))

    async def instance_now(self, name: str, kind: str = "App") -> Made:
        return await self.client.get(self.instance_ref(name, kind))

    async def object(self, name: str) -> Made | None:
        """Return a ConfigMap, None where it does not exist."""
        return await self.get(self.object_ref(name))

    async def until(self, ref: Ref, is_so: Predicate = bool) -> Made:
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

    async def until_ending(self, ref: Ref) -> None:
        """Wait until an object is gone, or is being deleted: nothing stops the containers of a pod here."""
        await eventually(
            lambda: self.get(ref),
            lambda obj: obj is None or meta.is_deleting(obj),
            seconds=TIMEOUT,
            describe=_described,
        )

    async def until_passing_time(self, name: str, is_so: Predicate = is_active, kind: str = "App") -> Made:
        """Wait until an instance meets a condition, while time passes: what failed is tried again."""

        async def looked() -> Made | None:
            self.pass_time(30)
            return await self.get(self.instance_ref(name, kind))

        found = await eventually(
            looked, lambda obj: obj is not None and is_so(obj), seconds=TIMEOUT, describe=_described
        )
        assert found is not None
        return found

    async def until_definition(self, is_so: Predicate = is_active, name: str = "app") -> Made:
        return await self.until(self.definition_ref(name), is_so)

    async def until_instance(self, name: str, is_so: Predicate = is_active, kind: str = "App") -> Made:
        return await self.until(self.instance_ref(name, kind), is_so)

    async def until_object(self, name: str, is_so: Predicate = bool) -> Made:
        """Wait until a ConfigMap exists and meets a condition."""
        return await self.until(self.object_ref(name), is_so)

    async def until_published(self, number: int, name: str = "app") -> Made:
        """Wait until a revision is the current one of a definition."""
        return await self.until_definition(
            lambda obj: is_active(obj) and status(obj).get("currentRevision") == number, name
        )

    async def until_refused(self, name: str = "GraphAccepted", definition: str = "app") -> str:
        """Wait until a condition of a definition is false, and return its message."""
        return message(await self.until_definition(lambda obj: is_refused(obj, name), definition), name)

    async def revisions(self, name: str = "app") -> list[Made]:
        """Return the revisions of a definition, by their numbers."""
        kind = (API_VERSION, "ResourceGraphDefinitionRevision")
        found = (
            await self.client.list(kind, labels=f"kro.run/rgd-name={label_value(self.named(name))}")
        ).items
        return sorted(found, key=lambda one: one["spec"]["revision"])

    async def numbers(self, name: str = "app") -> list[int]:
        """Return the numbers of the revisions of a definition."""
        return [one["spec"]["revision"] for one in await self.revisions(name)]

    async def input_revisions(self, instance: str, kind: str = "App") -> list[Made]:
        """Return the input revisions that an instance controls, by their numbers."""
        owner = await self.client.get(self.instance_ref(instance, kind))
        listed = (await self.client.list((API_VERSION, "ResourceGraphInputRevision"))).items
        found = [one for one in listed if meta.is_controlled_by(one, meta.uid(owner))]
        return sorted(found, key=lambda one: one["spec"]["inputRevision"])

    async def children(self, namespace: str = "", kind: tuple[str, str] = CONFIG_MAP) -> list[Made]:
        """Return the objects of a kind in a namespace that an instance manages."""
        found = await self.client.list(kind, namespace or self.namespace, labels="kro.run/owned=true")
        return sorted(found.items, key=meta.name)

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
        found = [one for kind in self._listed_kinds() for one in await self._mine(kind)]
        return max((int(meta.resource_version(one)) for one in found), default=0)

    def _listed_kinds(self) -> Iterable[tuple[str, str]]:
        yield CONFIG_MAP
        yield (API_VERSION, "ResourceGraphDefinition")
        yield (API_VERSION, "ResourceGraphDefinitionRevision")
        yield (API_VERSION, "ResourceGraphInputRevision")
        for kind, (version, _) in self._kinds.items():
            yield (f"{self.group}/{version}", kind)

    async def _mine(self, kind: tuple[str, str]) -> list[Made]:
        with suppress(ApiError, UnknownKind):
            return [one for one in (await self.client.list(kind)).items if self.is_mine(one)]
        # The kind is not served, or not yet.
        return []

    def is_mine(self, obj: Obj) -> bool:
        """Say whether an object belongs to the scenario."""
        where = meta.namespace(obj)
        return (
            where in self._namespaces
            if where
            else self.id in meta.name(obj) or self.group in obj["apiVersion"]
        )

    async def end(self) -> None:
        """Delete everything that outlives the namespace, in the order that needs no controller."""
        await self.stop()
        await self._delete_all(
            [(f"{self.group}/{version}", kind) for kind, (version, _) in self._kinds.items()]
        )
        await self._delete_all(
            [
                (API_VERSION, "ResourceGraphInputRevision"),
                (API_VERSION, "ResourceGraphDefinition"),
                (API_VERSION, "ResourceGraphDefinitionRevision"),
            ]
        )
        for kind in self._kinds:
            with suppress(ApiError):
                await self.client.delete(self.crd_ref(kind))
        for name in self._namespaces:
            with suppress(ApiError):
                await self.client.delete(Ref("v1", "Namespace", "", name))

    async def _delete_all(self, kinds: Iterable[tuple[str, str]]) -> None:
        for kind in kinds:
            for one in await self._mine(kind):
                with suppress(ApiError):
                    await self.client.patch(meta.ref(one), {"metadata": {"finalizers": None}}, manager="user")
                with suppress(ApiError):
                    await self.client.delete(meta.ref(one))


class _Meter(Recorder):
    """Collects the writes of a controller for the parity check."""

    def __init__(self, stage: Stage, controller: str) -> None:
        self._parity = stage.parity.recorder(controller)

    def wrote(self, action: Action, written: Sequence[Written] = ()) -> None:
        self._parity.wrote(action, written)

    def refused(self, action: Action, error: ApiError) -> None:
        self._parity.refused(action, error)


def _described(obj: Obj | None) -> object:
    if obj is None:
        return "no such object"
    return {"metadata": meta.metadata(obj), "spec": obj.get("spec"), "status": obj.get("status")}
