"""
A stage for stories about Metacontroller: a server, a hook, and a process of ours that can die at any time.

Stories run on the embedded server and, where LAMINA_TEST_SERVER says so, on a
real one. A story has kinds and a namespace of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from lamina.client.client import Client
from lamina.clock import PacedClock
from lamina.errors import AlreadyExists, Conflict, NotFound
from lamina.families.metacontroller.controller import Options, source, status_controller
from lamina.families.metacontroller.crds import definitions
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.controller.manager import Manager
from lamina.runtime.hooks.client import HookClient
from lamina.testing.waiting import eventually, idle
from tests.scenarios.hook import Hook, Said
from tests.scenarios.parity import Parity

API = "metacontroller.k8s.io/v1alpha1"
TIMEOUT = 120.0


def desired(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Made:
    """A child as a hook returns it."""
    labels = fields.pop("labels", {"app": "x"})
    metadata = {"name": name, "labels": labels, **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def config_maps(method: str = "InPlace", **strategy: Any) -> list[Made]:
    """A rule for ConfigMaps as children."""
    return [{"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": method, **strategy}}]


def child_of(obj: Obj, name: str) -> Obj | None:
    return next((one for one in obj.get("items") or () if meta.name(one) == name), None)


@dataclass
class Stage:
    """One story's cluster: its kinds, its namespace, its hook, and Metacontroller itself."""

    client: Client
    namespace: str
    hook: Hook
    group: str
    options: Options = field(default_factory=Options)
    clock: PacedClock = field(default_factory=PacedClock)
    made: list[Ref] = field(default_factory=list)
    own: Client | None = None
    """The client that Metacontroller itself uses, where it is to be another than the story's."""
    parity: Parity = field(init=False)
    """What Metacontroller wrote, to be compared with what a simulation makes of it."""
    _manager: Manager | None = None
    _task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.parity = Parity({"": self.client})

    # ── what is there ──

    async def given_kind(
        self, kind: str, *, namespaced: bool = True, status: bool = True, schema: Obj | None = None
    ) -> Made:
        """Define a kind of parent of this story's own, and wait until it is served."""
        plural = f"{kind.lower()}s"
        shape = schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version: Made = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": shape}}
        if status:
            version["subresources"] = {"status": {}}
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{self.group}"},
            "spec": {
                "group": self.group,
                "scope": "Namespaced" if namespaced else "Cluster",
                "names": {"plural": plural, "kind": kind},
                "versions": [version],
            },
        }
        made = await self.create(definition)
        await self.until(
            meta.ref(made),
            lambda obj: (
                obj is not None
                and conditions.is_true((obj.get("status") or {}).get("conditions") or (), "Established")
            ),
        )
        return made

    async def given_composite(self, name: str, **spec: Any) -> Made:
        """Make a CompositeController; it watches `Thing`s of this story unless it is told otherwise."""
        filled = {
            "parentResource": {"apiVersion": f"{self.group}/v1", "resource": "things"},
            "hooks": {"sync": {"webhook": {"url": f"{self.hook.url}/sync"}}},
            **spec,
        }
        return await self._controller("CompositeController", name, filled)

    async def given_decorator(self, name: str, **spec: Any) -> Made:
        filled = {"hooks": {"sync": {"webhook": {"url": f"{self.hook.url}/sync"}}}, **spec}
        return await self._controller("DecoratorController", name, filled)

    async def _controller(self, kind: str, name: str, spec: Obj) -> Made:
        obj = {"apiVersion": API, "kind": kind, "metadata": {"name": self.named(name)}, "spec": spec}
        return await self.create(obj)

    def named(self, name: str) -> str:
        """Return a name for something cluster-scoped that no other story has."""
        return f"{name}-{self.namespace}"

    async def given_parent(self, name: str = "a", kind: str = "Thing", **fields: Any) -> Made:
        """Make a parent with a selector that the children of `desired` match."""
        return await self.create(self.made_parent(name, kind, **fields))

    def made_parent(self, name: str = "a", kind: str = "Thing", **fields: Any) -> Made:
        """Return a parent as it is made."""
        spec = {"selector": {"matchLabels": {"app": "x"}}, **fields.pop("spec", {})}
        metadata = {"name": name, "namespace": self.namespace, **fields.pop("metadata", {})}
        return {"apiVersion": f"{self.group}/v1", "kind": kind, "metadata": metadata, "spec": spec, **fields}

    async def create(self, obj: Obj) -> Made:
        made = await self.client.create(obj)
        self.made.append(meta.ref(made))
        return made

    # ── Metacontroller itself ──

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Stage"]:
        """Run Metacontroller until the end of the block; with nothing remembered, each time."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    async def start(self) -> None:
        calls = HookClient()
        manager = Manager(
            self.own or self.client,
            [status_controller(self.options)],
            self.clock,
            None,
            [source(self.options)],
            calls,
            meters=self.parity.recorder,
        )

        async def run() -> None:
            try:
                await manager.run()
            finally:
                await calls.close()

        self._manager, self._task = manager, asyncio.create_task(run())
        await manager.ready()

    async def stop(self) -> None:
        """Die, in the middle of whatever is going on."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = self._manager = None
        await self.parity.check()

    def pass_time(self, **by: float) -> None:
        self.clock.wind(timedelta(**by))

    async def until_put_aside(self, ref: Ref) -> datetime:
        """Wait until an object is left alone for a while, and return when it is looked at again, if nothing happens."""
        assert self._manager is not None, "it is not running"
        manager = self._manager
        due = await eventually(lambda: manager.due(ref) if manager.is_idle else None, seconds=TIMEOUT)
        assert due is not None
        return due

    # ── what is seen ──

    def at(self, kind: str, name: str, api_version: str = "v1", namespace: str | None = None) -> Ref:
        return Ref(api_version, kind, self.namespace if namespace is None else namespace, name)

    def parent(self, name: str = "a", kind: str = "Thing") -> Ref:
        return Ref(f"{self.group}/v1", kind, self.namespace, name)

    async def get(self, ref: Ref) -> Made | None:
        try:
            return await self.client.get(ref)
        except NotFound:
            return None

    async def until(
        self, ref: Ref, is_so: Callable[[Made | None], bool], timeout: float = TIMEOUT
    ) -> Made | None:
        """Wait until an object, or its absence, meets a condition."""
        return await eventually(lambda: self.get(ref), is_so, seconds=timeout)

    async def until_collected(self, api_version: str, kind: str) -> None:
        """
        Wait until the garbage collector knows a kind, and lets an object of it go with its owner.

        A real one learns of a new kind after a while; until then it orphans no object of it either.
        """
        metadata = {"name": "owner-of-nothing", "namespace": self.namespace}
        owner = await self.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        owned = {"name": "owned", "namespace": self.namespace, "ownerReferences": [meta.owner_ref(owner)]}
        made = await self.client.create({"apiVersion": api_version, "kind": kind, "metadata": owned})
        await self.client.delete(meta.ref(owner))
        await self.until(meta.ref(made), lambda obj: obj is None, timeout=120.0)

    async def until_there(self, ref: Ref) -> Made:
        found = await self.until(ref, lambda obj: obj is not None)
        assert found is not None
        return found

    async def until_gone(self, ref: Ref) -> None:
        await self.until(ref, lambda obj: obj is None)

    async def until_listed(
        self,
        kind: str,
        is_so: Callable[[Sequence[Made]], bool],
        api_version: str = "v1",
        *,
        timeout: float = TIMEOUT,
    ) -> Sequence[Made]:
        """Wait until the objects of a kind in the scenario's namespace meet a condition."""
        return await eventually(
            lambda: self.listed(kind, api_version),
            is_so,
            seconds=timeout,
            describe=lambda found: [(meta.name(one), one.get("data")) for one in found],
        )

    async def listed(self, kind: str, api_version: str = "v1") -> Sequence[Made]:
        listing = await self.client.list((api_version, kind), self.namespace)
        return [one for one in listing.items if meta.name(one) != "kube-root-ca.crt"]

    async def events(self, about: Ref) -> list[Made]:
        """Return the events about an object, oldest first."""
        listing = await self.client.list(("v1", "Event"), about.namespace or "default")
        return [
            one
            for one in listing.items
            if (one["involvedObject"]["kind"], one["involvedObject"]["name"]) == (about.kind, about.name)
        ]

    async def until_event(self, about: Ref, reason: str, containing: str = "") -> Made:
        """Wait for an event about an object, and return it."""

        def matching(events: list[Made]) -> list[Made]:
            return [one for one in events if one["reason"] == reason and containing in one["message"]]

        found = await eventually(
            lambda: self.events(about),
            matching,
            seconds=TIMEOUT,
            describe=lambda events: [(one["reason"], one["message"]) for one in events],
        )
        return matching(found)[0]

    async def settled(self) -> None:
        """Wait until Metacontroller has had nothing to do for a moment."""
        assert self._manager is not None, "it is not running"
        with suppress(AssertionError):
            # One that this Metacontroller does not run for has no status.
            await eventually(self._have_controllers_a_status, seconds=1)
        await idle(self._manager, seconds=TIMEOUT)

    async def _have_controllers_a_status(self) -> bool:
        """Say whether the status of every controller of the story is for its newest generation."""
        controllers = [ref for ref in self.made if ref.kind in ("CompositeController", "DecoratorController")]
        there = [found for ref in controllers if (found := await self.get(ref)) is not None]
        return all(
            (found.get("status") or {}).get("observedGeneration") == meta.generation(found) for found in there
        )

    async def end(self) -> None:
        """Take away what the story made, and what would outlive its namespace first."""
        await self.stop()
        for ref in reversed(self.made):
            with suppress(NotFound, Conflict):
                found = await self.client.get(ref)
                if meta.finalizers(found):
                    await self.client.patch(ref, {"metadata": {"finalizers": None}})
                await self.client.delete(ref)


async def install(client: Client) -> None:
    """Have Metacontroller's own kinds served."""
    for definition in definitions():
        with suppress(AlreadyExists):
            await client.create(definition)
    names = ("CompositeController", "DecoratorController", "ControllerRevision")
    await eventually(client.discover, lambda kinds: all(kinds.find(API, name) for name in names))


def nothing(said: Said) -> Said:
    """A hook that wants nothing."""
    return {"status": {}, "children": []}
