"""Tables: the rows and column definitions that `kubectl get` prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from lamina.errors import BadRequest
from lamina.objects.go_quote import quoted
from lamina.objects.types import Made, Obj
from lamina.server.kinds.kind import Column, Kind


def table(
    kind: Kind, objects: Sequence[Obj], now: datetime, *, include: str = "Metadata", headers: bool = True
) -> Made:
    """
    Return objects as a Table; `include` is the includeObject parameter.

    Only the first event of a watch has column definitions (`headers`). Raises
    BadRequest for an `include` other than Metadata, None or Object.
    """
    if include not in {"Metadata", "None", "Object", ""}:
        raise BadRequest(
            f"Unable to convert to Table as requested: includeObject: Invalid value: {quoted(include)}: "
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return build_table(kind.shape.columns if headers else None, kind.shape.cells, objects, now, include)


def build_table(
    columns: Sequence[Column] | None,
    cells: Callable[[Obj, datetime], list[Any]],
    objects: Sequence[Obj],
    now: datetime,
    include: str,
) -> Made:
    """Return objects as a Table with the given columns."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": None if columns is None else [column_definition(column) for column in columns],
        "rows": [{"cells": cells(obj, now), "object": _row_object(obj, include)} for obj in objects],
    }


def column_definition(column: Column) -> Made:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _row_object(obj: Obj, include: str) -> Any:
    match include:
        case "Object":
            return obj
        case "None":
            return None
        case _:
            return {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": obj.get("metadata") or {},
            }
