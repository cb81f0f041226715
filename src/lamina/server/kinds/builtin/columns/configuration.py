"""Table rows of namespaces, configuration, nodes and events."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lamina.objects.types import Obj
from lamina.server.kinds.builtin.columns.cells import NONE, UNKNOWN, age, condition, name_of
from lamina.server.kinds.builtin.validate.parts import count, items, part, text
from lamina.server.kinds.columns import since

_ROLE = "node-role.kubernetes.io/"


def config_map(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), len(part(obj, "data")) + len(part(obj, "binaryData")), age(obj, now)]


def secret(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), text(obj, "type"), len(part(obj, "data")), age(obj, now)]


def namespace(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), text(part(obj, "status"), "phase"), age(obj, now)]


def service_account(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), age(obj, now)]


def node(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    ready = condition(items(status, "conditions"), "Ready")
    word = "Unknown" if ready is None else "Ready" if text(ready, "status") == "True" else "NotReady"
    found = part(part(obj, "metadata"), "labels")
    roles = {key.removeprefix(_ROLE) for key in found if key.startswith(_ROLE)}
    roles |= {found.get("kubernetes.io/role") or ""}
    info = part(status, "nodeInfo")
    return [
        name_of(obj),
        f"{word},SchedulingDisabled" if spec.get("unschedulable") else word,
        ",".join(sorted(roles - {""})) or NONE,
        age(obj, now),
        text(info, "kubeletVersion"),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        text(info, "osImage") or UNKNOWN,
        text(info, "kernelVersion") or UNKNOWN,
        text(info, "containerRuntimeVersion") or UNKNOWN,
    ]


def _address(status: Obj, kind: str) -> str:
    found = items(status, "addresses")
    return next((text(one, "address") for one in found if text(one, "type") == kind), NONE)


def quota(obj: Obj, now: datetime) -> list[Any]:
    status = part(obj, "status")
    hard, used = part(status, "hard"), part(status, "used")
    shown: dict[bool, list[str]] = {False: [], True: []}
    for name in sorted(hard):
        shown[name.startswith("limits.")].append(f"{name}: {used.get(name) or '0'}/{hard[name]}")
    return [name_of(obj), ", ".join(shown[False]), ", ".join(shown[True]), age(obj, now)]


def event(obj: Obj, now: datetime) -> list[Any]:
    about, source, series = part(obj, "involvedObject"), part(obj, "source"), obj.get("series")
    first = since(obj.get("firstTimestamp") or obj.get("eventTime"), now)
    last = since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else first
    times = count(obj, "count") or 1
    if series is not None:
        last, times = since(series.get("lastObservedTime"), now), count(series, "count")
    kind, name = text(about, "kind").lower(), text(about, "name")
    component = text(source, "component") or text(obj, "reportingComponent")
    instance = text(source, "host") or text(obj, "reportingInstance")
    return [
        last,
        text(obj, "type"),
        text(obj, "reason"),
        f"{kind}/{name}" if name else kind,
        text(about, "fieldPath"),
        f"{component}, {instance}" if instance else component,
        text(obj, "message").strip(),
        first,
        times,
        name_of(obj),
    ]
