"""
Tables: what `kubectl get` prints.

The server works out every cell, ages included, and a kind only says what its
columns are and what one object shows in them. A kind that comes from a CRD
says so with paths; `PathColumns` is what those become.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from lamina.errors import BadRequest
from lamina.objects.jsonpath import JsonPath, PathError
from lamina.objects.printing import json_text, number, quoted
from lamina.objects.times import moment
from lamina.objects.types import Made, Obj
from lamina.server.kind import Column, Kind

NAME_TOLD: Final = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources "
    "may allow a client to request the generation of an appropriate name automatically. Name is primarily "
    "intended for creation idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
CREATED_TOLD: Final = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not "
    "guaranteed to be set in happens-before order across separate operations. Clients may not set this "
    "value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null "
    "for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
NAME: Final = Column(name="Name", format="name", description=NAME_TOLD)
AGE_OF_CUSTOM: Final[Mapping[str, Any]] = {
    "name": "Age",
    "type": "date",
    "description": CREATED_TOLD,
    "jsonPath": ".metadata.creationTimestamp",
}


def table(
    kind: Kind, objects: Sequence[Obj], now: datetime, *, include: str = "Metadata", headers: bool = True
) -> Made:
    """
    Return objects as a Table; `include` says how much of each its row carries.

    Only the first event of a watch has `headers`. Raises BadRequest for an
    `include` other than Metadata, None or Object.
    """
    if include not in {"Metadata", "None", "Object", ""}:
        raise BadRequest(
            f"Unable to convert to Table as requested: includeObject: Invalid value: {quoted(include)}: "
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return tabulated(kind.shape.columns if headers else None, kind.shape.cells, objects, now, include)


def tabulated(
    columns: Sequence[Column] | None,
    cells: Callable[[Obj, datetime], list[Any]],
    objects: Sequence[Obj],
    now: datetime,
    include: str,
) -> Made:
    """Return objects as a Table of any columns."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": None if columns is None else [definition(column) for column in columns],
        "rows": [{"cells": cells(obj, now), "object": _carried(obj, include)} for obj in objects],
    }


def definition(column: Column) -> Made:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _carried(obj: Obj, include: str) -> Any:
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


def human_duration(seconds: float) -> str:
    """
    Return how long something took or is ago, as coarse as a reader needs: `49s`, `5m10s`, `3d4h`, `2y119d`.

    A moment in the future is tolerated for two seconds, since clocks differ.
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, second = divmod(whole, 60)
    if minutes < 10:
        return _pair(minutes, "m", second, "s")
    if minutes < 180:
        return f"{minutes}m"
    hours, minute = divmod(minutes, 60)
    if hours < 8:
        return _pair(hours, "h", minute, "m")
    if hours < 48:
        return f"{hours}h"
    days, hour = divmod(hours, 24)
    if days < 8:
        return _pair(days, "d", hour, "h")
    if days < 2 * 365:
        return f"{days}d"
    years, day = divmod(days, 365)
    if years < 8:
        return _pair(years, "y", day, "d")
    return f"{years}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def since(text: str | None, now: datetime) -> str:
    """Return how long ago a stamped moment was, `<unknown>` where there is no stamp."""
    then = moment(text)
    if then is None:
        return "<unknown>" if not text else "<invalid>"
    return human_duration((now - then).total_seconds())


class PathColumns:
    """
    The columns of a custom kind: `Name`, then what its CRD asks for, or `Age` if it asks for nothing.

    A path that cannot be read ends the columns before it, as on a real server.
    """

    __slots__ = ("_paths", "columns")

    def __init__(self, definitions: Sequence[Mapping[str, Any]]) -> None:
        columns = [NAME]
        paths: list[tuple[str, JsonPath]] = []
        for one in definitions or (AGE_OF_CUSTOM,):
            try:
                path = JsonPath(one["jsonPath"])
            except PathError:
                break
            told = one.get("description") or (
                f"Custom resource definition column (in JSONPath format): {one['jsonPath']}"
            )
            columns.append(
                Column(
                    name=one["name"],
                    type=one["type"],
                    format=one.get("format") or "",
                    description=told,
                    priority=one.get("priority") or 0,
                )
            )
            paths.append((one["type"], path))
        self.columns: tuple[Column, ...] = tuple(columns)
        self._paths = paths

    def cells(self, obj: Obj, now: datetime) -> list[Any]:
        """Return one row; what a path does not find is null."""
        return [
            (obj.get("metadata") or {}).get("name") or "",
            *(_path_cell(kind, path, obj, now) for kind, path in self._paths),
        ]


def _path_cell(kind: str, path: JsonPath, obj: Obj, now: datetime) -> Any:
    try:
        found = path.find(obj)
    except PathError:
        return None
    if not found:
        return None
    value = found[0]
    match kind:
        case "string":
            return _as_text(value)
        case "integer":
            return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "number":
            return (
                _as_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
            )
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return since(value, now) if isinstance(value, str) else None
        case _:
            return None


def _as_number(value: int | float) -> int | float:
    # JSON has one way to write a whole number, and it has no point in it.
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def _as_text(value: Any) -> str:
    match value:
        case None:
            return "<no value>"
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return number(value)
        case int():
            return str(value)
        case _:
            return json_text(value)
