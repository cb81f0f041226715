"""One built-in kind in one version: codec, validation, warnings and columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from lamina.errors import Cause
from lamina.objects.types import Obj
from lamina.server.kinds.builtin.catalogue import Resource
from lamina.server.kinds.builtin.codec import BuiltinCodec
from lamina.server.kinds.builtin.columns import cells_of, columns_of
from lamina.server.kinds.builtin.field_labels import field_labels_of
from lamina.server.kinds.builtin.validate import validate_create, validate_update
from lamina.server.kinds.builtin.warn import warnings
from lamina.server.kinds.custom import crd_validation


class BuiltinShape(BuiltinCodec):
    """
    The behavior of one built-in kind in one version.

    Columns are those of the stored version, and so are the validation rules for versions
    of the same group; another group has its own.
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
    """CustomResourceDefinitions, whose validation is in `kinds.custom`."""

    def validate_create(self, obj: Obj) -> Sequence[Cause]:
        return crd_validation.validate_create(obj)

    def validate_update(self, new: Obj, old: Obj, subresource: str) -> Sequence[Cause]:
        return crd_validation.validate_update(new, old, subresource)

    def warn(self, new: Obj, old: Obj | None) -> Sequence[str]:
        return crd_validation.warn(new, old)


def shape_of(resource: Resource, now: Callable[[], datetime]) -> BuiltinShape:
    """Return the shape of a built-in resource; `now` is the clock for status timestamps."""
    if resource.kind == "CustomResourceDefinition":
        return DefinitionShape(resource, now)
    return BuiltinShape(resource, now)
