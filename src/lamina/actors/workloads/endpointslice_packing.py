"""
Packs endpoints into new and existing slices.

A slice has endpoints with the same ports and address family. Existing endpoints
stay in their slice; new ones go first into slices that change anyway, then into
the fullest one that has space for all of them, and then into new slices. So a
change of one pod rewrites one slice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field

from lamina.actors.workloads.endpoint_address import TRIGGER
from lamina.actors.workloads.pods import prefix
from lamina.core.model.plan import Action, Create, change, delete
from lamina.merge.patches import create_merge_patch
from lamina.objects import meta
from lamina.objects.digest import canonical, short
from lamina.objects.types import Made, Obj, OwnerRef

SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED: Final = "endpointslice.kubernetes.io/managed-by"
_LONGEST_PREFIX: Final = 58

Identity: TypeAlias = Callable[[Obj], str]
"""Returns the identity of an endpoint across slices."""


class Group(Struct, frozen=True, kw_only=True):
    """Endpoints with the same ports and address family."""

    family: str
    ports: Sequence[Made]
    endpoints: list[Made] = field(default_factory=list)

    @property
    def key(self) -> bytes:
        return key_of(self.family, self.ports)


class SliceMetadata(Struct, frozen=True, kw_only=True):
    """The metadata of all slices of one owner."""

    namespace: str
    name: str
    owner: OwnerRef
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    trigger: str | None = None
    """The trigger time of slices that change."""
    first: str | None = None
    """The trigger time of new slices."""
    most: int = 100


def key_of(family: str, ports: Sequence[Obj] | None) -> bytes:
    """Return the key that slices for the same endpoints have in common."""
    keys = [[port.get("name") or "", port.get("port"), port.get("protocol") or "TCP", port.get("appProtocol")]
            for port in ports or ()]  # fmt: skip
    return canonical([family, sorted(keys, key=canonical)])


def pack(
    head: SliceMetadata, groups: Sequence[Group], existing: Sequence[Obj], identity: Identity
) -> list[Action]:
    """
    Return the actions that make the slices of an owner hold exactly these endpoints.

    An owner without any has one empty slice for each address family.
    """
    by_key: dict[bytes, list[Obj]] = {}
    for one in existing:
        by_key.setdefault(key_of(one.get("addressType") or "", one.get("ports")), []).append(one)
    new: list[tuple[Group, list[Made]]] = []
    changed: list[tuple[Obj, list[Made] | None]] = []
    gone: list[Obj] = []
    for group in groups:
        filled = _fill(group, by_key.pop(group.key, []), head.most, identity)
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
        action = _update(head, one, endpoints)
        if action is not None:
            actions.append(action)
    seen = [head.owner["uid"], sorted(taken), sorted(map(meta.resource_version, existing))]
    actions += [Create(obj=_new_slice(head, *chunk, [*seen, number])) for number, chunk in enumerate(new)]
    return actions


class _Filled(Struct, frozen=True):
    kept: list[tuple[Obj, list[Made] | None]]
    """Slices that stay, with their new endpoints, None where they do not change."""
    new: list[list[Made]]
    emptied: list[Obj]


def _fill(group: Group, existing: Sequence[Obj], most: int, identity: Identity) -> _Filled:
    wanted = {identity(one): one for one in group.endpoints}
    held: list[tuple[Obj, list[Made], bool]] = []
    emptied: list[Obj] = []
    for one in existing:
        endpoints: list[Made] = []
        moved = False
        for old in one.get("endpoints") or ():
            now = wanted.pop(identity(old), None)
            moved = moved or now != old
            if now is not None:
                endpoints.append(now)
        held.append((one, endpoints, moved))
    left = list(wanted.values())
    for _, endpoints, moved in sorted(held, key=lambda one: -len(one[1])):
        if moved and left:
            space = max(0, most - len(endpoints))
            endpoints += left[:space]
            left = left[space:]
    new: list[list[Made]] = []
    while len(left) >= most:
        new.append(left[:most])
        left = left[most:]
    if left:
        candidates = [one for one in held if not one[2] and len(one[1]) + len(left) <= most]
        fullest = max(candidates, key=lambda one: len(one[1]), default=None)
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
    """Return which of the slices to delete stay as empty ones, and the families that need a new one."""
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


def _new_slice(head: SliceMetadata, group: Group, endpoints: Sequence[Made], seen: Sequence[object]) -> Made:
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


def _update(head: SliceMetadata, old: Obj, endpoints: list[Made] | None) -> Action | None:
    labels = create_merge_patch(meta.labels(old), head.labels)
    before = meta.annotations(old)
    kept = {key: value for key, value in before.items() if key == TRIGGER}
    annotations = create_merge_patch(before, {**head.annotations, **kept}) if head.annotations else {}
    if endpoints is None and not labels and not annotations:
        return None
    patch: Made = {"metadata": {"labels": labels}}
    if endpoints is not None:
        patch["endpoints"] = endpoints
        annotations = {**annotations, TRIGGER: head.trigger}
    return change(old, patch | {"metadata": {**patch["metadata"], "annotations": annotations}})
