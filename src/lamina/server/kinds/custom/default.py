"""
Defaulting of custom objects, and dropping of nulls.

A null that is not allowed counts as absent: it is dropped if there is no default, and
replaced by the default otherwise. Defaults of nested fields apply if the containing
object is present.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.server.kinds.custom.document import Document, item_schema, value_schema

Step = Callable[[Any], None]
"""Modifies a value in place."""

_ATOMS = (str, int, float, bool, type(None))


def fresh(value: Any) -> Any:
    """Return a deep copy."""
    if isinstance(value, _ATOMS):
        return value
    if isinstance(value, dict):
        return {key: fresh(part) for key, part in value.items()}
    return [fresh(part) for part in value]


def defaulter(document: Document | None) -> Step | None:
    """Return the function that sets the defaults of a schema; None if it has none."""
    if document is None:
        return None
    own: list[tuple[str, Any, bool]] = []
    inside: dict[str, Step] = {}
    for name, part in document.get("properties", {}).items():
        if "default" in part:
            own.append((name, part["default"], bool(part.get("nullable"))))
        if (below := defaulter(part)) is not None:
            inside[name] = below
    values, items = value_schema(document), item_schema(document)
    below_values, below_items = _element(values), _element(items)
    if not own and not inside and below_values is None and below_items is None:
        return None
    known = frozenset(document.get("properties", {}))

    def fill(value: Any) -> None:
        if isinstance(value, dict):
            for name, given, nullable in own:
                if name not in value or (value[name] is None and not nullable):
                    value[name] = fresh(given)
            for name, below in inside.items():
                if name in value:
                    below(value[name])
            if below_values is not None:
                for name in value:
                    if name not in known:
                        below_values(value, name)
        elif isinstance(value, list) and below_items is not None:
            for index in range(len(value)):
                below_items(value, index)

    return fill


def _element(document: Document | None) -> Callable[[Any, Any], None] | None:
    """Return the function that sets the defaults of one map value or list item, which may be null."""
    below = defaulter(document)
    if document is None:
        return None
    given = None if document.get("nullable") else document.get("default")
    if below is None and given is None:
        return None

    def fill(container: Any, key: Any) -> None:
        if container[key] is None and given is not None:
            container[key] = fresh(given)
        if below is not None:
            below(container[key])

    return fill


def null_pruner(document: Document | None) -> Step | None:
    """Return the function that drops nulls which are not allowed and have no default; None if none can occur."""
    if document is None:
        return None
    properties = document.get("properties", {})
    values, items = value_schema(document), item_schema(document)
    droppable = {name for name, part in properties.items() if _drops(part)}
    inside = {name: below for name, part in properties.items() if (below := null_pruner(part)) is not None}
    drop_values = values is not None and _drops(values)
    below_values, below_items = null_pruner(values), null_pruner(items)
    if not droppable and not inside and not drop_values and below_values is None and below_items is None:
        return None

    def drop(value: Any) -> None:
        if isinstance(value, dict):
            for name in [name for name, part in value.items() if part is None]:
                if name in droppable or (drop_values and name not in properties):
                    del value[name]
            for name, part in value.items():
                below = inside.get(name) if name in properties else below_values
                if below is not None and isinstance(part, dict | list):
                    below(part)
        elif isinstance(value, list) and below_items is not None:
            for item in value:
                if isinstance(item, dict | list):
                    below_items(item)

    return drop


def _drops(document: Document) -> bool:
    return not document.get("nullable") and "default" not in document
