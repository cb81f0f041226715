"""Table rows of RBAC, disruption budgets, admission, priority and flow control."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lamina.objects.types import Obj
from lamina.server.kinds.builtin.columns.cells import NONE, UNSET, age, condition, name_of
from lamina.server.kinds.builtin.validate.parts import count, items, part, text
from lamina.server.kinds.columns import human_duration


def role_binding(obj: Obj, now: datetime) -> list[Any]:
    ref = part(obj, "roleRef")
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for one in items(obj, "subjects"):
        kind, name = text(one, "kind"), text(one, "name")
        shown = f"{text(one, 'namespace')}/{name}" if kind == "ServiceAccount" else name
        subjects.setdefault(kind, []).append(shown)
    return [
        name_of(obj),
        f"{text(ref, 'kind')}/{text(ref, 'name')}",
        age(obj, now),
        *(", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")),
    ]


def disruption_budget(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    minimum, maximum = (spec.get(field) for field in ("minAvailable", "maxUnavailable"))
    return [
        name_of(obj),
        "N/A" if minimum is None else str(minimum),
        "N/A" if maximum is None else str(maximum),
        count(part(obj, "status"), "disruptionsAllowed"),
        age(obj, now),
    ]


def webhooks(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), len(items(obj, "webhooks")), age(obj, now)]


def admission_policy(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    kind = spec.get("paramKind")
    shown = UNSET if kind is None else f"{text(kind, 'apiVersion')}/{text(kind, 'kind')}"
    return [name_of(obj), len(items(spec, "validations")), shown, age(obj, now)]


def admission_binding(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    ref, shown = part(spec, "paramRef"), UNSET
    if name := text(ref, "name"):
        shown = f"{text(ref, 'namespace') or '*'}/{name}"
    elif (selector := ref.get("selector")) is not None:
        shown = _go_selector(selector)
    return [name_of(obj), text(spec, "policyName"), shown, age(obj, now)]


def _go_selector(selector: Obj) -> str:
    """Return a LabelSelector as Go's generated code prints it."""
    labels = "".join(f"{key}: {value}," for key, value in sorted(part(selector, "matchLabels").items()))
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{text(one, 'key')},Operator:{text(one, 'operator')},"
        f"Values:[{' '.join(items(one, 'values'))}],}},"
        for one in items(selector, "matchExpressions")
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"
    )


def priority_class(obj: Obj, now: datetime) -> list[Any]:
    default = bool(obj.get("globalDefault"))
    return [name_of(obj), count(obj, "value"), default, age(obj, now), text(obj, "preemptionPolicy")]


def runtime_class(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), text(obj, "handler"), age(obj, now)]


def lease(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), text(part(obj, "spec"), "holderIdentity"), age(obj, now)]


def signing_request(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    kinds = {text(one, "type") for one in items(status, "conditions")}
    words = ["Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"]
    words += ["Failed"] if "Failed" in kinds else []
    words += ["Issued"] if text(status, "certificate") else []
    seconds = spec.get("expirationSeconds")
    return [
        name_of(obj),
        age(obj, now),
        text(spec, "signerName") or NONE,
        text(spec, "username"),
        NONE if seconds is None else human_duration(seconds),
        ",".join(words),
    ]


def flow_schema(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    method = spec.get("distinguisherMethod")
    dangling = condition(items(part(obj, "status"), "conditions"), "Dangling")
    return [
        name_of(obj),
        text(part(spec, "priorityLevelConfiguration"), "name"),
        count(spec, "matchingPrecedence"),
        NONE if method is None else text(method, "type"),
        age(obj, now),
        "?" if dangling is None else text(dangling, "status"),
    ]


def priority_level(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    limited = spec.get("limited")
    shares: Any = NONE if limited is None else count(limited, "nominalConcurrencyShares")
    queuing = part(part(limited or {}, "limitResponse"), "queuing")
    fields = ("queues", "handSize", "queueLengthLimit")
    queues = [count(queuing, field) if queuing else NONE for field in fields]
    return [name_of(obj), text(spec, "type"), shares, *queues, age(obj, now)]


def api_service(obj: Obj, now: datetime) -> list[Any]:
    service = part(obj, "spec").get("service")
    shown = "Local" if service is None else f"{text(service, 'namespace')}/{text(service, 'name')}"
    return [name_of(obj), shown, _availability(items(part(obj, "status"), "conditions")), age(obj, now)]


def _availability(conditions: Any) -> str:
    found = condition(conditions, "Available")
    if found is None:
        return "Unknown"
    status = text(found, "status")
    return "True" if status == "True" else f"{status} ({text(found, 'reason')})"
