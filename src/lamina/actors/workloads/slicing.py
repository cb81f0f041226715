"""
How endpoints are spread over slices, and over those there are already.

A slice holds endpoints that offer the same ports at addresses of one family.
What is there stays where it is; what is new goes first into slices that change
anyway, then into the fullest that has room for all of it, and then into new
ones. So a change to one pod rewrites one slice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field

from lamina.actors.workloads.addresses import TRIGGER
from lamina.actors.workloads.pods import prefix
from lamina.actors.workloads.selecting import changes
from lamina.core.plan import Action, Create, change, delete
from lamina.objects import meta
from lamina.objects.digest import canonical, short
from lamina.objects.types import Made, Obj, OwnerRef

SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED: Final = "endpointslice.kubernetes.io/managed-by"
_LONGEST_PREFIX: Final = 58

Identity: TypeAlias = Callable[[Obj], str]
"""What makes an endpoint the same one in two slices."""


class Group(Struct, frozen=True, kw_only=True):
    """Endpoints that offer the same ports at addresses of one family: what slices are made of."""

    family: str
    ports: Sequence[Made]
    endpoints: list[Made] = field(default_factory=list)

    @property
    def key(self) -> bytes:
        return key_of(self.family, self.ports)


class Head(Struct, frozen=True, kw_only=True):
    """What all slices of one owner say about themselves."""

    namespace: str
    name: str
    owner: OwnerRef
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    trigger: str | None = None
    """What is said of the moment on slices that change."""
    first: str | None = None
    """What is said of it on slices that are new."""
    most: int = 100


def key_of(family: str, ports: Sequence[Obj] | None) -> bytes:
    """Return what two slices have in common that may hold the same endpoints."""
    said = [[port.get("name") or "", port.get("port"), port.get("protocol") or "TCP", port.get("appProtocol")]
            for port in ports or ()]  # fmt: skip
    return canonical([family, sorted(said, key=canonical)])


def spread(head: Head, groups: Sequence[Group], existing: Sequence[Obj], same: Identity) -> list[Action]:
    """
    Return what makes the slices of an owner hold these endpoints and no others.

    An owner without any has one empty slice for each family it has a group of.
    """
    by_key: dict[bytes, list[Obj]] = {}
    for one in existing:
        by_key.setdefault(key_of(one.get("addressType") or "", one.get("ports")), []).append(one)
    new: list[tuple[Group, list[Made]]] = []
    changed: list[tuple[Obj, list[Made] | None]] = []
    gone: list[Obj] = []
    for group in groups:
        filled = _fill(group, by_key.pop(group.key, []), head.most, same)
        new += [(group, chunk) for chunk in filled.new]
        changed += filled.kept
        gone += filled.emptied
    gone += [one for left in by_key.values() for one in left]
    if not new and not changed:
        kept, made = _placeholders(groups, gone)
        new += made
        changed += [(one, None) for one in kept]
        gone = [one for one in gone if one not in kept]
    taken = {meta.name(one) for one in existing}
    actions: list[Action] = [delete(one) for one in gone]
    for one, endpoints in changed:
        action = _correction(head, one, endpoints)
        if action is not None:
            actions.append(action)
    seen = [head.owner["uid"], sorted(taken), sorted(map(meta.resource_version, existing))]
    actions += [Create(obj=_made(head, *chunk, [*seen, number])) for number, chunk in enumerate(new)]
    return actions


class _Filled(Struct, frozen=True):
    kept: list[tuple[Obj, list[Made] | None]]
    """Slices that stay, with what they now hold, or None where that is what they held."""
    new: list[list[Made]]
    emptied: list[Obj]


def _fill(group: Group, existing: Sequence[Obj], most: int, same: Identity) -> _Filled:
    wanted = {same(one): one for one in group.endpoints}
    held: list[tuple[Obj, list[Made], bool]] = []
    emptied: list[Obj] = []
    for one in existing:
        endpoints: list[Made] = []
        moved = False
        for old in one.get("endpoints") or ():
            now = wanted.pop(same(old), None)
            moved = moved or now != old
            if now is not None:
                endpoints.append(now)
        held.append((one, endpoints, moved))
    left = list(wanted.values())
    for _, endpoints, moved in sorted(held, key=lambda one: -len(one[1])):
        if moved and left:
            room = max(0, most - len(endpoints))
            endpoints += left[:room]
            left = left[room:]
    new: list[list[Made]] = []
    while len(left) >= most:
        new.append(left[:most])
        left = left[most:]
    if left:
        roomy = [one for one in held if not one[2] and len(one[1]) + len(left) <= most]
        fullest = max(roomy, key=lambda one: len(one[1]), default=None)
        if fullest is None:
            new.append(left)
        else:
            held[held.index(fullest)] = (fullest[0], [*fullest[1], *left], True)
    kept: list[tuple[Obj, list[Made] | None]] = []
    for one, endpoints, moved in held:
        if endpoints:
            kept.append((one, endpoints if moved else None))
        else:
            emptied.append(one)
    return _Filled(kept, new, emptied)


def _placeholders(
    groups: Sequence[Group], gone: Sequence[Obj]
) -> tuple[list[Obj], list[tuple[Group, list[Made]]]]:
    """Return which of the slices to go stay as an empty one, and for which families one has to be made."""
    kept: list[Obj] = []
    made: list[tuple[Group, list[Made]]] = []
    for family in dict.fromkeys(group.family for group in groups):
        empty = [
            one
            for one in gone
            if one.get("addressType") == family and not one.get("endpoints") and not one.get("ports")
        ]
        if empty:
            kept.append(empty[0])
        else:
            made.append((Group(family=family, ports=()), []))
    return kept, made


def _made(head: Head, group: Group, endpoints: Sequence[Made], seen: Sequence[object]) -> Made:
    start = prefix(head.name)
    annotations = {**head.annotations, **({TRIGGER: head.first} if head.first else {})}
    metadata: Made = {
        "name": start[:_LONGEST_PREFIX] + short(seen, 5),
        "generateName": start,
        "namespace": head.namespace,
        "labels": dict(head.labels),
        "ownerReferences": [head.owner],
    }
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": group.family,
        "endpoints": list(endpoints),
        "ports": list(group.ports),
    }


def _correction(head: Head, old: Obj, endpoints: list[Made] | None) -> Action | None:
    labels = changes(meta.labels(old), head.labels)
    before = meta.annotations(old)
    kept = {key: value for key, value in before.items() if key == TRIGGER}
    annotations = changes(before, {**head.annotations, **kept}) if head.annotations else {}
    if endpoints is None and not labels and not annotations:
        return None
    patch: Made = {"metadata": {"labels": labels}}
    if endpoints is not None:
        patch["endpoints"] = endpoints
        annotations = {**annotations, TRIGGER: head.trigger}
    return change(old, patch | {"metadata": {**patch["metadata"], "annotations": annotations}})
