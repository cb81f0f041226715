"""
What the server does by itself, now and then: forget old versions, and keep the list of its own API groups true.
"""

from __future__ import annotations

import asyncio
from collections import deque

import orjson

from lamina.objects.conditions import is_true
from lamina.objects.types import Made
from lamina.server.custom.names import NAMES_ACCEPTED, status_of
from lamina.server.plane import Plane
from lamina.server.registry import CRDS
from lamina.server.store import Expect, Key, Store

APISERVICES = "apiservices.apiregistration.k8s.io"
_MARKS = 10
"""How many marks are set within the time that is kept: old versions live at most a tenth longer than asked."""


async def forget_old_versions(store: Store, keep: float) -> None:
    """Compact the log for ever, so that versions older than `keep` seconds are gone."""
    marks: deque[tuple[float, int]] = deque()
    clock = asyncio.get_running_loop().time
    while True:
        await asyncio.sleep(keep / _MARKS)
        now = clock()
        marks.append((now, store.version))
        due = 0
        while marks and marks[0][0] <= now - keep:
            due = marks.popleft()[1]
        if due > store.compacted:
            store.compact(due)


async def publish_groups(plane: Plane) -> None:
    """Keep an APIService for every group and version that is served, for ever."""
    await write_groups(plane)
    follower = plane.store.follow(plane.store.version, CRDS)
    await write_groups(plane)
    async for events in follower:
        await write_groups(plane)
        if any(event.previous is not None for event in events):
            await accept_freed_names(plane)


async def accept_freed_names(plane: Plane) -> None:
    """Look again at the CRDs that wanted a name which somebody else had: it may be free now."""
    crds = [(row, orjson.loads(row.value)) for row in plane.store.list(CRDS).rows]
    for row, crd in crds:
        if is_true((crd.get("status") or {}).get("conditions") or (), NAMES_ACCEPTED):
            continue
        others = [
            one for other, one in crds if other is not row and one["spec"]["group"] == crd["spec"]["group"]
        ]
        status = status_of(crd, others, plane.now())
        key = Key(CRDS, "", row.key.name)
        if status != crd.get("status") and plane.store.newest(key) is row:
            await plane.store.append(key, {**crd, "status": status}, expect=row.version)


async def write_groups(plane: Plane) -> None:
    """Create the APIServices that are missing, and delete those that stand for nothing."""
    served = {(kind.group, kind.version) for kind in plane.registry.kinds()}
    wanted = {f"{version}.{group}": (group, version) for group, version in served}
    present = {row.key.name: row for row in plane.store.list(APISERVICES).rows}
    # Together, so that they are one write to the log.
    missing = sorted(wanted.keys() - present.keys())
    await asyncio.gather(*(_publish(plane, name, *wanted[name]) for name in missing))
    for name in present.keys() - wanted.keys():
        key = Key(APISERVICES, "", name)
        row = plane.store.newest(key)
        if row is not None:
            await plane.store.append(key, orjson.loads(row.value), expect=row.version, deleted=True)


async def _publish(plane: Plane, name: str, group: str, version: str) -> None:
    key = Key(APISERVICES, "", name)
    if plane.store.newest(key) is None:
        await plane.store.append(key, _service(plane, name, group, version), expect=Expect.ABSENT)


def _service(plane: Plane, name: str, group: str, version: str) -> Made:
    condition = {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": plane.stamp(),
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
    spec: Made = {"version": version, "groupPriorityMinimum": 1000, "versionPriority": 100}
    if group:
        spec["group"] = group
    return {
        "metadata": {
            "name": name,
            "uid": plane.new_uid(),
            "creationTimestamp": plane.stamp(),
            "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
        },
        "spec": spec,
        "status": {"conditions": [condition]},
    }
