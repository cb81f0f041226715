"""Words and phrases that several tables share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from lamina.errors import BadRequest
from lamina.objects.selectors import from_object
from lamina.objects.types import Obj
from lamina.server.tables import since

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"
_NOTHING: Mapping[str, Any] = {}


def part(obj: Obj, name: str) -> Obj:
    return obj.get(name) or _NOTHING


def items(obj: Obj, name: str) -> Sequence[Any]:
    return obj.get(name) or ()


def text(obj: Obj, name: str) -> str:
    return obj.get(name) or ""


def count(obj: Obj, name: str) -> int:
    return obj.get(name) or 0


def name_of(obj: Obj) -> str:
    return text(part(obj, "metadata"), "name")


def age(obj: Obj, now: datetime) -> str:
    return since(part(obj, "metadata").get("creationTimestamp"), now)


def is_deleting(obj: Obj) -> bool:
    return part(obj, "metadata").get("deletionTimestamp") is not None


def created_at(obj: Obj, now: datetime) -> list[Any]:
    """Return the row of a kind that has no columns of its own."""
    return [name_of(obj), part(obj, "metadata").get("creationTimestamp") or "0001-01-01T00:00:00Z"]


def labels(found: Mapping[str, str] | None) -> str:
    """Return labels as one text, in the order of their keys."""
    return ",".join(f"{key}={value}" for key, value in sorted((found or {}).items())) or NONE


def selector(found: Obj | None) -> str:
    """Return a LabelSelector as one text."""
    try:
        return str(from_object(found)) or NONE
    except BadRequest:
        return "<error>"


def containers(template: Obj) -> list[str]:
    """Return the names and the images of a template's containers."""
    found = items(part(template, "spec"), "containers")
    return [",".join(text(one, field) for one in found) for field in ("name", "image")]


def condition(found: Iterable[Obj], kind: str) -> Obj | None:
    return next((one for one in found if text(one, "type") == kind), None)


def is_true(found: Iterable[Obj], kind: str) -> bool:
    one = condition(found, kind)
    return one is not None and text(one, "status") == "True"


def some(found: Sequence[str], most: int, total: int) -> str:
    """Return the first few of many, and how many more there are."""
    shown = ",".join(found[:most])
    return f"{shown} + {total - most} more..." if total > most else shown
