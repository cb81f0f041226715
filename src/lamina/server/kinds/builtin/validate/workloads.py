"""Workloads that keep a number of pods: Deployments, ReplicaSets, StatefulSets, DaemonSets and the like."""

from __future__ import annotations

from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.selectors import LabelSelector, from_labels
from lamina.objects.types import Obj
from lamina.server.field_errors import (
    forbidden,
    immutable,
    invalid,
    is_same,
    not_negative,
    not_supported,
    required,
)
from lamina.server.kinds.builtin.validate.labels import compiled, is_empty, label_selector
from lamina.server.kinds.builtin.validate.parts import (
    at_most_all,
    count,
    in_order,
    int_or_percent,
    int_or_percentage,
    items,
    part,
    ruled,
    supported,
    text,
)
from lamina.server.kinds.builtin.validate.pods import template
from lamina.server.kinds.builtin.validate.storage_claims import claim_spec

_MISMATCH = "`selector` does not match template `labels`"


def _template(found: Obj, selector: LabelSelector, path: str, kind: str) -> list[Cause]:
    """Validate a template of long-running pods, and that the selector matches it."""
    causes: list[Cause] = []
    if not selector.is_everything:
        causes += _matches(found, selector, path)
    causes += template(found, path)
    return causes + _long_running(found, path, kind)


def _matches(found: Obj, selector: LabelSelector, path: str) -> list[Cause]:
    labels = part(found, "metadata").get("labels")
    if selector.matches(labels):
        return []
    return [invalid(f"{path}.metadata.labels", in_order(labels), _MISMATCH)]


def _long_running(found: Obj, path: str, kind: str) -> list[Cause]:
    spec = part(found, "spec")
    causes: list[Cause] = []
    if text(spec, "restartPolicy") != "Always":
        where = f"{path}.spec.restartPolicy"
        causes.append(not_supported(where, text(spec, "restartPolicy"), ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        rule = f"activeDeadlineSeconds in {kind} is not Supported"
        causes.append(forbidden(f"{path}.spec.activeDeadlineSeconds", rule))
    return causes


def _selector(spec: Obj, kind: str) -> list[Cause]:
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    causes = label_selector(selector, "spec.selector")
    if is_empty(selector):
        causes.append(invalid("spec.selector", dict(selector), f"empty selector is invalid for {kind}"))
    return causes


def deployment(obj: Obj) -> list[Cause]:
    spec = part(obj, "spec")
    causes = not_negative("spec.replicas", spec.get("replicas"))
    causes += _selector(spec, "deployment")
    selector = compiled(spec.get("selector"))
    if selector is None:
        causes.append(invalid("spec.selector", dict(spec["selector"]), "invalid label selector"))
    else:
        causes += _template(part(spec, "template"), selector, "spec.template", "ReplicaSet")
    causes += _strategy(part(spec, "strategy"), "spec.strategy")
    causes += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    causes += not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        causes += not_negative("spec.progressDeadlineSeconds", deadline)
        if deadline <= count(spec, "minReadySeconds"):
            rule = "must be greater than minReadySeconds"
            causes.append(invalid("spec.progressDeadlineSeconds", deadline, rule))
    return causes


def _strategy(strategy: Obj, path: str) -> list[Cause]:
    kind, rolling = text(strategy, "type"), strategy.get("rollingUpdate")
    item_path = f"{path}.rollingUpdate"
    match kind:
        case "Recreate":
            rule = "may not be specified when strategy `type` is 'Recreate'"
            return [forbidden(item_path, rule)] if rolling is not None else []
        case "RollingUpdate":
            if rolling is None:
                return [required(item_path, "this should be defaulted and never be nil")]
            fewer, more = rolling.get("maxUnavailable"), rolling.get("maxSurge")
            causes = int_or_percent(f"{item_path}.maxUnavailable", fewer)
            causes += int_or_percent(f"{item_path}.maxSurge", more)
            if int_or_percentage(fewer) == 0 and int_or_percentage(more) == 0:
                rule = "may not be 0 when `maxSurge` is 0"
                causes.append(invalid(f"{item_path}.maxUnavailable", fewer or 0, rule))
            return causes + at_most_all(f"{item_path}.maxUnavailable", fewer)
        case _:
            return [not_supported(path, _strategy_shown(strategy), ("Recreate", "RollingUpdate"))]


def _strategy_shown(strategy: Obj) -> dict[str, Any]:
    rolling = strategy.get("rollingUpdate")
    shown: Any = None
    if rolling is not None:
        shown = {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}
    return {"Type": text(strategy, "type"), "RollingUpdate": shown}


def deployment_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource == "status":
        return _status(new, old, "updatedReplicas", "readyReplicas", "availableReplicas")
    return deployment(new) + _same_selector(new, old)


def _same_selector(new: Obj, old: Obj) -> list[Cause]:
    selector, was = part(new, "spec").get("selector"), part(old, "spec").get("selector")
    return immutable("spec.selector", selector, was)


def replica_set(obj: Obj) -> list[Cause]:
    spec = part(obj, "spec")
    causes = not_negative("spec.replicas", spec.get("replicas"))
    causes += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    causes += _selector(spec, "deployment")
    selector = compiled(spec.get("selector"))
    if selector is None:
        causes.append(invalid("spec.selector", dict(spec["selector"]), "invalid label selector"))
        return causes
    return causes + _template(part(spec, "template"), selector, "spec.template", "ReplicaSet")


def replica_set_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource == "status":
        return _status(new, old, "fullyLabeledReplicas", "readyReplicas", "availableReplicas", counts=False)
    return replica_set(new) + _same_selector(new, old)


def controller(obj: Obj) -> list[Cause]:
    """Validate a ReplicationController."""
    spec = part(obj, "spec")
    causes = not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    selector = spec.get("selector")
    if not selector:
        causes.append(required("spec.selector"))
    replicas = spec.get("replicas")
    causes += [required("spec.replicas")] if replicas is None else not_negative("spec.replicas", replicas)
    found = spec.get("template")
    if found is None:
        return [*causes, required("spec.template")]
    return causes + _template(found, from_labels(selector), "spec.template", "ReplicationController")


def controller_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource == "status":
        return _status(new, old, "fullyLabeledReplicas", "readyReplicas", "availableReplicas", counts=False)
    return controller(new)


def stateful_set(obj: Obj) -> list[Cause]:
    return _stateful(part(obj, "spec"), new=True)


def _stateful(spec: Obj, *, new: bool) -> list[Cause]:
    causes: list[Cause] = []
    policy = text(spec, "podManagementPolicy")
    if not policy:
        causes.append(required("spec.podManagementPolicy"))
    elif policy not in {"OrderedReady", "Parallel"}:
        rule = "must be 'OrderedReady' or 'Parallel'"
        causes.append(invalid("spec.podManagementPolicy", policy, rule))
    causes += _stateful_strategy(part(spec, "updateStrategy"), "spec.updateStrategy")
    retention = spec.get("persistentVolumeClaimRetentionPolicy")
    if retention is not None:
        for field in ("whenDeleted", "whenScaled"):
            where = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            causes += supported(where, text(retention, field), ("Retain", "Delete"))
    claims = items(spec, "volumeClaimTemplates")
    if new:
        for index, claim in enumerate(claims):
            causes += claim_spec(part(claim, "spec"), f"spec.volumeClaimTemplates[{index}].spec")
    causes += not_negative("spec.replicas", spec.get("replicas"))
    causes += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    causes += not_negative("spec.ordinals.start", part(spec, "ordinals").get("start"))
    if new and (service := text(spec, "serviceName")):
        causes += ruled("spec.serviceName", service, names.label)
    causes += _selector(spec, "statefulset")
    selector = compiled(spec.get("selector"))
    if selector is None:
        causes.append(invalid("spec.selector", dict(spec["selector"])))
    else:
        found = _with_claims(part(spec, "template"), [text(part(one, "metadata"), "name") for one in claims])
        causes += [] if selector.is_everything else _matches(found, selector, "spec.template")
        causes += template(found, "spec.template")
    return causes + _long_running(part(spec, "template"), "spec.template", "StatefulSet")


def _with_claims(found: Obj, claims: list[str]) -> Obj:
    """Return the template as the controller completes it: with the volumes of its claims."""
    spec = {k: v for k, v in part(found, "spec").items() if k not in {"subdomain", "hostname"}}
    if claims:
        own = [volume for volume in items(spec, "volumes") if text(volume, "name") not in claims]
        added = [
            {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(claims)
        ]
        spec["volumes"] = [*added, *own]
    return {**found, "spec": spec}


def _stateful_strategy(strategy: Obj, path: str) -> list[Cause]:
    kind, rolling = text(strategy, "type"), strategy.get("rollingUpdate")
    item_path = f"{path}.rollingUpdate"
    match kind:
        case "":
            return [required(path)]
        case "OnDelete":
            if rolling is None:
                return []
            rule = "only allowed for updateStrategy 'RollingUpdate'"
            return [invalid(item_path, _partition_shown(rolling), rule)]
        case "RollingUpdate":
            if rolling is None:
                return []
            causes = not_negative(f"{item_path}.partition", rolling.get("partition"))
            fewer = rolling.get("maxUnavailable")
            if fewer is not None:
                where = f"{item_path}.maxUnavailable"
                causes += int_or_percent(where, fewer)
                if int_or_percentage(fewer) == 0:
                    causes.append(invalid(where, fewer, "cannot be 0"))
                causes += at_most_all(where, fewer)
            return causes
        case _:
            shown = {"Type": kind, "RollingUpdate": None if rolling is None else _partition_shown(rolling)}
            return [invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")]


def _partition_shown(rolling: Obj) -> dict[str, Any]:
    return {"Partition": count(rolling, "partition"), "MaxUnavailable": rolling.get("maxUnavailable")}


_STATEFUL_MAY_CHANGE = frozenset(
    {
        "replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    }
)  # fmt: skip


def stateful_set_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource == "status":
        return _status(
            new,
            old,
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            of="status.readyReplicas",
        )
    causes = _stateful(part(new, "spec"), new=False)
    spec, before = (
        {key: value for key, value in part(one, "spec").items() if key not in _STATEFUL_MAY_CHANGE}
        for one in (new, old)
    )
    if not is_same(_without_statuses(spec), _without_statuses(before)):
        rule = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
            "'minReadySeconds' are forbidden"
        )
        causes.append(forbidden("spec", rule))
    return causes


def _without_statuses(spec: dict[str, Any]) -> dict[str, Any]:
    # The status of a claim template comes from defaulting.
    claims = [{k: v for k, v in one.items() if k != "status"} for one in items(spec, "volumeClaimTemplates")]
    return {**spec, "volumeClaimTemplates": claims}


def daemon_set(obj: Obj) -> list[Cause]:
    spec = part(obj, "spec")
    selector = spec.get("selector")
    causes = label_selector(selector, "spec.selector")
    ready = compiled(selector)
    found = part(spec, "template")
    if ready is not None:
        causes += _matches(found, ready, "spec.template")
    if selector is not None and is_empty(selector):
        causes.append(invalid("spec.selector", dict(selector), "empty selector is invalid for daemonset"))
    causes += template(found, "spec.template") + _long_running(found, "spec.template", "DaemonSet")
    causes += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    causes += _daemon_strategy(part(spec, "updateStrategy"), "spec.updateStrategy")
    return causes + not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))


def _daemon_strategy(strategy: Obj, path: str) -> list[Cause]:
    kind, rolling = text(strategy, "type"), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        return [not_supported(path, _strategy_shown(strategy), ("RollingUpdate", "OnDelete"))]
    item_path = f"{path}.rollingUpdate"
    if rolling is None:
        return [required(item_path)]
    fewer, more = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    causes = int_or_percent(f"{item_path}.maxUnavailable", fewer) + int_or_percent(
        f"{item_path}.maxSurge", more
    )
    causes += at_most_all(f"{item_path}.maxUnavailable", fewer) + at_most_all(f"{item_path}.maxSurge", more)
    if int_or_percentage(fewer) and int_or_percentage(more):
        causes.append(
            invalid(f"{item_path}.maxSurge", more, "may not be set when maxUnavailable is non-zero")
        )
    elif not int_or_percentage(fewer) and not int_or_percentage(more):
        causes.append(required(f"{item_path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return causes


def daemon_set_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource != "status":
        return _same_selector(new, old) + daemon_set(new)
    fields = (
        "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
        "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
    )  # fmt: skip
    status = part(new, "status")
    causes: list[Cause] = []
    for field in fields:
        causes += not_negative(f"status.{field}", status.get(field))
    return causes + _collisions(status, part(old, "status"))


def _status(new: Obj, old: Obj, *below: str, of: str = "readyReplicas", counts: bool = True) -> list[Cause]:
    """Validate replica counts: not negative, and those in `below` not greater than the total."""
    status = part(new, "status")
    causes: list[Cause] = []
    for field, value in status.items():
        if isinstance(value, int):
            causes += not_negative(f"status.{field}", value)
    for field in below:
        if count(status, field) > count(status, "replicas"):
            rule = "cannot be greater than status.replicas"
            causes.append(invalid(f"status.{field}", count(status, field), rule))
    if count(status, "availableReplicas") > count(status, "readyReplicas"):
        causes.append(
            invalid(
                "status.availableReplicas", count(status, "availableReplicas"), f"cannot be greater than {of}"
            )
        )
    return causes + _collisions(status, part(old, "status")) if counts else causes


def _collisions(status: Obj, before: Obj) -> list[Cause]:
    now, was = status.get("collisionCount"), before.get("collisionCount")
    if was is not None and (now is None or now < was):
        return [invalid("status.collisionCount", now or 0, "cannot be decremented")]
    return []


def revision(obj: Obj) -> list[Cause]:
    """Validate a ControllerRevision."""
    causes = not_negative("revision", obj.get("revision"))
    data = obj.get("data")
    if data is None:
        causes.append(required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        causes.append(required("data", "data must be a valid JSON object"))
    return causes


def revision_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    causes = not_negative("revision", new.get("revision"))
    if new.get("data") != old.get("data"):
        causes.append(invalid("data", new.get("data"), "field is immutable"))
    return causes


def pod_template(obj: Obj) -> list[Cause]:
    return template(part(obj, "template"), "template")


def pod_template_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return pod_template(new)
