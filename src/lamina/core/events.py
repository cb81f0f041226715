"""Events: one for each thing that happened, not one for each time somebody looked."""

from __future__ import annotations

from datetime import datetime

from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.times import stamp
from lamina.objects.types import Made, Obj, Ref


def name_of(about: Obj, reason: str, message: str) -> Ref:
    """
    Return where the event of that happening to that object is found.

    The same happening has the same name, so an event that is there has been
    told. What happens to a cluster-scoped object is told in `default`.
    """
    mark = digest([meta.uid(about), reason, message])[:16]
    return Ref("v1", "Event", meta.namespace(about) or "default", f"{meta.name(about)}.{mark}")


def warning(about: Obj, reason: str, message: str, *, by: str, now: datetime) -> Made:
    """Return the Event that warns about an object, in the words of the component `by`."""
    ref = name_of(about, reason, message)
    at = stamp(now)
    involved = {
        "apiVersion": about.get("apiVersion"),
        "kind": about.get("kind"),
        "namespace": meta.namespace(about),
        "name": meta.name(about),
        "uid": meta.uid(about),
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": ref.name, "namespace": ref.namespace},
        "involvedObject": {field: value for field, value in involved.items() if value},
        "reason": reason,
        "message": message,
        "type": "Warning",
        "source": {"component": by},
        "reportingComponent": by,
        "reportingInstance": "",
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
    }
