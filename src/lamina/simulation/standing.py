"""
How an object stands that nobody rolls anything out for, by what it says of itself.

Who has an account in some family is not judged here: the family knows, and what
a condition means there is its own business.
"""

from __future__ import annotations

from collections.abc import Mapping

from lamina.families.manifestwork.names import WORK
from lamina.objects import conditions
from lamina.objects.types import GroupKind, Obj

_BAD: dict[str, str] = {
    "Applied": "False",
    "Available": "False",
    "Ready": "False",
    "Failed": "True",
    "Degraded": "True",
    "ReplicaFailure": "True",
}
# Nobody agrees on what this one means: a Deployment says False when it has given up, and
# a work says so when it is done. Of others it says neither.
_BAD_PROGRESS: Mapping[GroupKind, str] = {GroupKind("apps", "Deployment"): "False", WORK: "True"}


def complaint(kind: GroupKind, obj: Obj) -> tuple[str, str] | None:
    """Return what an object says that is not well, and the sentence that goes with it; None if it is well."""
    said = (obj.get("status") or {}).get("conditions") or ()
    bad = _BAD | {"Progressing": _BAD_PROGRESS[kind]} if kind in _BAD_PROGRESS else _BAD
    for name, status in bad.items():
        found = conditions.find(said, name)
        if found is not None and found["status"] == status:
            return f"{name}={status}", found.get("message", "")
    return None
