"""The results of writes: which fields an endpoint changes, and which manager owns them afterwards."""

from __future__ import annotations

from datetime import datetime

from lamina.merge.apply import Manager, apply, track_update
from lamina.merge.managed import APPLY, UPDATE
from lamina.merge.schema import Schema
from lamina.objects.times import stamp
from lamina.objects.types import Made, Obj
from lamina.simulation.cluster.object_rules import deep_copy

OPEN = Schema()
"""The schema of kinds without one."""
OPEN.type, OPEN.open = "object", True
_IMMUTABLE = ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp")


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
    """Return the result of a server-side apply; raises Conflict with other managers, unless forced."""
    applier = Manager(manager, APPLY, obj["apiVersion"], subresource or "")
    stated = deep_copy(obj)
    for name in ("uid", "resourceVersion"):
        stated["metadata"].pop(name, None)
    made, entries, _ = apply(old, stated, schema, manager=applier, force=force, now=stamp(now))
    made["metadata"]["managedFields"] = entries
    return made


def changed(old: Made, new: Made, subresource: str | None, *, has_status: bool = True) -> Made:
    """Return the result of an update, with every field that the endpoint does not change as it was."""
    if subresource == "status":
        new = {**old, "metadata": new.get("metadata"), "status": new.get("status")}
    elif subresource == "" and has_status:
        new["status"] = old.get("status")
    for name in ("spec", "status"):
        if name in new and new[name] is None:
            del new[name]
    metadata = new["metadata"] = dict(new.get("metadata") or {})
    for name in _IMMUTABLE:
        if name in old["metadata"]:
            metadata[name] = old["metadata"][name]
    for name in ("labels", "annotations"):
        # A server stores no empty map, and an empty map has no owner.
        if not metadata.get(name, True):
            del metadata[name]
    return new


def created(new: Made, schema: Schema, manager: str, now: datetime) -> list[Made]:
    """Return the managed fields of an object that a manager creates."""
    creator = Manager(manager, UPDATE, new["apiVersion"], "")
    return track_update(None, new, schema, manager=creator, now=stamp(now))


def tracked(old: Made, new: Made, schema: Schema, subresource: str | None, now: datetime) -> list[Made]:
    """Return the managed fields after an update: appliers lose the fields that it changed."""
    entries: list[Made] = old["metadata"]["managedFields"]
    is_stated = new["metadata"].get("managedFields") != entries
    if not is_stated and not any(one.get("operation") == APPLY for one in entries):
        return entries
    updater = Manager("unknown", UPDATE, old["apiVersion"], subresource or "")
    return track_update(old, new, schema, manager=updater, now=stamp(now))
