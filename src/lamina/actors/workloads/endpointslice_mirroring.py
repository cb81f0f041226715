"""
The EndpointSlice mirroring controller: slices of custom Endpoints.

The Endpoints of a Service without a selector are written by users. They are
mirrored to slices: one for each subset and address family.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.actors.workloads.endpoint_address import TRIGGER, read_address
from lamina.actors.workloads.endpointslice import SLICE, slices_of
from lamina.actors.workloads.endpointslice_packing import (
    MANAGED,
    SERVICE_NAME,
    Group,
    SliceMetadata,
    key_of,
    pack,
)
from lamina.core.model.controller import Controller, Watch, only
from lamina.core.model.plan import Plan, delete, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.types import Made, Obj, Ref

CONTROLLER: Final = "endpointslicemirroring-controller.k8s.io"
MOST: Final = 1000
_SKIPPED: Final = "endpointslice.kubernetes.io/skip-mirror"
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
_NOT_COPIED: Final = (TRIGGER, "kubectl.kubernetes.io/last-applied-configuration")
_FIELDS: Final = ("hostname", "nodeName", "targetRef")


class View(Struct, frozen=True, kw_only=True):
    """Custom Endpoints, None where none are to be mirrored; and their slices."""

    endpoints: Obj | None
    slices: tuple[Obj, ...]


def gather(world: World, ref: Ref) -> View | None:
    endpoints = world.get(ref)
    slices = slices_of(world, ref.namespace, ref.name, CONTROLLER)
    if endpoints is not None and not _is_mirrored(world, endpoints):
        endpoints = None
    return View(endpoints=endpoints, slices=slices) if endpoints is not None or slices else None


def _is_mirrored(world: World, endpoints: Obj) -> bool:
    if meta.labels(endpoints).get(_SKIPPED) == "true" or _LEADER in meta.annotations(endpoints):
        return False
    service = world.get(Ref("v1", "Service", meta.namespace(endpoints), meta.name(endpoints)))
    return service is not None and not (service.get("spec") or {}).get("selector")


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    endpoints = view.endpoints
    if endpoints is None:
        return one_stage("delete slices", [delete(one) for one in view.slices], because="nothing is mirrored")
    trigger = meta.annotations(endpoints).get(TRIGGER)
    kept = {key: value for key, value in meta.annotations(endpoints).items() if key not in _NOT_COPIED}
    head = SliceMetadata(
        namespace=meta.namespace(endpoints),
        name=meta.name(endpoints),
        owner=meta.owner_ref(endpoints, controller=True, blocks=True),
        labels={
            **meta.labels(endpoints),
            SERVICE_NAME: meta.name(endpoints),
            MANAGED: CONTROLLER,
        },
        annotations=kept,
        trigger=trigger,
        first=trigger,
        most=MOST,
    )
    groups = groups_of(endpoints)
    if not groups:
        return one_stage("delete slices", [delete(one) for one in view.slices], because="it has no addresses")
    return one_stage("write slices", pack(head, groups, view.slices, _identity), because="it has addresses")


def _identity(endpoint: Obj) -> str:
    return digest([endpoint["addresses"], endpoint.get("targetRef"), endpoint.get("hostname")])


def groups_of(endpoints: Obj) -> list[Group]:
    """Return the addresses of Endpoints by ports and family; at most a thousand of each subset."""
    groups: dict[bytes, Group] = {}
    for subset in endpoints.get("subsets") or ():
        ports = [_port(port) for port in subset.get("ports") or ()]
        listed = [(one, True) for one in subset.get("addresses") or ()]
        listed += [(one, False) for one in subset.get("notReadyAddresses") or ()]
        for address, ready in listed[:MOST]:
            family = f"IPv{read_address(address['ip']).version}"
            group = groups.setdefault(key_of(family, ports), Group(family=family, ports=ports))
            group.endpoints.append(_endpoint(address, ready))
    return list(groups.values())


def _port(port: Obj) -> Made:
    written: Made = {
        "name": port.get("name", ""),
        "protocol": port.get("protocol", "TCP"),
        "port": port["port"],
    }
    return written | ({"appProtocol": port["appProtocol"]} if port.get("appProtocol") else {})


def _endpoint(address: Obj, ready: bool) -> Made:
    endpoint: Made = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
    return endpoint | {field: address[field] for field in _FIELDS if address.get(field)}


def service_changed(world: World, change: Change) -> Iterable[Ref]:
    """A Service that is created, deleted or changes its selector enqueues the Endpoints of its name."""
    if change.preserves(lambda service: (meta.uid(service), (service.get("spec") or {}).get("selector"))):
        return ()
    return (Ref("v1", "Endpoints", change.ref.namespace, change.ref.name),)


def endpoints_changed(world: World, change: Change) -> Iterable[Ref]:
    return () if change.preserves(_mirrored_fields) else (change.ref,)


def _mirrored_fields(endpoints: Obj) -> Any:
    return (
        meta.uid(endpoints),
        meta.labels(endpoints),
        meta.annotations(endpoints),
        endpoints.get("subsets"),
    )


def slice_changed(world: World, change: Change) -> Iterable[Ref]:
    """A mirrored slice that was changed or deleted enqueues its Endpoints."""
    labels = meta.labels(change.obj)
    name = labels.get(SERVICE_NAME)
    if not name or labels.get(MANAGED) != CONTROLLER or change.before is None:
        return ()
    return (Ref("v1", "Endpoints", change.ref.namespace, name),)


MIRRORED_SLICES: Controller[View] = Controller(
    name="mirrored slices",
    watches=(
        Watch(selects=only("", "Service"), enqueue=service_changed),
        Watch(selects=only("", "Endpoints"), enqueue=endpoints_changed),
        Watch(selects=only(*SLICE), enqueue=slice_changed),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
)
