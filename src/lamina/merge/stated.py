"""
Whether what somebody applies is on an object already, field for field.

The server keeps who stated what, so the question can be answered from the
object alone: whoever stated these fields, no others, and finds them as stated,
has nothing to send. A no may be wrong where the server writes a value in
another way than it was stated; a yes is right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lamina.merge.fieldset import value_element
from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.types import Obj

_UNOWNED = frozenset(("apiVersion", "kind", "status"))
_UNOWNED_METADATA = frozenset(
    ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
)  # fmt: skip


def is_stated(live: Obj, stated: Obj, manager: str) -> bool:
    """Say whether a manager has applied exactly this to an object, and nobody has changed it since."""
    fields = next(
        (
            entry.get("fieldsV1") or {}
            for entry in meta.metadata(live).get("managedFields") or ()
            if entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and not entry.get("subresource")
        ),
        None,
    )
    if fields is None:
        return False
    ours = {key: value for key, value in stated.items() if key not in _UNOWNED}
    metadata = {key: value for key, value in meta.metadata(stated).items() if key not in _UNOWNED_METADATA}
    ours.pop("metadata", None)
    if metadata:
        ours["metadata"] = metadata
    return _is_so(live, ours, fields)


def _is_so(live: Any, stated: Any, fields: Mapping[str, Any]) -> bool:
    below = {element: deeper for element, deeper in fields.items() if element != "."}
    if isinstance(stated, Mapping):
        if not isinstance(live, Mapping):
            return False
        if not below:
            return not stated or is_same(live, stated)
        return _fields_are_so(live, stated, below)
    if isinstance(stated, list) and below:
        return isinstance(live, list) and _items_are_so(live, stated, below)
    return is_same(live, stated)


def _fields_are_so(live: Obj, stated: Obj, below: Mapping[str, Any]) -> bool:
    if below.keys() != {f"f:{key}" for key in stated}:
        return False
    return all(key in live and _is_so(live[key], value, below[f"f:{key}"]) for key, value in stated.items())


def _items_are_so(live: Sequence[Any], stated: Sequence[Any], below: Mapping[str, Any]) -> bool:
    if len(stated) != len(below):
        return False
    return all(_item_is_so(live, item, below) for item in stated)


def _item_is_so(live: Sequence[Any], item: Any, below: Mapping[str, Any]) -> bool:
    if not isinstance(item, Mapping):
        return value_element(item) in below and any(is_same(one, item) for one in live)
    for element, fields in below.items():
        if not element.startswith("k:"):
            return False
        keys = json.loads(element[2:])
        # A key that is not stated is one the server filled in.
        if all(is_same(item.get(key, value), value) for key, value in keys.items()):
            there = (one for one in live if isinstance(one, Mapping) and _has(one, keys))
            return any(_is_so(one, item, fields) for one in there)
    return False


def _has(one: Obj, keys: Obj) -> bool:
    return all(key in one and is_same(one[key], value) for key, value in keys.items())
