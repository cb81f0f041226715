"""
The endpoint of a pod for a Service: its addresses, ports and trigger time.

Shared by the Endpoints and the EndpointSlice controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from lamina.actors.workloads import pods
from lamina.core.model.world import Change, World
from lamina.core.ownership.selector_index import selecting, selector_keys
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
    """Return the selector of a Service; None without one, or for an ExternalName."""
    spec = service.get("spec") or {}
    if not spec.get("selector") or spec.get("type") == "ExternalName":
        return None
    return from_labels(spec["selector"])


def by_selector(service: Obj) -> Iterator[str]:
    """Index: the selector keys of a Service."""
    selector = selector_of(service)
    if selector is not None:
        yield from selector_keys(meta.namespace(service), selector)


def by_node(pod: Obj) -> Iterator[str]:
    """Index: the node of a pod."""
    if node := (pod.get("spec") or {}).get("nodeName"):
        yield node


def is_headless(service: Obj) -> bool:
    return (service["spec"].get("clusterIP") or "None") == "None"


def publishes_unready(service: Obj) -> bool:
    return bool(service["spec"].get("publishNotReadyAddresses"))


def is_endpoint(pod: Obj, *, terminating: bool) -> bool:
    """Say whether a pod is an endpoint; `terminating` says whether it still is while it is being deleted."""
    status = pod.get("status") or {}
    if pods.is_finished(pod) or not (status.get("podIP") or status.get("podIPs")):
        return False
    return terminating or not meta.is_deleting(pod)


def addresses_of(pod: Obj) -> list[str]:
    status = pod.get("status") or {}
    return [one["ip"] for one in status.get("podIPs") or ({"ip": status.get("podIP") or ""},) if one["ip"]]


@lru_cache(maxsize=1 << 16)
def read_address(text: str) -> IPv4Address | IPv6Address:
    """Return a parsed address, cached because the same addresses recur."""
    return ip_address(text)


def ports_of(service: Obj, pod: Obj) -> list[tuple[Obj, int]]:
    """Return the ports of a Service that a pod has, each with its number in the pod."""
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
    """Return the hostname of a pod in the DNS of its Service, if it has one."""
    spec = pod["spec"]
    return (spec.get("hostname") or "") if spec.get("subdomain") == meta.name(service) else ""


def target_of(pod: Obj) -> Made:
    return {"kind": "Pod", "namespace": meta.namespace(pod), "name": meta.name(pod), "uid": meta.uid(pod)}


def zone_of(node: Obj | None) -> str:
    return meta.labels(node).get(_ZONE, "") if node is not None else ""


def last_trigger(reached: Iterable[Obj], written: str | None) -> str | None:
    """
    Return the trigger time of a write: the first change of a pod's readiness after the last trigger time.

    `written` is the last trigger time. None where no pod's readiness changed later.
    """
    since = moment(written) if written else None
    times: list[tuple[datetime, str]] = []
    for text in map(_ready_since, reached):
        at = moment(text)
        if at is not None and (since is None or at > since):
            times.append((at, str(text)))
    return min(times)[1] if times else None


def first_trigger(service: Obj) -> str | None:
    """Return the trigger time of a first write: the creation of the Service."""
    created: str | None = meta.metadata(service).get("creationTimestamp")
    return created


def _ready_since(pod: Obj) -> str | None:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            found: str | None = condition.get("lastTransitionTime")
            return found
    return None


# Enqueueing


def _relevant(pod: Obj) -> Any:
    """Return all fields of a pod that endpoints depend on."""
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
    """Yield the Services that select a pod."""
    return map(
        meta.ref, selecting(world, SERVICE, by_selector, selector_of, meta.namespace(pod), meta.labels(pod))
    )


def pod_changed(world: World, change: Change) -> Sequence[Ref]:
    """A changed pod enqueues the Services that select it or did, if a relevant field changed."""
    if change.preserves(_relevant):
        return ()
    # The Services depend on the labels alone, which are looked up once where they are unchanged.
    pods = (change.obj,) if change.preserves(meta.labels) else change.versions
    found = (ref for pod in pods for ref in services_of(world, pod))
    return tuple(dict.fromkeys(found))


def service_changed(world: World, change: Change) -> Sequence[Ref]:
    """A changed Service is enqueued, unless only its status changed."""
    return () if change.preserves(_without_status) else (change.ref,)


def _without_status(service: Obj) -> Any:
    return meta.uid(service), meta.labels(service), meta.annotations(service), service.get("spec")
