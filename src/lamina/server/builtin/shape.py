"""A built-in kind in one version, out of its pieces: how it is written, validated and shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from lamina.errors import Cause
from lamina.objects.types import Obj
from lamina.server.builtin.catalogue import Resource
from lamina.server.builtin.columns import cells_of, columns_of
from lamina.server.builtin.field_labels import field_labels_of
from lamina.server.builtin.validate import validate_create, validate_update
from lamina.server.builtin.warn import warnings
from lamina.server.builtin.writing import Writing
from lamina.server.custom import definition


class BuiltinShape(Writing):
    """
    What is particular to one built-in kind in one version.

    Columns are those of the stored form, whichever version asks, and so are the
    rules where the versions of one group differ; another group has its own.
    """

    def __init__(self, resource: Resource, now: Callable[[], datetime]) -> None:
        super().__init__(resource, now)
        self._group = resource.group
        self._ruled_as_stored = self.converts and resource.storage[0] == resource.group
        self.columns = columns_of(resource.storage[0], resource.plural)
        self._cells = cells_of(resource.storage[0], resource.plural)
        self.field_labels = field_labels_of(resource.group, resource.plural)

    def validate_create(self, obj: Obj) -> Sequence[Cause]:
        if self._ruled_as_stored:
            obj = self.store({**obj})
        return validate_create(self._kind, self._group, obj)

    def validate_update(self, new: Obj, old: Obj, subresource: str) -> Sequence[Cause]:
        if self._ruled_as_stored:
            new, old = self.store({**new}), self.store({**old})
        return validate_update(self._kind, self._group, new, old, subresource)

    def warn(self, new: Obj, old: Obj | None) -> Sequence[str]:
        return warnings(self._key, new, old)

    def cells(self, obj: Obj, now: datetime) -> list[Any]:
        return self._cells(self.store({**obj}) if self.converts else obj, now)


class DefinitionShape(BuiltinShape):
    """That of CustomResourceDefinitions, whose rules are written where custom resources are."""

    def validate_create(self, obj: Obj) -> Sequence[Cause]:
        return definition.validate_create(obj)

    def validate_update(self, new: Obj, old: Obj, subresource: str) -> Sequence[Cause]:
        return definition.validate_update(new, old, subresource)

    def warn(self, new: Obj, old: Obj | None) -> Sequence[str]:
        return definition.warn(new, old)


def shape_of(resource: Resource, now: Callable[[], datetime]) -> BuiltinShape:
    """Return the shape of a built-in resource; `now` is the clock that its status times come from."""
    if resource.kind == "CustomResourceDefinition":
        return DefinitionShape(resource, now)
    return BuiltinShape(resource, now)
