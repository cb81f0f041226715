"""Events of both groups."""

from __future__ import annotations

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import immutable, invalid, required
from lamina.server.kinds.builtin.validate.parts import count, part, ruled, text

_LENGTHS = (("reportingInstance", 128), ("action", 128), ("reason", 128))


def _both(event: Obj, about: str, controller: str, message: str) -> list[Cause]:
    """Validate what events of both groups have, with the names in each."""
    namespace, theirs = text(part(event, "metadata"), "namespace"), text(part(event, about), "namespace")
    mismatch = invalid("involvedObject.namespace", theirs, "does not match event.namespace")
    causes: list[Cause] = []
    if event.get("eventTime") is None:
        if namespace != theirs and not (not theirs and namespace in {"", "default"}):
            causes.append(mismatch)
        return causes
    if not theirs and namespace not in {"default", "kube-system"}:
        causes.append(mismatch)
    reporting = text(event, controller)
    if not reporting:
        causes.append(required(controller))
    causes += ruled(controller, reporting, names.qualified)
    for field, most in _LENGTHS:
        value = text(event, field)
        if not value:
            causes.append(required(field))
        if len(value.encode()) > most:
            causes.append(invalid(field, "", f"can have at most {most} characters"))
    if len(text(event, message).encode()) > 1024:
        causes.append(invalid("message", "", "can have at most 1024 characters"))
    return causes


def core(event: Obj) -> list[Cause]:
    return _both(event, "involvedObject", "reportingComponent", "message")


def core_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return core(new)


def current(event: Obj) -> list[Cause]:
    """Validate a new event of events.k8s.io, in which the deprecated fields must be unset."""
    causes = _both(event, "regarding", "reportingController", "note") + _series(event)
    if event.get("eventTime") is None:
        causes.append(required("eventTime"))
    kind = text(event, "type")
    if kind not in {"Normal", "Warning"}:
        causes.append(invalid("type", "", f"has invalid value: {kind}"))
    for field, shown in (
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
    ):
        if event.get(field):
            causes.append(invalid(shown, "", "needs to be unset"))
    source = part(event, "deprecatedSource")
    if text(source, "component") or text(source, "host"):
        causes.append(invalid("source", "", "needs to be unset"))
    return causes


def _series(event: Obj) -> list[Cause]:
    series = event.get("series")
    if series is None:
        return []
    causes: list[Cause] = []
    if count(series, "count") < 2:
        causes.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        causes.append(required("series.lastObservedTime"))
    return causes


_FIXED = (
    ("regarding", "involvedObject"), ("reason", "reason"), ("note", "message"), ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"), ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"), ("type", "type"), ("eventTime", "eventTime"), ("action", "action"),
    ("related", "related"), ("reportingController", "reportingController"), ("reportingInstance", "reportingInstance"),
)  # fmt: skip


def current_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    causes = _both(new, "regarding", "reportingController", "note")
    if new.get("series") != old.get("series"):
        causes += _series(new)
    for field, shown in _FIXED:
        causes += immutable(shown, new.get(field), old.get(field))
    return causes
