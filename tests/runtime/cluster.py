"""A server in this process, controllers on it, and readers of objects for `eventually`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import structlog

from lamina.app import App
from lamina.client.client import Client
from lamina.clock import Clock, WallClock
from lamina.core.model.controller import AnyController, Source
from lamina.errors import NotFound
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.runtime.controller.live_queries import Caller
from lamina.runtime.controller.manager import Manager
from lamina.settings import Settings
from lamina.testing.waiting import eventually

TIMEOUT = 60.0


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
    """Run controllers against a server, from ready until the end of the block."""
    manager = Manager(client, controllers, clock or WallClock(), structlog.get_logger(), sources, caller)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        await manager.ready()
        yield manager
        task.cancel()


def reader(client: Client, ref: Ref) -> Callable[[], Awaitable[Made | None]]:
    """Return a function that reads an object, None where it does not exist, for `eventually`."""

    async def read() -> Made | None:
        try:
            return await client.get(ref)
        except NotFound:
            return None

    return read


async def wait_created(client: Client, ref: Ref) -> Made:
    found = await eventually(reader(client, ref))
    assert found is not None
    return found


async def wait_deleted(client: Client, ref: Ref) -> None:
    await eventually(reader(client, ref), lambda obj: obj is None)


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
