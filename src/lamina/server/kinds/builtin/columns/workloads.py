"""Table rows of workloads."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lamina.errors import BadRequest
from lamina.objects.selectors import from_object
from lamina.objects.times import moment
from lamina.objects.types import Obj
from lamina.server.kinds.builtin.columns.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    age,
    containers,
    is_deleting,
    is_true,
    labels,
    name_of,
    selector,
)
from lamina.server.kinds.builtin.validate.parts import count, items, part, text
from lamina.server.kinds.columns import human_duration, since


def deployment(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    try:
        chosen = str(from_object(spec.get("selector")))
    except BadRequest:
        chosen = "<invalid>"
    return [
        name_of(obj),
        f"{count(status, 'readyReplicas')}/{count(spec, 'replicas')}",
        count(status, "updatedReplicas"),
        count(status, "availableReplicas"),
        age(obj, now),
        *containers(part(spec, "template")),
        chosen,
    ]


def replica_set(obj: Obj, now: datetime) -> list[Any]:
    return [*_replicas(obj, now), selector(part(obj, "spec").get("selector"))]


def replication_controller(obj: Obj, now: datetime) -> list[Any]:
    return [*_replicas(obj, now), labels(part(obj, "spec").get("selector"))]


def _replicas(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        name_of(obj),
        count(spec, "replicas"),
        count(status, "replicas"),
        count(status, "readyReplicas"),
        age(obj, now),
        *containers(part(spec, "template")),
    ]


def stateful_set(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        name_of(obj),
        f"{count(status, 'readyReplicas')}/{count(spec, 'replicas')}",
        age(obj, now),
        *containers(part(spec, "template")),
    ]


def daemon_set(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    template = part(spec, "template")
    return [
        name_of(obj),
        count(status, "desiredNumberScheduled"),
        count(status, "currentNumberScheduled"),
        count(status, "numberReady"),
        count(status, "updatedNumberScheduled"),
        count(status, "numberAvailable"),
        labels(part(template, "spec").get("nodeSelector")),
        age(obj, now),
        *containers(template),
        selector(spec.get("selector")),
    ]


def job(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    return [
        name_of(obj),
        _job_status(obj),
        _completions(spec, status),
        _duration(status, now),
        age(obj, now),
        *containers(part(spec, "template")),
        selector(spec.get("selector")),
    ]


def _job_status(obj: Obj) -> str:
    conditions = items(part(obj, "status"), "conditions")
    if is_true(conditions, "Complete"):
        return "Complete"
    if is_true(conditions, "Failed"):
        return "Failed"
    if is_deleting(obj):
        return "Terminating"
    known = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((kind for kind in known if is_true(conditions, kind)), "Running")


def _completions(spec: Obj, status: Obj) -> str:
    done, wanted, parallelism = (
        count(status, "succeeded"),
        spec.get("completions"),
        count(spec, "parallelism"),
    )
    if wanted is not None:
        return f"{done}/{wanted}"
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _duration(status: Obj, now: datetime) -> str:
    started = moment(status.get("startTime"))
    if started is None:
        return ""
    return human_duration(((moment(status.get("completionTime")) or now) - started).total_seconds())


def cron_job(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    last, suspended = status.get("lastScheduleTime"), spec.get("suspend")
    made = part(part(spec, "jobTemplate"), "spec")
    return [
        name_of(obj),
        text(spec, "schedule"),
        spec.get("timeZone") or NONE,
        UNSET if suspended is None else str(suspended),
        len(items(status, "active")),
        since(last, now) if last else NONE,
        age(obj, now),
        *containers(part(made, "template")),
        selector(made.get("selector")),
    ]


def pod_template(obj: Obj, now: datetime) -> list[Any]:
    template = part(obj, "template")
    return [name_of(obj), *containers(template), labels(part(template, "metadata").get("labels"))]


def revision(obj: Obj, now: datetime) -> list[Any]:
    owners = items(part(obj, "metadata"), "ownerReferences")
    owner = next((one for one in owners if one.get("controller")), None)
    named = NONE
    if owner is not None:
        group = text(owner, "apiVersion").rpartition("/")[0]
        kind = text(owner, "kind")
        named = f"{kind}.{group}".lower() if group else kind.lower()
        named = f"{named}/{text(owner, 'name')}"
    return [name_of(obj), named, count(obj, "revision"), age(obj, now)]


def autoscaler(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    target, minimum = part(spec, "scaleTargetRef"), spec.get("minReplicas")
    return [
        name_of(obj),
        f"{text(target, 'kind')}/{text(target, 'name')}",
        _metrics(spec, status),
        UNSET if minimum is None else str(minimum),
        count(spec, "maxReplicas"),
        count(status, "currentReplicas"),
        age(obj, now),
    ]


_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metrics(spec: Obj, status: Obj) -> str:
    wanted, found = items(spec, "metrics"), items(status, "currentMetrics")
    if not wanted:
        return NONE
    shown = [_metric(one, found[index] if index < len(found) else {}) for index, one in enumerate(wanted)]
    rest = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + rest


def _metric(metric: Obj, found: Obj) -> str:
    field = _SOURCES.get(text(metric, "type"))
    if field is None:
        return "<unknown type>"
    source = part(metric, field)
    target, current = part(source, "target"), part(part(found, field), "current")
    average = target.get("averageValue")
    if field in {"external", "object"}:
        if average is not None:
            return f"{current.get('averageValue') or UNKNOWN}/{average} (avg)"
        known = found.get(field) is not None
        return f"{(current.get('value') or '<nil>') if known else UNKNOWN}/{target.get('value') or '<nil>'}"
    if field == "pods":
        return f"{current.get('averageValue') or UNKNOWN}/{average or '<nil>'}"
    name = text(source, "name")
    if average is not None:
        return f"{name}: {current.get('averageValue') or UNKNOWN}/{average}"
    share, wanted = current.get("averageUtilization"), target.get("averageUtilization")
    current_text = UNKNOWN if share is None else f"{share}%"
    return f"{name}: {current_text}/{'<auto>' if wanted is None else f'{wanted}%'}"
