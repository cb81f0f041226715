"""
Whether a manager's configuration is applied to an object already.

managedFields record what each manager applied, so the live object alone decides:
a manager that owns exactly these fields, and finds them with these values, need
not send the apply. The answer no may be wrong where the server stores a value in
another form than it was applied; the answer yes is always right.
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


def is_applied(live: Obj, applied: Obj, manager: str) -> bool:
    """Say whether a manager has applied exactly this configuration, and no later write has changed it."""
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
    ours = {key: value for key, value in applied.items() if key not in _UNOWNED}
    metadata = {key: value for key, value in meta.metadata(applied).items() if key not in _UNOWNED_METADATA}
    ours.pop("metadata", None)
    if metadata:
        ours["metadata"] = metadata
    return _is_equal(live, ours, fields)


def _is_equal(live: Any, applied: Any, fields: Mapping[str, Any]) -> bool:
    below = {element: deeper for element, deeper in fields.items() if element != "."}
    if isinstance(applied, Mapping):
        if not isinstance(live, Mapping):
            return False
        if not below:
            return not applied or is_same(live, applied)
        return _are_fields_equal(live, applied, below)
    if isinstance(applied, list) and below:
        return isinstance(live, list) and _are_items_equal(live, applied, below)
    return is_same(live, applied)


def _are_fields_equal(live: Obj, applied: Obj, below: Mapping[str, Any]) -> bool:
    if below.keys() != {f"f:{key}" for key in applied}:
        return False
    return all(
        key in live and _is_equal(live[key], value, below[f"f:{key}"]) for key, value in applied.items()
    )


def _are_items_equal(live: Sequence[Any], applied: Sequence[Any], below: Mapping[str, Any]) -> bool:
    if len(applied) != len(below):
        return False
    return all(_is_item_equal(live, item, below) for item in applied)


def _is_item_equal(live: Sequence[Any], item: Any, below: Mapping[str, Any]) -> bool:
    if not isinstance(item, Mapping):
        return value_element(item) in below and any(is_same(one, item) for one in live)
    for element, fields in below.items():
        if not element.startswith("k:"):
            return False
        keys = json.loads(element[2:])
        # A key that was not applied has been defaulted by the server.
        if all(is_same(item.get(key, value), value) for key, value in keys.items()):
            there = (one for one in live if isinstance(one, Mapping) and _has_keys(one, keys))
            return any(_is_equal(one, item, fields) for one in there)
    return False


def _has_keys(one: Obj, keys: Obj) -> bool:
    return all(key in one and is_same(one[key], value) for key, value in keys.items())
