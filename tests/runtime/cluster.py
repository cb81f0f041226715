"""A whole server in this process, and waiting for things to become so."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import structlog

from lamina.app import App
from lamina.client.client import Client
from lamina.clock import Clock, WallClock
from lamina.core.controller import AnyController, Source
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.runtime.asker import Caller
from lamina.runtime.manager import Manager
from lamina.settings import Settings

PATIENCE = 60.0


@asynccontextmanager
async def embedded() -> AsyncIterator[App]:
    async with App(Settings(ephemeral=True, port=0, simulate="off")) as app:
        yield app


@asynccontextmanager
async def running(
    client: Client,
    controllers: Sequence[AnyController] = (),
    clock: Clock | None = None,
    sources: Sequence[Source] = (),
    caller: Caller | None = None,
) -> AsyncIterator[Manager]:
    """Run controllers against whoever the client reaches, from ready until the end of the block."""
    manager = Manager(client, controllers, clock or WallClock(), structlog.get_logger(), sources, caller)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await manager.ready()
        yield manager
        task.cancel()


async def until(client: Client, ref: Ref, is_so: Callable[[Made | None], bool]) -> Made | None:
    """Wait until an object, or its absence, is as it should be, and return it."""
    kind = await client.kind(ref.api_version, ref.kind)
    seen: Made | None = None
    fields = f"metadata.name={ref.name}"
    async with asyncio.timeout(PATIENCE):
        watch = client.watch(kind, ref.namespace, initial=True, fields=fields)
        async with aclosing(watch) as events:
            started = False
            async for event in events:
                if event["type"] == "BOOKMARK":
                    started = started or "k8s.io/initial-events-end" in meta.annotations(event["object"])
                else:
                    seen = None if event["type"] == "DELETED" else event["object"]
                if (started or seen is not None) and is_so(seen):
                    return seen
    raise AssertionError(f"the watch of {ref} ended before it was so")


async def until_gone(client: Client, ref: Ref) -> None:
    await until(client, ref, lambda obj: obj is None)


async def until_there(client: Client, ref: Ref) -> Made:
    found = await until(client, ref, lambda obj: obj is not None)
    assert found is not None
    return found


def config_map(
    name: str, namespace: str = "default", *owners: Made, blocks: bool = False, **metadata: Any
) -> Made:
    refs = [meta.owner_ref(owner, blocks=blocks) for owner in owners]
    named = {"name": name, "namespace": namespace, **({"ownerReferences": refs} if refs else {}), **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named}


def definition(plural: str, kind: str, group: str = "runtime.example.com") -> Made:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def at(name: str, namespace: str = "default") -> Ref:
    return Ref("v1", "ConfigMap", namespace, name)
