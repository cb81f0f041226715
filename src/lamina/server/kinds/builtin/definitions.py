"""
The OpenAPI definitions of built-in kinds, as Kubernetes 1.35 publishes them.

They are in OpenAPI v3 format. References are `#/components/schemas/NAME`, inside `allOf`
if the schema has other keys. A `default` is what v3 publishes: the zero of a field that
is always encoded, or a declared default; most defaulting is in no schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

from lamina.server.kinds.builtin.tables import table

Definition: TypeAlias = Mapping[str, Any]


def definition(name: str) -> Definition:
    """Return a definition by its full name, `io.k8s.api.core.v1.ConfigMap`; raises LookupError."""
    package, _, _ = name.rpartition(".")
    found: Definition = table(package)[name]
    return found


def closure(names: Iterable[str]) -> dict[str, Definition]:
    """Return the named definitions and those they reference, sorted by name."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _mentioned(name)
    return {name: definition(name) for name in sorted(found)}


@cache
def _mentioned(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(references(definition(name))))


def references(schema: Any) -> Iterator[str]:
    """Yield the names of the definitions that a schema references."""
    if isinstance(schema, dict):
        for key, part in schema.items():
            if key == "$ref" and isinstance(part, str):
                yield part.rpartition("/")[2]
            elif isinstance(part, dict | list):
                yield from references(part)
    elif isinstance(schema, list):
        for part in schema:
            if isinstance(part, dict | list):
                yield from references(part)
