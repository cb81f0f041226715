"""The built-in kinds, for the registry."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from lamina.merge.schema import Schema, Schemas
from lamina.server.kinds.builtin.catalogue import CATALOGUE, Resource
from lamina.server.kinds.builtin.definitions import definition
from lamina.server.kinds.builtin.shape import shape_of
from lamina.server.kinds.kind import Kind


class LazySchema(Schema):
    """
    The schema of a built-in kind, compiled on first access.

    Most kinds are never written, and compiling all schemas would take most of the start.
    A compiled schema is as fast as any other.
    """

    __slots__ = ("_definition",)

    def __init__(self, name: str) -> None:
        # The slots of a schema stay unset until the first access.
        self._definition = name

    def __getattr__(self, slot: str) -> Any:
        if slot not in Schema.__slots__:
            raise AttributeError(slot)
        compiled = _SCHEMAS.named(self._definition)
        for known in Schema.__slots__:
            setattr(self, known, getattr(compiled, known))
        return getattr(compiled, slot)

    def __repr__(self) -> str:
        return f"<Schema {self._definition}>"


_DEPRECATIONS: Final = {
    ("", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
"""Warnings that every response for a kind has."""

_SCHEMAS: Final = Schemas(definition)


def builtin_kinds(now: Callable[[], datetime] | None = None) -> tuple[Kind, ...]:
    """
    Return all built-in kinds in all versions; `now` is the clock for status timestamps.

    Without a clock the same values are shared by all servers: the creation timestamp
    comes with the object.
    """
    return tuple(_kind(resource, now) for resource in CATALOGUE) if now is not None else _shared()


@cache
def _shared() -> tuple[Kind, ...]:
    return tuple(_kind(resource, lambda: datetime.now(UTC)) for resource in CATALOGUE)


def _kind(resource: Resource, now: Callable[[], datetime]) -> Kind:
    shape = shape_of(resource, now)
    return Kind(
        group=resource.group,
        version=resource.version,
        kind=resource.kind,
        list_kind=resource.list_kind,
        plural=resource.plural,
        singular=resource.singular,
        namespaced=resource.namespaced,
        verbs=resource.verbs,
        bucket=resource.bucket,
        schema=LazySchema(resource.definition),
        shape=shape,
        stored=resource.stored,
        converts=shape.converts,
        preferred=resource.preferred,
        short_names=resource.short_names,
        categories=resource.categories,
        subresources=resource.subresources,
        definition=resource.definition,
        storage_hash=resource.storage_hash,
        deprecation=_DEPRECATIONS.get((resource.group, resource.plural), ""),
    )
