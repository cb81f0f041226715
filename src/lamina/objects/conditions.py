"""Reading conditions, and setting one without losing when it last changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lamina.objects import meta
from lamina.objects.times import stamp
from lamina.objects.types import Condition, Obj


def of(obj: Obj) -> Sequence[Condition]:
    """Return the conditions in an object's status; what is not a condition is left out, since a kind may store anything there."""
    status = obj.get("status")
    found = status.get("conditions") if isinstance(status, Mapping) else None
    return tuple(filter(_is_condition, found)) if isinstance(found, list) else ()


def _is_condition(value: Any) -> bool:
    return isinstance(value, Mapping)


def find(conditions: Sequence[Condition], name: str) -> Condition | None:
    """Return the condition of that type, if there is one."""
    return next((condition for condition in conditions if condition.get("type") == name), None)


def is_true(conditions: Sequence[Condition], name: str) -> bool:
    found = find(conditions, name)
    return found is not None and found.get("status") == "True"


def is_current(condition: Condition, obj: Obj) -> bool:
    """Say whether a condition is about the current generation of its object."""
    return (condition.get("observedGeneration") or 0) == meta.generation(obj)


def is_true_now(obj: Obj, name: str) -> bool:
    """Say whether a condition of an object is true and about its current generation."""
    found = find(of(obj), name)
    return found is not None and found.get("status") == "True" and is_current(found, obj)


def with_condition(
    conditions: Sequence[Condition],
    name: str,
    status: str,
    *,
    now: datetime,
    reason: str = "",
    message: str = "",
    generation: int | None = None,
) -> list[Condition]:
    """
    Return the conditions with this one set, in its old place or at the end.

    Its transition time is kept while its status stays the same: a new reason
    or message is not a transition.
    """
    old = find(conditions, name)
    kept = old.get("lastTransitionTime") if old is not None and old["status"] == status else None
    new = Condition(
        type=name,
        status=status,
        lastTransitionTime=kept or stamp(now),
        reason=reason,
        message=message,
    )
    if generation is not None:
        new["observedGeneration"] = generation
    if old is None:
        return [*conditions, new]
    return [new if condition is old else condition for condition in conditions]


def without_condition(conditions: Sequence[Condition], name: str) -> list[Condition]:
    return [condition for condition in conditions if condition["type"] != name]
