"""The built-in kinds, as the registry serves them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from lamina.merge.schema import Schema, Schemas
from lamina.server.builtin.catalogue import CATALOGUE, Resource
from lamina.server.builtin.definitions import definition
from lamina.server.builtin.shape import shape_of
from lamina.server.kind import Kind


class LazySchema(Schema):
    """
    The schema of a built-in kind, compiled when somebody first looks at it.

    Most kinds are never written in the life of a process, and compiling them
    all would be most of its start. Once filled, it is as quick as any other.
    """

    __slots__ = ("_definition",)

    def __init__(self, name: str) -> None:
        # The slots of a schema stay empty until one of them is asked for.
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


_DEPRECATED: Final = {
    ("", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
"""What a real server warns of in every answer."""

_SCHEMAS: Final = Schemas(definition)


def builtin_kinds(now: Callable[[], datetime] | None = None) -> tuple[Kind, ...]:
    """
    Return every built-in kind in every version; `now` is the clock their status times come from.

    Without one they are the same values every time, for any number of servers:
    whatever is created through one brings the moment of its creation along.
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
        deprecation=_DEPRECATED.get((resource.group, resource.plural), ""),
    )
