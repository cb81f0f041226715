"""
An instance as an ApplySet: its id, and the inventory of the kinds and namespaces of its children.

The inventory is written before a child of another kind or in another namespace is, and it
shrinks only once such children are gone: deletion finds children by nothing else. Its hash
shows whether it was edited.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from lamina.core.model.finalizers import is_held
from lamina.core.model.plan import Apply
from lamina.families.resourcegraph import labels as keys
from lamina.families.resourcegraph.hashes import label_value
from lamina.objects import meta, names
from lamina.objects.types import GroupKind, Made, Obj

_INVENTORY = (keys.TOOLING, keys.GROUP_KINDS, keys.ADDITIONAL_NAMESPACES, keys.INVENTORY_HASH)


def is_inventory(annotation: str) -> bool:
    """Say whether an annotation of an instance is part of its inventory."""
    return annotation in _INVENTORY


def membership(instance: Obj) -> Callable[[Obj], bool]:
    """
    Return whether an object with the label of the ApplySet is a member of it: by its namespace.

    Without an inventory that can be relied on, members are what the controller has applied. A copy
    of a child, which a restored backup may be, has the same labels, and another field manager.
    """
    uid, places = meta.uid(instance), {"", meta.namespace(instance), *recorded(instance).namespaces}
    if what_is_wrong(instance):
        return lambda one: meta.uid(one) != uid and _is_applied(one)
    # A template of an earlier release could render the instance itself.
    return lambda one: meta.uid(one) != uid and meta.namespace(one) in places


def _is_applied(obj: Obj) -> bool:
    entries = meta.metadata(obj).get("managedFields") or ()
    return any(one.get("manager") == keys.APPLYSET for one in entries)


class Inventory(Struct, frozen=True):
    """The kinds of the children of an instance, and their namespaces without its own."""

    kinds: frozenset[GroupKind] = frozenset()
    namespaces: frozenset[str] = frozenset()

    def __or__(self, other: Inventory) -> Inventory:
        return Inventory(self.kinds | other.kinds, self.namespaces | other.namespaces)


EMPTY = Inventory()


def applyset_id(instance: Obj) -> str:
    """Return the id of an instance as an ApplySet, which its name, namespace and kind decide."""
    ref = meta.ref(instance)
    text = f"{ref.name}.{ref.namespace}.{ref.kind}.{ref.group}"
    return f"applyset-{_hash(text)}-v1"


def inventory_hash(id: str, inventory: Inventory) -> str:
    """Return the hash of an inventory."""
    return f"sha256:{_hash(chr(0).join((id, _kinds(inventory), _namespaces(inventory))))}"


def _hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def _kinds(inventory: Inventory) -> str:
    return ",".join(sorted(f"{kind}.{group}" if group else kind for group, kind in inventory.kinds))


def _namespaces(inventory: Inventory) -> str:
    return ",".join(sorted(inventory.namespaces))


def inventory(instance: Obj, children: Iterable[tuple[GroupKind, str]]) -> Inventory:
    """Return the inventory of children, given by kind and namespace."""
    found = set(children)
    elsewhere = {namespace for _, namespace in found} - {"", meta.namespace(instance)}
    return Inventory(frozenset(kind for kind, _ in found), frozenset(elsewhere))


# Reading


def what_is_wrong(instance: Obj) -> str:
    """Return what is wrong with the recorded inventory of an instance; empty where nothing is."""
    annotations, expected = meta.annotations(instance), applyset_id(instance)
    if meta.labels(instance).get(keys.APPLYSET_ID) != expected:
        return f'label {keys.APPLYSET_ID} is "{meta.labels(instance).get(keys.APPLYSET_ID, "")}", want "{expected}"'
    if not annotations.get(keys.TOOLING, "").startswith(f"{keys.KRO}/"):
        return (
            f'annotation {keys.TOOLING} is "{annotations.get(keys.TOOLING, "")}", want "{keys.TOOLING_VALUE}"'
        )
    for key in (keys.GROUP_KINDS, keys.ADDITIONAL_NAMESPACES):
        if key not in annotations:
            return f"annotation {key} is missing"
    for entry in _entries(annotations[keys.GROUP_KINDS]):
        if not _is_kind(entry):
            return f'annotation {keys.GROUP_KINDS} has the invalid entry "{entry}"'
    for entry in _entries(annotations[keys.ADDITIONAL_NAMESPACES]):
        if names.label(entry):
            return f'annotation {keys.ADDITIONAL_NAMESPACES} has the invalid entry "{entry}"'
    # Older releases wrote no hash.
    stated, wanted = annotations.get(keys.INVENTORY_HASH), inventory_hash(expected, readable(instance))
    if stated is not None and stated != wanted:
        return f'annotation {keys.INVENTORY_HASH} is "{stated}", want "{wanted}"'
    return ""


def recorded(instance: Obj) -> Inventory:
    """Return the recorded inventory of an instance; an empty one where it cannot be relied on."""
    return EMPTY if what_is_wrong(instance) else readable(instance)


def is_intact(instance: Obj) -> bool:
    """Say whether the inventory of an instance is exactly as the controller records it."""
    labels = {keys.APPLYSET_ID: applyset_id(instance)}
    return _has(instance, labels, _annotations(instance, readable(instance)))


def readable(instance: Obj) -> Inventory:
    """Return the valid entries of the inventory of an instance, which may have been edited."""
    annotations = meta.annotations(instance)
    kinds = filter(_is_kind, _entries(annotations.get(keys.GROUP_KINDS, "")))
    namespaces = _entries(annotations.get(keys.ADDITIONAL_NAMESPACES, ""))
    return Inventory(
        frozenset(GroupKind(group, kind) for kind, _, group in (one.partition(".") for one in kinds)),
        frozenset(one for one in namespaces if not names.label(one)),
    )


def _is_kind(entry: str) -> bool:
    kind, dot, group = entry.partition(".")
    return bool(kind) and " " not in kind and not (dot and names.subdomain(group))


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",")] if text else []


# Writing


def record(instance: Obj, wanted: Inventory) -> Apply | None:
    """Return the write of an inventory; nothing where it is recorded already."""
    annotations, id = _annotations(instance, wanted), applyset_id(instance)
    labels = {keys.APPLYSET_ID: id}
    if _has(instance, labels, annotations):
        return None
    return _apply(instance, keys.APPLYSET_PARENT, labels=labels, annotations=annotations)


def manage(instance: Obj, definition: Obj, inventory: Callable[[], Inventory]) -> Apply | None:
    """
    Return the write of the finalizer and the labels of an instance; nothing where it has them.

    An inventory comes with them, so that a deletion can go on whenever the process ends.
    """
    labels = {
        keys.OWNED: "true",
        keys.KRO_VERSION: keys.VERSION,
        keys.DEFINITION_ID: meta.uid(definition),
        keys.DEFINITION_NAME: label_value(meta.name(definition)),
    }
    if is_held(instance, keys.FINALIZER) and _has(instance, labels, {}):
        return None
    wanted = inventory()
    labels[keys.APPLYSET_ID] = applyset_id(instance)
    annotations = _annotations(instance, wanted)
    return _apply(
        instance, keys.LABELLER, labels=labels, annotations=annotations, finalizers=[keys.FINALIZER]
    )


def _has(instance: Obj, labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
    return (
        labels.items() <= meta.labels(instance).items()
        and annotations.items() <= meta.annotations(instance).items()
    )


def _annotations(instance: Obj, wanted: Inventory) -> dict[str, str]:
    return {
        keys.TOOLING: keys.TOOLING_VALUE,
        keys.GROUP_KINDS: _kinds(wanted),
        keys.ADDITIONAL_NAMESPACES: _namespaces(wanted),
        keys.INVENTORY_HASH: inventory_hash(applyset_id(instance), wanted),
    }


def _apply(instance: Obj, manager: str, **fields: object) -> Apply:
    """Return an apply of metadata at the version that was read: an older inventory would lose children."""
    ref = meta.ref(instance)
    metadata: Made = {
        "name": ref.name,
        "uid": meta.uid(instance),
        "resourceVersion": meta.resource_version(instance),
    }
    if ref.namespace:
        metadata["namespace"] = ref.namespace
    metadata |= {name: value for name, value in fields.items() if value}
    body = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata}
    return Apply(obj=body, force=True, manager=manager)
