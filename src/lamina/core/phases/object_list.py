"""Objects as a status lists them: by kind, group, name and namespace, whatever the version of their kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lamina.core.phases.manifest import ObjectKey
from lamina.objects.types import Made, Obj


def listed(keys: Iterable[ObjectKey]) -> list[Made]:
    """Return objects as a status lists them; the version is required, and always empty."""
    return [
        {
            "kind": key.kind,
            "group": key.group,
            "name": key.name,
            **({"namespace": key.namespace} if key.namespace else {}),
            "version": "",
        }
        for key in keys
    ]


def read_listed(entries: Iterable[Obj]) -> Iterator[ObjectKey]:
    """Yield the objects that a status lists."""
    for one in entries:
        yield ObjectKey(*(one.get(field) or "" for field in ObjectKey._fields))
