"""
What a pod is to a service: whether it is reached, where, and how it stands.

Two controllers write this down, each in its own form: `endpoints` in one object
a service, `slices` in as many as it takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from lamina.actors.workloads import pods
from lamina.actors.workloads.selecting import insisted, same, selecting, sides
from lamina.core.world import Change, World
from lamina.objects import meta
from lamina.objects.selectors import LabelSelector, from_labels
from lamina.objects.times import moment
from lamina.objects.types import GroupKind, Made, Obj, Ref

SERVICE = GroupKind("", "Service")
NODE = GroupKind("", "Node")
HEADLESS = "service.kubernetes.io/headless"
TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"
_ZONE = "topology.kubernetes.io/zone"


def selector_of(service: Obj) -> LabelSelector | None:
    """Return which pods a service leads to; None where it says nothing about that, or leads elsewhere."""
    spec = service.get("spec") or {}
    if not spec.get("selector") or spec.get("type") == "ExternalName":
        return None
    return from_labels(spec["selector"])


def by_selector(service: Obj) -> Iterator[str]:
    """Find a service by a label of the pods it leads to."""
    selector = selector_of(service)
    if selector is not None:
        yield insisted(meta.namespace(service), selector)


def by_node(pod: Obj) -> Iterator[str]:
    """Find a pod by the node it is on."""
    if node := (pod.get("spec") or {}).get("nodeName"):
        yield node


def is_headless(service: Obj) -> bool:
    return (service["spec"].get("clusterIP") or "None") == "None"


def publishes_unready(service: Obj) -> bool:
    return bool(service["spec"].get("publishNotReadyAddresses"))


def is_reached(pod: Obj, *, ending: bool) -> bool:
    """Say whether a service leads to a pod at all; `ending` says whether it still does once the pod is to go."""
    status = pod.get("status") or {}
    if pods.is_finished(pod) or not (status.get("podIP") or status.get("podIPs")):
        return False
    return ending or not meta.is_deleting(pod)


def addresses_of(pod: Obj) -> list[str]:
    status = pod.get("status") or {}
    return [one["ip"] for one in status.get("podIPs") or ({"ip": status.get("podIP") or ""},) if one["ip"]]


@lru_cache(maxsize=1 << 16)
def read_address(text: str) -> IPv4Address | IPv6Address:
    """Return an address that can be compared; the same few are asked about again and again."""
    return ip_address(text)


def ports_of(service: Obj, pod: Obj) -> list[tuple[Obj, int]]:
    """Return the ports of a service that a pod has, each with the number it has there."""
    found: list[tuple[Obj, int]] = []
    for port in service["spec"].get("ports") or ():
        number = _number(port, pod)
        if number is not None:
            found.append((port, number))
    return found


def _number(port: Obj, pod: Obj) -> int | None:
    wanted = port.get("targetPort", port["port"])
    if isinstance(wanted, int):
        return wanted
    spec = pod["spec"]
    staying = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in (*(spec.get("containers") or ()), *staying):
        for offered in container.get("ports") or ():
            if offered.get("name") == wanted and offered.get("protocol", "TCP") == port.get(
                "protocol", "TCP"
            ):
                return int(offered["containerPort"])
    return None


def hostname_of(service: Obj, pod: Obj) -> str:
    """Return the name by which a pod is known below its service, if it is."""
    spec = pod["spec"]
    return (spec.get("hostname") or "") if spec.get("subdomain") == meta.name(service) else ""


def target_of(pod: Obj) -> Made:
    return {"kind": "Pod", "namespace": meta.namespace(pod), "name": meta.name(pod), "uid": meta.uid(pod)}


def zone_of(node: Obj | None) -> str:
    return meta.labels(node).get(_ZONE, "") if node is not None else ""


def last_trigger(reached: Iterable[Obj], written: str | None) -> str | None:
    """
    Return since when what is being written is true: the first that a pod's readiness changed since the last time.

    `written` is what was said the last time. Nothing is said where no pod's readiness is newer.
    """
    since = moment(written) if written else None
    times: list[tuple[datetime, str]] = []
    for text in map(_readied, reached):
        at = moment(text)
        if at is not None and (since is None or at > since):
            times.append((at, str(text)))
    return min(times)[1] if times else None


def first_trigger(service: Obj) -> str | None:
    """Return the same for what is written for the first time: it is as old as its service."""
    created: str | None = meta.metadata(service).get("creationTimestamp")
    return created


def _readied(pod: Obj) -> str | None:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            found: str | None = condition.get("lastTransitionTime")
            return found
    return None


# ── whom a change concerns ──


def _bearing(pod: Obj) -> Any:
    """Return everything about a pod that a service could care for."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    return (
        meta.uid(pod),
        meta.labels(pod),
        meta.is_deleting(pod),
        status.get("podIPs"),
        status.get("podIP"),
        pods.is_finished(pod),
        pods.is_ready(pod),
        (spec.get("nodeName"), spec.get("hostname"), spec.get("subdomain")),
    )


def services_of(world: World, pod: Obj) -> Iterator[Ref]:
    """Yield the services that lead to a pod."""
    return map(meta.ref, selecting(world, SERVICE, by_selector, selector_of, pod))


def pod_changed(world: World, change: Change) -> Sequence[Ref]:
    """A pod concerns the services that lead to it or did, once anything has changed that they care for."""
    if same(change, _bearing):
        return ()
    # Who leads to a pod is known by its labels: where they are the same, so are those who do.
    pods = (change.obj,) if same(change, meta.labels) else sides(change)
    found = (ref for pod in pods for ref in services_of(world, pod))
    return tuple(dict.fromkeys(found))


def service_changed(world: World, change: Change) -> Sequence[Ref]:
    """A service concerns itself, unless nothing but its status has changed."""
    return () if same(change, _asked) else (change.ref,)


def _asked(service: Obj) -> Any:
    return meta.uid(service), meta.labels(service), meta.annotations(service), service.get("spec")
