"""
Keeps an APIService for every group version that is served, and accepts CRD names that have become free.
"""

from __future__ import annotations

import asyncio

import orjson

from lamina.objects.conditions import is_true
from lamina.objects.types import Made
from lamina.server.context import ServerContext
from lamina.server.kinds.custom.names import NAMES_ACCEPTED, definition_status
from lamina.server.kinds.registry import CRDS
from lamina.server.storage.store import Expect, Key

APISERVICES = "apiservices.apiregistration.k8s.io"


async def publish_groups(context: ServerContext) -> None:
    """Keep an APIService for every served group version, until cancelled."""
    await write_groups(context)
    cursor = context.store.watch(context.store.version, CRDS)
    await write_groups(context)
    async for events in cursor:
        await write_groups(context)
        if any(event.previous is not None for event in events):
            await accept_freed_names(context)


async def accept_freed_names(context: ServerContext) -> None:
    """Update the status of CRDs whose names were not accepted: the conflicting CRD may be gone."""
    crds = [(row, orjson.loads(row.value)) for row in context.store.list(CRDS).rows]
    for row, crd in crds:
        if is_true((crd.get("status") or {}).get("conditions") or (), NAMES_ACCEPTED):
            continue
        others = [
            one for other, one in crds if other is not row and one["spec"]["group"] == crd["spec"]["group"]
        ]
        status = definition_status(crd, others, context.now())
        key = Key(CRDS, "", row.key.name)
        if status != crd.get("status") and context.store.newest(key) is row:
            await context.store.append(key, {**crd, "status": status}, expect=row.version)


async def write_groups(context: ServerContext) -> None:
    """Create missing APIServices and delete those of group versions that are no longer served."""
    served = {(kind.group, kind.version) for kind in context.registry.kinds()}
    desired = {f"{version}.{group}": (group, version) for group, version in served}
    present = {row.key.name: row for row in context.store.list(APISERVICES).rows}
    # Concurrently, so that they are committed in one batch.
    missing = sorted(desired.keys() - present.keys())
    await asyncio.gather(*(_publish(context, name, *desired[name]) for name in missing))
    for name in present.keys() - desired.keys():
        key = Key(APISERVICES, "", name)
        row = context.store.newest(key)
        if row is not None:
            await context.store.append(key, orjson.loads(row.value), expect=row.version, deleted=True)


async def _publish(context: ServerContext, name: str, group: str, version: str) -> None:
    key = Key(APISERVICES, "", name)
    if context.store.newest(key) is None:
        await context.store.append(key, _service(context, name, group, version), expect=Expect.ABSENT)


def _service(context: ServerContext, name: str, group: str, version: str) -> Made:
    condition = {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": context.stamp(),
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
    spec: Made = {"version": version, "groupPriorityMinimum": 1000, "versionPriority": 100}
    if group:
        spec["group"] = group
    return {
        "metadata": {
            "name": name,
            "uid": context.new_uid(),
            "creationTimestamp": context.stamp(),
            "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
        },
        "spec": spec,
        "status": {"conditions": [condition]},
    }
