"""
Events: one for each occurrence, however often it is observed.

The name of an event is a hash of what it reports, so a repeated pass writes the
same event again and the API server answers that it exists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.times import stamp
from lamina.objects.types import Condition, Made, Obj, Ref


def name_of(about: Obj, reason: str, message: str, occasion: str = "") -> Ref:
    """
    Return the reference of the event with this reason and message about an object.

    The same occurrence has the same name. One that may happen again with the same
    message has an `occasion`: the version it was decided on, or a count. Events
    about cluster-scoped objects are in `default`.
    """
    parts = [meta.uid(about), reason, message]
    mark = digest([*parts, occasion] if occasion else parts)[:16]
    return Ref("v1", "Event", meta.namespace(about) or "default", f"{meta.name(about)}.{mark}")


def normal(about: Obj, reason: str, message: str, *, by: str, now: datetime, occasion: str = "") -> Made:
    """Return an event of type Normal about an object, reported by the component `by`."""
    return _event("Normal", about, reason, message, by, now, occasion)


def warning(about: Obj, reason: str, message: str, *, by: str, now: datetime, occasion: str = "") -> Made:
    """Return an event of type Warning about an object, reported by the component `by`."""
    return _event("Warning", about, reason, message, by, now, occasion)


def on_change(
    about: Obj,
    before: Condition | None,
    after: Condition,
    *,
    by: str,
    now: datetime,
    warns: Collection[str] = (),
    occasion: str = "",
    names: Mapping[str, str] | None = None,
    always: Collection[str] = (),
) -> Iterator[Made]:
    """
    Yield the event of a condition whose status or reason has changed, with its reason and message.

    Another message alone is no change, unless the reason is in `always`: then every pass
    reports what it does. Reasons in `warns` make the event a Warning. With `names`, only
    these reasons lead to an event, whose reason is the name.
    """
    reason, message = after.get("reason", ""), after.get("message", "")
    same = before is not None and all(before.get(field) == after.get(field) for field in ("status", "reason"))
    if (same and reason not in always) or (names is not None and reason not in names):
        return
    kind = "Warning" if reason in warns else "Normal"
    yield _event(kind, about, names[reason] if names is not None else reason, message, by, now, occasion)


def _event(kind: str, about: Obj, reason: str, message: str, by: str, now: datetime, occasion: str) -> Made:
    ref = name_of(about, reason, message, occasion)
    at = stamp(now)
    involved = {
        "apiVersion": about.get("apiVersion"),
        "kind": about.get("kind"),
        "namespace": meta.namespace(about),
        "name": meta.name(about),
        "uid": meta.uid(about),
        "resourceVersion": meta.resource_version(about) if occasion else "",
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": ref.name, "namespace": ref.namespace},
        "involvedObject": {field: value for field, value in involved.items() if value},
        "reason": reason,
        "message": message,
        "type": kind,
        "source": {"component": by},
        "reportingComponent": by,
        "reportingInstance": "",
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
    }
