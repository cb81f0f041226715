"""Events, of both groups that show them."""

from __future__ import annotations

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.parts import count, part, ruled, text
from lamina.server.fields import immutable, invalid, required

_LENGTHS = (("reportingInstance", 128), ("action", 128), ("reason", 128))


def _both(event: Obj, about: str, controller: str, message: str) -> list[Cause]:
    """Check what events of either group have, by the names each has for it."""
    namespace, theirs = text(part(event, "metadata"), "namespace"), text(part(event, about), "namespace")
    mismatch = invalid("involvedObject.namespace", theirs, "does not match event.namespace")
    said: list[Cause] = []
    if event.get("eventTime") is None:
        if namespace != theirs and not (not theirs and namespace in {"", "default"}):
            said.append(mismatch)
        return said
    if not theirs and namespace not in {"default", "kube-system"}:
        said.append(mismatch)
    reporting = text(event, controller)
    if not reporting:
        said.append(required(controller))
    said += ruled(controller, reporting, names.qualified)
    for field, most in _LENGTHS:
        value = text(event, field)
        if not value:
            said.append(required(field))
        if len(value.encode()) > most:
            said.append(invalid(field, "", f"can have at most {most} characters"))
    if len(text(event, message).encode()) > 1024:
        said.append(invalid("message", "", "can have at most 1024 characters"))
    return said


def core(event: Obj) -> list[Cause]:
    return _both(event, "involvedObject", "reportingComponent", "message")


def core_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return core(new)


def current(event: Obj) -> list[Cause]:
    """Check a new event of events.k8s.io, which must leave the fields of the older group alone."""
    said = _both(event, "regarding", "reportingController", "note") + _series(event)
    if event.get("eventTime") is None:
        said.append(required("eventTime"))
    kind = text(event, "type")
    if kind not in {"Normal", "Warning"}:
        said.append(invalid("type", "", f"has invalid value: {kind}"))
    for field, shown in (
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
    ):
        if event.get(field):
            said.append(invalid(shown, "", "needs to be unset"))
    source = part(event, "deprecatedSource")
    if text(source, "component") or text(source, "host"):
        said.append(invalid("source", "", "needs to be unset"))
    return said


def _series(event: Obj) -> list[Cause]:
    series = event.get("series")
    if series is None:
        return []
    said: list[Cause] = []
    if count(series, "count") < 2:
        said.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        said.append(required("series.lastObservedTime"))
    return said


_FIXED = (
    ("regarding", "involvedObject"), ("reason", "reason"), ("note", "message"), ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"), ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"), ("type", "type"), ("eventTime", "eventTime"), ("action", "action"),
    ("related", "related"), ("reportingController", "reportingController"), ("reportingInstance", "reportingInstance"),
)  # fmt: skip


def current_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    said = _both(new, "regarding", "reportingController", "note")
    if new.get("series") != old.get("series"):
        said += _series(new)
    for field, shown in _FIXED:
        said += immutable(shown, new.get(field), old.get(field))
    return said
