"""
Table cells: ages, durations, and the `additionalPrinterColumns` of custom kinds.

The server computes every cell. A built-in kind has its own functions; a custom kind has
JSONPaths, which `PathColumns` evaluates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from lamina.objects.go_quote import format_float, json_text
from lamina.objects.jsonpath import JsonPath, PathError
from lamina.objects.times import moment
from lamina.objects.types import Obj
from lamina.server.kinds.kind import Column

NAME_DESCRIPTION: Final = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources "
    "may allow a client to request the generation of an appropriate name automatically. Name is primarily "
    "intended for creation idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
CREATED_DESCRIPTION: Final = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not "
    "guaranteed to be set in happens-before order across separate operations. Clients may not set this "
    "value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null "
    "for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
NAME: Final = Column(name="Name", format="name", description=NAME_DESCRIPTION)
AGE_OF_CUSTOM: Final[Mapping[str, Any]] = {
    "name": "Age",
    "type": "date",
    "description": CREATED_DESCRIPTION,
    "jsonPath": ".metadata.creationTimestamp",
}


def human_duration(seconds: float) -> str:
    """
    Return a duration with one or two units: `49s`, `5m10s`, `3d4h`, `2y119d`.

    Up to two seconds in the future count as 0, because clocks differ.
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
    """Return the age of a timestamp, `<unknown>` if it is absent."""
    then = moment(text)
    if then is None:
        return "<unknown>" if not text else "<invalid>"
    return human_duration((now - then).total_seconds())


class PathColumns:
    """
    The columns of a custom kind: `Name`, then those of its CRD, or `Age` if it has none.

    An invalid path drops the columns after it, as in kube-apiserver.
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
            description = one.get("description") or (
                f"Custom resource definition column (in JSONPath format): {one['jsonPath']}"
            )
            columns.append(
                Column(
                    name=one["name"],
                    type=one["type"],
                    format=one.get("format") or "",
                    description=description,
                    priority=one.get("priority") or 0,
                )
            )
            paths.append((one["type"], path))
        self.columns: tuple[Column, ...] = tuple(columns)
        self._paths = paths

    def cells(self, obj: Obj, now: datetime) -> list[Any]:
        """Return one row; a path that selects nothing is null."""
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
    # JSON encodes a whole number without a decimal point.
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
            return format_float(value)
        case int():
            return str(value)
        case _:
            return json_text(value)
