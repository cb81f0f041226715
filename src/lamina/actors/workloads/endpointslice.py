"""
The EndpointSlice controller: up to a hundred endpoints in a slice.

Unlike Endpoints, a slice has for each pod the conditions ready, serving and
terminating, its zone, and the hints for the Service's trafficDistribution.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.actors.workloads import pods
from lamina.actors.workloads.endpoint_address import (
    HEADLESS,
    NODE,
    TRIGGER,
    addresses_of,
    by_node,
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
    services_of,
    target_of,
    zone_of,
)
from lamina.actors.workloads.endpointslice_packing import (
    MANAGED,
    SERVICE_NAME,
    Group,
    SliceMetadata,
    key_of,
    pack,
)
from lamina.actors.workloads.pods import POD
from lamina.core.model.controller import Controller, Watch, only
from lamina.core.model.plan import Plan, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.core.ownership.selector_index import by_label, labelled, selected
from lamina.objects import meta
from lamina.objects.types import GroupKind, Made, Obj, Ref

SLICE: Final = GroupKind("discovery.k8s.io", "EndpointSlice")
CONTROLLER: Final = "endpointslice-controller.k8s.io"
_RESERVED: Final = (HEADLESS, SERVICE_NAME, MANAGED)
_TOGETHER = timedelta(milliseconds=100)
_NEAR: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")


class View(Struct, frozen=True, kw_only=True):
    """A Service with a selector; its pods; their nodes by name; and its slices."""

    service: Obj
    pods: tuple[Obj, ...]
    nodes: Mapping[str, Obj]
    slices: tuple[Obj, ...]


def slices_of(world: World, namespace: str, name: str, manager: str) -> tuple[Obj, ...]:
    """Return the slices of a Service that one controller manages, in the order of their names."""
    found = world.by_index(SLICE, by_label, labelled(namespace, SERVICE_NAME, name))
    ours = (one for one in found if meta.labels(one).get(MANAGED) == manager and not meta.is_deleting(one))
    return tuple(sorted(ours, key=meta.name))


def gather(world: World, ref: Ref) -> View | None:
    service = world.get(ref)
    selector = selector_of(service) if service is not None else None
    if service is None or selector is None or meta.is_deleting(service):
        # Its slices are its dependents, and garbage-collected.
        return None
    found = tuple(selected(world, POD, ref.namespace, selector))
    names = {pod["spec"].get("nodeName") or "" for pod in found}
    nodes = {name: world.get(Ref("v1", "Node", "", name)) for name in names}
    return View(
        service=service,
        pods=found,
        nodes={name: node for name, node in nodes.items() if node is not None},
        slices=slices_of(world, ref.namespace, ref.name, CONTROLLER),
    )


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    service = view.service
    groups = groups_of(view)
    stale = [meta.annotations(one).get(TRIGGER) for one in view.slices]
    head = SliceMetadata(
        namespace=meta.namespace(service),
        name=meta.name(service),
        owner=meta.owner_ref(service, controller=True, blocks=True),
        labels=_labels(service),
        trigger=last_trigger(view.pods, max((one for one in stale if one), default=None)),
        first=first_trigger(service),
    )
    owned = [one for one in view.slices if meta.is_controlled_by(one, meta.uid(service))]
    actions = pack(head, groups, owned, _identity)
    many = sum(len(group.endpoints) for group in groups)
    return one_stage("write slices", actions, because=f"{many} endpoints")


def _identity(endpoint: Obj) -> str:
    return str((endpoint.get("targetRef") or {}).get("uid") or endpoint["addresses"])


def _labels(service: Obj) -> dict[str, str]:
    labels = {key: value for key, value in meta.labels(service).items() if key not in _RESERVED}
    labels |= {HEADLESS: ""} if is_headless(service) else {}
    return labels | {SERVICE_NAME: meta.name(service), MANAGED: CONTROLLER}


def groups_of(view: View) -> list[Group]:
    """Return the endpoints of a Service grouped by ports; each address family has at least one group."""
    service = view.service
    groups: dict[bytes, Group] = {}
    families = service["spec"].get("ipFamilies") or ["IPv4"]
    for family in families:
        version = 6 if family == "IPv6" else 4
        found = False
        for pod in view.pods:
            node = view.nodes.get(pod["spec"].get("nodeName") or "")
            if not is_endpoint(pod, terminating=True) or (node is None and not publishes_unready(service)):
                # Without its node, the pod is about to be deleted or the cache is behind.
                continue
            addresses = [one for one in addresses_of(pod) if read_address(one).version == version]
            if addresses:
                ports = _ports(service, pod)
                group = groups.setdefault(key_of(family, ports), Group(family=family, ports=ports))
                group.endpoints.append(_endpoint(service, pod, node, addresses))
                found = True
        if not found:
            groups[key_of(family, ())] = Group(family=family, ports=())
    return list(groups.values())


def _ports(service: Obj, pod: Obj) -> list[Made]:
    found: list[Made] = []
    for port, number in ports_of(service, pod):
        written: Made = {
            "name": port.get("name", ""),
            "protocol": port.get("protocol", "TCP"),
            "port": number,
        }
        found.append(written | ({"appProtocol": port["appProtocol"]} if port.get("appProtocol") else {}))
    return found


def _endpoint(service: Obj, pod: Obj, node: Obj | None, addresses: list[str]) -> Made:
    serving, terminating = pods.is_ready(pod), meta.is_deleting(pod)
    ready = publishes_unready(service) or (serving and not terminating)
    endpoint: Made = {
        "addresses": addresses,
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
    }
    if hostname := hostname_of(service, pod):
        endpoint["hostname"] = hostname
    endpoint["targetRef"] = target_of(pod)
    node_name = pod["spec"].get("nodeName") or ""
    if node_name:
        endpoint["nodeName"] = node_name
    zone = zone_of(node)
    if zone:
        endpoint["zone"] = zone
    near = service["spec"].get("trafficDistribution")
    if near in _NEAR and ready and zone:
        endpoint["hints"] = {"forZones": [{"name": zone}]}
        if near == "PreferSameNode" and node_name:
            endpoint["hints"]["forNodes"] = [{"name": node_name}]
    return endpoint


# Enqueueing


def slice_changed(world: World, change: Change) -> Iterable[Ref]:
    """A slice that was changed or deleted enqueues its Service."""
    labels = meta.labels(change.obj)
    name = labels.get(SERVICE_NAME)
    if not name or labels.get(MANAGED) != CONTROLLER or change.before is None:
        return ()
    return (Ref("v1", "Service", change.ref.namespace, name),)


def node_changed(world: World, change: Change) -> Iterable[Ref]:
    """A node that is created, deleted or changes its zone enqueues the Services of its pods."""
    if change.preserves(zone_of):
        return ()
    on_it = world.by_index(POD, by_node, change.ref.name)
    return tuple(dict.fromkeys(ref for pod in on_it for ref in services_of(world, pod)))


SLICES: Controller[View] = Controller(
    name="endpoint slices",
    watches=(
        Watch(selects=only("", "Service"), enqueue=service_changed),
        Watch(selects=only(*POD), enqueue=pod_changed, delay=_TOGETHER),
        Watch(selects=only(*NODE), enqueue=node_changed, delay=_TOGETHER),
        Watch(selects=only(*SLICE), enqueue=slice_changed, delay=_TOGETHER),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
)
