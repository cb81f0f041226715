"""Events: one for each thing that happened, not one for each time somebody looked."""

from __future__ import annotations

from datetime import datetime

from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.times import stamp
from lamina.objects.types import Made, Obj, Ref


def name_of(about: Obj, reason: str, message: str, occasion: str = "") -> Ref:
    """
    Return where the event of that happening to that object is found.

    The same happening has the same name, so an event that is there has been
    told. What may happen again in the same words says on which occasion it did:
    the version it was decided on, or a count. What happens to a cluster-scoped
    object is told in `default`.
    """
    told = [meta.uid(about), reason, message]
    mark = digest([*told, occasion] if occasion else told)[:16]
    return Ref("v1", "Event", meta.namespace(about) or "default", f"{meta.name(about)}.{mark}")


def normal(about: Obj, reason: str, message: str, *, by: str, now: datetime, occasion: str = "") -> Made:
    """Return the Event that tells what happened to an object, in the words of the component `by`."""
    return _event("Normal", about, reason, message, by, now, occasion)


def warning(about: Obj, reason: str, message: str, *, by: str, now: datetime, occasion: str = "") -> Made:
    """Return the Event that warns about an object, in the words of the component `by`."""
    return _event("Warning", about, reason, message, by, now, occasion)


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
