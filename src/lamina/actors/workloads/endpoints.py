"""
The Endpoints controller: one object for each Service, with the Service's name.

A subset is a set of addresses with the same ports. Pods that are not ready are in
notReadyAddresses; terminating ones are left out. Beyond a thousand addresses the
object is truncated, and an annotation says so.

Endpoints are the legacy API; EndpointSlices replace them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.actors.workloads import pods
from lamina.actors.workloads.endpoint_address import (
    HEADLESS,
    TRIGGER,
    addresses_of,
    first_trigger,
    hostname_of,
    is_endpoint,
    is_headless,
    last_trigger,
    pod_changed,
    ports_of,
    publishes_unready,
    read_address,
    selector_of,
    service_changed,
    target_of,
)
from lamina.actors.workloads.pods import POD
from lamina.core.model.controller import Controller, Watch, only
from lamina.core.model.plan import Action, Create, Plan, change, delete, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.core.ownership.selector_index import selected
from lamina.merge.patches import create_merge_patch
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref

MANAGED: Final = "endpoints.kubernetes.io/managed-by"
CONTROLLER: Final = "endpoint-controller"
MOST: Final = 1000
_OVER: Final = "endpoints.kubernetes.io/over-capacity"
_TOGETHER = timedelta(milliseconds=500)
"""Longer than for EndpointSlices, because every change rewrites the whole object."""


class View(Struct, frozen=True, kw_only=True):
    """A Service with a selector, or None for a deleted one; its pods; and its Endpoints."""

    service: Obj | None
    pods: tuple[Obj, ...]
    endpoints: Obj | None


def gather(world: World, ref: Ref) -> View | None:
    """
    Return the view of a Service.

    A key of kind Endpoints means that the deletion of the Service was
    observed: then any Endpoints of its name are deleted. Endpoints whose
    Service is not in the cache are deleted only if this controller made them.
    """
    service = world.get(Ref("v1", "Service", ref.namespace, ref.name))
    endpoints = world.get(Ref("v1", "Endpoints", ref.namespace, ref.name))
    if service is None:
        ours = endpoints is not None and meta.labels(endpoints).get(MANAGED) == CONTROLLER
        lost = endpoints if ours or ref.kind == "Endpoints" else None
        return View(service=None, pods=(), endpoints=lost) if lost is not None else None
    selector = selector_of(service)
    if selector is None:
        return None
    found = selected(world, POD, ref.namespace, selector)
    return View(service=service, pods=tuple(found), endpoints=endpoints)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    service, old = view.service, view.endpoints
    if service is None:
        return one_stage("delete endpoints", [delete(old)] if old else [], because="its Service is deleted")
    endpoint_pods = [pod for pod in view.pods if is_endpoint(pod, terminating=publishes_unready(service))]
    subsets = _truncated(subsets_of(service, endpoint_pods))
    over = _count(subsets) < sum(1 for pod in endpoint_pods for _ in addresses_of(pod)[:1])
    labels = _labels(service)
    if old is None:
        return one_stage(
            "create endpoints", [_new(service, subsets, labels, over)], because="they are missing"
        )
    action = _correction(old, subsets, labels, over, endpoint_pods)
    return one_stage("update endpoints", [action] if action else [], because=f"{len(endpoint_pods)} pods")


def _labels(service: Obj) -> dict[str, str]:
    labels = {**meta.labels(service), MANAGED: CONTROLLER}
    labels.pop(HEADLESS, None)
    return labels | {HEADLESS: ""} if is_headless(service) else labels


def _annotations(old: Mapping[str, str], trigger: str | None, over: bool) -> dict[str, str]:
    kept = {key: value for key, value in old.items() if key not in (TRIGGER, _OVER)}
    return kept | ({TRIGGER: trigger} if trigger else {}) | ({_OVER: "truncated"} if over else {})


def _new(service: Obj, subsets: list[Made], labels: Made, over: bool) -> Action:
    metadata: Made = {
        "name": meta.name(service),
        "namespace": meta.namespace(service),
        "labels": labels,
        "annotations": _annotations({}, first_trigger(service), over),
    }
    made: Made = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata}
    return Create(obj=made | ({"subsets": subsets} if subsets else {}))


def _correction(
    old: Obj, subsets: list[Made], labels: Made, over: bool, endpoint_pods: Sequence[Obj]
) -> Action | None:
    before = meta.annotations(old)
    moved = (old.get("subsets") or []) != subsets
    if not moved and meta.labels(old) == labels and (before.get(_OVER) == "truncated") == over:
        return None
    trigger = last_trigger(endpoint_pods, before.get(TRIGGER))
    patch: Made = {
        "metadata": {
            "labels": create_merge_patch(meta.labels(old), labels),
            "annotations": create_merge_patch(before, _annotations(before, trigger, over)),
        }
    }
    if moved:
        patch["subsets"] = subsets or None
    return change(old, patch)


# Subsets


def subsets_of(service: Obj, endpoint_pods: Iterable[Obj]) -> list[Made]:
    """Return addresses grouped by their ports, in a stable order."""
    by_port: dict[tuple[Any, ...], dict[bool, list[Made]]] = {}
    for pod in endpoint_pods:
        address = _address(service, pod)
        if address is None:
            continue
        ready = publishes_unready(service) or pods.is_ready(pod)
        ports = service["spec"].get("ports")
        numbered = [
            (port.get("name", ""), number, port.get("protocol", "TCP"), port.get("appProtocol", ""))
            for port, number in ports_of(service, pod)
        ]
        for port in numbered if ports else [()] if is_headless(service) else []:
            by_port.setdefault(port, {True: [], False: []})[ready].append(address)
    by_addresses: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for port, found in by_port.items():
        known = tuple(tuple(sorted(map(_order, found[ready]))) for ready in (True, False))
        by_addresses.setdefault(known, []).append(port)
    return [
        _subset(sorted(ports), by_port[ports[0]])
        for ports in sorted(by_addresses.values(), key=lambda ports: sorted(ports))
    ]


def _address(service: Obj, pod: Obj) -> Made | None:
    family = (service["spec"].get("ipFamilies") or ["IPv4"])[0]
    version = 6 if family == "IPv6" else 4
    found = next((one for one in addresses_of(pod) if read_address(one).version == version), None)
    if found is None:
        return None
    address: Made = {"ip": found}
    if hostname := hostname_of(service, pod):
        address["hostname"] = hostname
    if node := pod["spec"].get("nodeName"):
        address["nodeName"] = node
    return address | {"targetRef": target_of(pod)}


def _order(address: Obj) -> tuple[int, str]:
    return int(read_address(address["ip"])), address["targetRef"]["uid"]


def _subset(ports: Sequence[tuple[Any, ...]], found: Mapping[bool, list[Made]]) -> Made:
    subset: Made = {}
    for field, ready in (("addresses", True), ("notReadyAddresses", False)):
        if found[ready]:
            subset[field] = sorted(found[ready], key=_order)
    written = [
        {"name": name, "port": number, "protocol": protocol, "appProtocol": application}
        for name, number, protocol, application in (port for port in ports if port)
    ]
    if written:
        subset["ports"] = [{field: value for field, value in one.items() if value != ""} for one in written]
    return subset


def _count(subsets: Iterable[Obj]) -> int:
    found = (
        one["ip"]
        for subset in subsets
        for one in (*subset.get("addresses", ()), *subset.get("notReadyAddresses", ()))
    )
    return len(set(found))


def _truncated(subsets: list[Made]) -> list[Made]:
    """Return subsets truncated to a thousand addresses, ready ones first."""
    total = sum(len(one.get("addresses", ())) + len(one.get("notReadyAddresses", ())) for one in subsets)
    if total <= MOST:
        return subsets
    left = MOST
    for field in ("addresses", "notReadyAddresses"):
        for subset in subsets:
            kept = subset.get(field, ())[:left]
            left -= len(kept)
            subset.pop(field, None)
            if kept:
                subset[field] = kept
    return [one for one in subsets if "addresses" in one or "notReadyAddresses" in one]


def service_deleted(world: World, change: Change) -> Iterable[Ref]:
    """A changed Service is enqueued; a deleted one enqueues its Endpoints."""
    if change.after is None:
        return (Ref("v1", "Endpoints", change.ref.namespace, change.ref.name),)
    return service_changed(world, change)


def endpoints_changed(world: World, change: Change) -> Iterable[Ref]:
    """Deleted Endpoints enqueue their Service, and so do observed ones without a Service."""
    ref = Ref("v1", "Service", change.ref.namespace, change.ref.name)
    gone = change.after is None
    return (ref,) if gone or (change.before is None and world.get(ref) is None) else ()


ENDPOINTS: Controller[View] = Controller(
    name="endpoints",
    watches=(
        Watch(selects=only("", "Service"), enqueue=service_deleted),
        Watch(selects=only(*POD), enqueue=pod_changed, delay=_TOGETHER),
        Watch(selects=only("", "Endpoints"), enqueue=endpoints_changed),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
)
