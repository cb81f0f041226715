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
from lamina.clock import WoundClock
from lamina.errors import AlreadyExists, Conflict, NotFound
from lamina.families.metacontroller.controller import Options, keeper, source
from lamina.families.metacontroller.crds import definitions
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.calls import Calls
from lamina.runtime.manager import Manager
from tests.scenarios.hook import Hook, Said

API = "metacontroller.k8s.io/v1alpha1"
PATIENCE = 120.0


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
    clock: WoundClock = field(default_factory=WoundClock)
    made: list[Ref] = field(default_factory=list)
    own: Client | None = None
    """The client that Metacontroller itself uses, where it is to be another than the story's."""
    _manager: Manager | None = None
    _task: asyncio.Task[None] | None = None

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
        calls = Calls()
        manager = Manager(
            self.own or self.client, [keeper(self.options)], self.clock, None, [source(self.options)], calls
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

    def pass_time(self, **by: float) -> None:
        self.clock.wind(timedelta(**by))

    async def until_put_aside(self, ref: Ref) -> datetime:
        """Wait until an object is left alone for a while, and return when it is looked at again, if nothing happens."""
        assert self._manager is not None, "it is not running"
        async with asyncio.timeout(PATIENCE):
            while True:
                due = self._manager.due(ref)
                if due is not None and self._manager.is_idle:
                    return due
                await asyncio.sleep(0.02)

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
        self, ref: Ref, is_so: Callable[[Made | None], bool], patience: float = PATIENCE
    ) -> Made | None:
        """Wait until an object, or its absence, is as it should be."""
        seen: Made | None = None
        try:
            async with asyncio.timeout(patience):
                while True:
                    seen = await self.get(ref)
                    if is_so(seen):
                        return seen
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{ref} never became so; it is {seen}") from None

    async def until_collected(self, api_version: str, kind: str) -> None:
        """
        Wait until the garbage collector knows a kind, and lets an object of it go with its owner.

        A real one learns of a new kind after a while; until then nobody is orphaned by it either.
        """
        metadata = {"name": "owner-of-nothing", "namespace": self.namespace}
        owner = await self.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        owned = {"name": "owned", "namespace": self.namespace, "ownerReferences": [meta.owner_ref(owner)]}
        made = await self.client.create({"apiVersion": api_version, "kind": kind, "metadata": owned})
        await self.client.delete(meta.ref(owner))
        await self.until(meta.ref(made), lambda obj: obj is None, patience=120.0)

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
        patience: float = PATIENCE,
    ) -> Sequence[Made]:
        """Wait until the objects of a kind in the story's namespace are as they should be."""
        seen: Sequence[Made] = ()
        try:
            async with asyncio.timeout(patience):
                while True:
                    seen = await self.listed(kind, api_version)
                    if is_so(seen):
                        return seen
                    await asyncio.sleep(0.02)
        except TimeoutError:
            names = [(meta.name(one), one.get("data")) for one in seen]
            raise AssertionError(f"the {kind}s never became so; they are {names}") from None

    async def listed(self, kind: str, api_version: str = "v1") -> Sequence[Made]:
        listing = await self.client.list((api_version, kind), self.namespace)
        return [one for one in listing.items if meta.name(one) != "kube-root-ca.crt"]

    async def events(self, about: Ref) -> list[Made]:
        """Return what was told about an object, oldest first."""
        listing = await self.client.list(("v1", "Event"), about.namespace or "default")
        return [
            one
            for one in listing.items
            if (one["involvedObject"]["kind"], one["involvedObject"]["name"]) == (about.kind, about.name)
        ]

    async def until_told(self, about: Ref, reason: str, containing: str = "") -> Made:
        """Wait until something was told about an object."""
        told: list[Made] = []
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    told = await self.events(about)
                    for one in told:
                        if one["reason"] == reason and containing in one["message"]:
                            return one
                    await asyncio.sleep(0.02)
        except TimeoutError:
            said = [(one["reason"], one["message"]) for one in told]
            raise AssertionError(f"{reason} {containing!r} was never told about {about}; {said}") from None

    async def settled(self) -> None:
        """Wait until Metacontroller has had nothing to do for a moment."""
        assert self._manager is not None, "it is not running"
        with suppress(TimeoutError):
            # One that this Metacontroller does not run for never says anything.
            async with asyncio.timeout(1):
                await self._heard_of_controllers()
        quiet = 0
        async with asyncio.timeout(PATIENCE):
            while quiet < 5:
                await asyncio.sleep(0.02)
                quiet = quiet + 1 if self._manager.is_idle else 0

    async def _heard_of_controllers(self) -> None:
        """Wait until every controller of the story has said how it does, for which it takes its time."""
        for ref in self.made:
            while ref.kind in ("CompositeController", "DecoratorController"):
                found = await self.get(ref)
                said = (found.get("status") or {}) if found is not None else {}
                if found is None or said.get("observedGeneration") == meta.generation(found):
                    break
                await asyncio.sleep(0.02)

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
    for _ in range(1000):
        kinds = await client.discover()
        if all(
            kinds.find(API, name)
            for name in ("CompositeController", "DecoratorController", "ControllerRevision")
        ):
            return
        await asyncio.sleep(0.02)


def nothing(said: Said) -> Said:
    """A hook that wants nothing."""
    return {"status": {}, "children": []}
