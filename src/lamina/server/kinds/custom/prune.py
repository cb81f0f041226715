"""
Pruning of unknown fields.

Below `x-kubernetes-preserve-unknown-fields` everything is kept, except in parts that the
schema specifies again. kind, apiVersion and metadata of the root or an embedded resource
are not pruned by the schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lamina.server.kinds.custom.document import Document, item_schema, value_schema

IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata"})

Pruner = Callable[[Any, str, list[str]], None]
"""Prunes a value in place: the value, its path in messages, and the list of dropped paths."""


def root_pruner(document: Document) -> Pruner:
    """Return the pruner of a whole object."""
    return _pruner({**document, "x-kubernetes-embedded-resource": True})


def value_pruner(document: Document) -> Pruner:
    """Return the pruner of a value of this schema."""
    return _pruner(document)


def _pruner(document: Document | None) -> Pruner:
    if document is None:
        return _prune_unknown
    fields = {name: _pruner(part) for name, part in document.get("properties", {}).items()}
    values = _pruner(value_schema(document)) if "additionalProperties" in document else None
    items = item_schema(document)
    keep = IDENTITY if document.get("x-kubernetes-embedded-resource") else frozenset()
    if document.get("x-kubernetes-preserve-unknown-fields"):
        return _preserving(fields, values, None if items is None else _preserved_item(items), keep)
    return _pruning(fields, values, _pruner(items), keep)


def _preserved_item(document: Document) -> Pruner:
    """Return the pruner of a list item that keeps unknown fields: items of the list keep them too."""
    return _pruner({**document, "x-kubernetes-preserve-unknown-fields": True})


def _prune_unknown(value: Any, path: str, pruned: list[str]) -> None:
    if isinstance(value, dict):
        for name in value:
            pruned.append(f"{path}.{name}" if path else name)
        value.clear()
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                _prune_unknown(item, f"{path}[{index}]", pruned)


def _pruning(fields: dict[str, Pruner], values: Pruner | None, items: Pruner, keep: frozenset[str]) -> Pruner:
    def prune(value: Any, path: str, pruned: list[str]) -> None:
        if isinstance(value, dict):
            removed = []
            for name, part in value.items():
                if name in keep:
                    continue
                known = fields.get(name, values)
                if known is None:
                    removed.append(name)
                elif isinstance(part, dict | list):
                    known(part, f"{path}.{name}" if path else name, pruned)
            for name in removed:
                pruned.append(f"{path}.{name}" if path else name)
                del value[name]
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, dict | list):
                    items(item, f"{path}[{index}]", pruned)

    return prune


def _preserving(
    fields: dict[str, Pruner], values: Pruner | None, items: Pruner | None, keep: frozenset[str]
) -> Pruner:
    def prune(value: Any, path: str, pruned: list[str]) -> None:
        if isinstance(value, dict):
            for name, part in value.items():
                known = fields.get(name, values)
                if known is not None and name not in keep and isinstance(part, dict | list):
                    known(part, f"{path}.{name}" if path else name, pruned)
        elif isinstance(value, list) and items is not None:
            for index, item in enumerate(value):
                if isinstance(item, dict | list):
                    items(item, f"{path}[{index}]", pruned)

    return prune


def closed(document: Document, *, is_root: bool = False) -> dict[str, Any] | None:
    """
    Return a JSON Schema of the values with nothing to prune and no null to drop; None if all values are.

    Embedded resources are refused, because their metadata has to be decoded in any case.
    """
    if document.get("x-kubernetes-embedded-resource"):
        return {"not": {"type": "object"}}
    made: dict[str, Any] = {}
    fields = {}
    for name, part in document.get("properties", {}).items():
        fields[name] = _present(part)
    if fields:
        made["properties"] = fields
    preserves = document.get("x-kubernetes-preserve-unknown-fields")
    values = value_schema(document)
    if values is not None:
        made["additionalProperties"] = _present(values)
    elif "additionalProperties" in document:
        # Inside values without a schema everything is pruned.
        made["additionalProperties"] = {"not": {"type": ["object", "array"]}}
    elif not preserves:
        made["additionalProperties"] = False
    items = item_schema(document)
    if preserves and items is not None:
        items = {**items, "x-kubernetes-preserve-unknown-fields": True}
    if items is not None and (inside := closed(items)):
        made["items"] = inside
    elif items is None and not preserves:
        made["items"] = {"not": {"type": ["object", "array"]}}
    if is_root:
        made["properties"] = {**fields, **dict.fromkeys(IDENTITY, True)}
    return made or None


def _present(document: Document) -> Any:
    inside = closed(document) or {}
    if document.get("nullable"):
        return inside or True
    return {"allOf": [{"not": {"type": "null"}}, inside]} if inside else {"not": {"type": "null"}}
