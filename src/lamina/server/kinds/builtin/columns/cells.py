"""Cell values that several tables share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from lamina.errors import BadRequest
from lamina.objects.selectors import from_object
from lamina.objects.types import Obj
from lamina.server.kinds.builtin.validate.parts import items, part, text
from lamina.server.kinds.columns import since

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"


def name_of(obj: Obj) -> str:
    return text(part(obj, "metadata"), "name")


def age(obj: Obj, now: datetime) -> str:
    return since(part(obj, "metadata").get("creationTimestamp"), now)


def is_deleting(obj: Obj) -> bool:
    return part(obj, "metadata").get("deletionTimestamp") is not None


def created_at(obj: Obj, now: datetime) -> list[Any]:
    """Return the row of a kind without columns of its own."""
    return [name_of(obj), part(obj, "metadata").get("creationTimestamp") or "0001-01-01T00:00:00Z"]


def labels(found: Mapping[str, str] | None) -> str:
    """Return labels as text, sorted by key."""
    return ",".join(f"{key}={value}" for key, value in sorted((found or {}).items())) or NONE


def selector(found: Obj | None) -> str:
    """Return a LabelSelector as text."""
    try:
        return str(from_object(found)) or NONE
    except BadRequest:
        return "<error>"


def containers(template: Obj) -> list[str]:
    """Return the names and images of a template's containers."""
    found = items(part(template, "spec"), "containers")
    return [",".join(text(one, field) for one in found) for field in ("name", "image")]


def condition(found: Iterable[Obj], kind: str) -> Obj | None:
    return next((one for one in found if text(one, "type") == kind), None)


def is_true(found: Iterable[Obj], kind: str) -> bool:
    one = condition(found, kind)
    return one is not None and text(one, "status") == "True"


def first_few(found: Sequence[str], limit: int, total: int) -> str:
    """Return the first few items, and the number of the others."""
    shown = ",".join(found[:limit])
    return f"{shown} + {total - limit} more..." if total > limit else shown
