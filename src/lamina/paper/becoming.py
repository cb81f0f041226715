"""What an object becomes when somebody writes to it, on paper: which fields stay, and whose they are afterwards."""

from __future__ import annotations

from datetime import datetime

from lamina.merge import apply as owning
from lamina.merge.managed import APPLY, UPDATE
from lamina.merge.schema import Schema
from lamina.objects.times import stamp
from lamina.objects.types import Made, Obj
from lamina.paper.rules import owned

OPEN = Schema()
"""What is known of fields where nobody knows anything of them."""
OPEN.type, OPEN.open = "object", True
_FOR_GOOD = ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp")


def applied(
    old: Made | None,
    obj: Obj,
    schema: Schema,
    *,
    manager: str,
    force: bool,
    subresource: str | None,
    now: datetime,
) -> Made:
    """Return what comes of it when a manager states fields; Conflict where others differ, unless forced."""
    who = owning.Manager(manager, APPLY, obj["apiVersion"], subresource or "")
    stated = owned(obj)
    stated["metadata"].pop("uid", None)
    made, entries, _ = owning.apply(old, stated, schema, manager=who, force=force, now=stamp(now))
    made["metadata"]["managedFields"] = entries
    return made


def changed(old: Made, new: Made, subresource: str | None) -> Made:
    """Return what an object becomes, with everything that this endpoint does not change as it was."""
    if subresource == "status":
        new["spec"] = old.get("spec")
    elif subresource == "":
        new["status"] = old.get("status")
    new = {name: value for name, value in new.items() if value is not None}
    metadata = new["metadata"] = dict(new.get("metadata") or {})
    for name in _FOR_GOOD:
        if name in old["metadata"]:
            metadata[name] = old["metadata"][name]
    return new


def tracked(old: Made, new: Made, schema: Schema, subresource: str | None, now: datetime) -> list[Made]:
    """Return who owns what after a write that was no apply: what was changed is nobody's who applied it."""
    entries: list[Made] = old["metadata"]["managedFields"]
    if not any(one.get("operation") == APPLY for one in entries):
        return entries
    who = owning.Manager("somebody", UPDATE, old["apiVersion"], subresource or "")
    return owning.track_update(old, new, schema, manager=who, now=stamp(now))
