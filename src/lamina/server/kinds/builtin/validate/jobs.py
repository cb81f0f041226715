"""Jobs."""

from __future__ import annotations

from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.go_quote import quoted
from lamina.objects.index_set import checked_count
from lamina.objects.types import Obj
from lamina.server.field_errors import (
    IMMUTABLE,
    duplicate,
    immutable,
    invalid,
    is_same,
    not_negative,
    not_supported,
    required,
    too_long,
    too_many,
)
from lamina.server.kinds.builtin.validate.job_status import job_status
from lamina.server.kinds.builtin.validate.labels import compiled, label_selector
from lamina.server.kinds.builtin.validate.parts import (
    count,
    domain_path,
    in_order,
    items,
    omitted,
    part,
    ruled,
    supported,
    text,
)
from lamina.server.kinds.builtin.validate.pods import template

_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
)  # fmt: skip
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_MANY = 100_000
_FEWER = 10_000


def job(obj: Obj) -> list[Cause]:
    causes = _generated_selector(obj) + _with_selector(part(obj, "spec"), "spec")
    spec, name = part(obj, "spec"), text(part(obj, "metadata"), "name")
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions:
        longest = f"{name}-{completions - 1}"
        if completions > 0 and names.label(longest):
            rule = f"will not able to create pod with invalid DNS label: {longest}"
            causes.append(invalid("metadata.name", name, rule))
    return causes


def _generated_selector(obj: Obj) -> list[Cause]:
    spec, meta = part(obj, "spec"), part(obj, "metadata")
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    causes: list[Cause] = []
    uid, name = text(meta, "uid"), text(meta, "name")
    if not uid:
        causes.append(required("metadata.uid"))
    expected = {
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
    }
    labels = part(part(part(spec, "template"), "metadata"), "labels")
    for key, value in expected.items():
        where = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            causes.append(required(where, f"must be '{value}'"))
        elif labels[key] != value:
            causes.append(invalid(where, in_order(labels), f"must be '{value}'"))
    ready = compiled(selector)
    if ready is not None and not ready.matches(expected):
        causes.append(invalid("spec.selector", dict(selector), "`selector` not auto-generated"))
    return causes


def _with_selector(spec: Obj, path: str) -> list[Cause]:
    causes = job_spec(spec, path)
    selector = spec.get("selector")
    causes += (
        [required(f"{path}.selector")] if selector is None else label_selector(selector, f"{path}.selector")
    )
    ready = compiled(selector)
    labels = part(part(spec, "template"), "metadata").get("labels")
    if ready is not None and not ready.matches(labels):
        rule = "`selector` does not match template `labels`"
        causes.append(invalid(f"{path}.template.metadata.labels", in_order(labels), rule))
    return causes


def job_spec(spec: Obj, path: str) -> list[Cause]:
    """Validate a Job's spec without its selector, which a job template does not have."""
    causes: list[Cause] = []
    for field in _COUNTS:
        causes += not_negative(f"{path}.{field}", spec.get(field))
    failures, per_index = spec.get("maxFailedIndexes"), spec.get("backoffLimitPerIndex")
    if failures is not None:
        causes += not_negative(f"{path}.maxFailedIndexes", failures)
        if per_index is None:
            causes.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if (manager := spec.get("managedBy")) is not None:
        causes += domain_path(f"{path}.managedBy", manager)
        if len(manager.encode()) > 63:
            causes.append(too_long(f"{path}.managedBy", 63))
    mode = spec.get("completionMode")
    causes += supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        causes += _indexed(spec, path)
    elif mode in {None, "NonIndexed"}:
        causes += (
            invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(field) is not None
        )
    if (policy := spec.get("podFailurePolicy")) is not None:
        causes += _failure_policy(policy, spec, f"{path}.podFailurePolicy")
    if (policy := spec.get("successPolicy")) is not None:
        if mode != "Indexed":
            rule = "requires indexed completion mode"
            causes.append(invalid(f"{path}.successPolicy", _success_shown(policy), rule))
        else:
            causes += _success_policy(policy, spec, f"{path}.successPolicy")
    replaced = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    causes += supported(f"{path}.podReplacementPolicy", spec.get("podReplacementPolicy"), replaced)
    causes += template(part(spec, "template"), f"{path}.template")
    return causes + _restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _restart_policy(spec: Obj, path: str) -> list[Cause]:
    policy = text(part(part(spec, "template"), "spec"), "restartPolicy")
    if policy in {"", "Always"}:
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in {"OnFailure", "Never"}:
        return [not_supported(path, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _indexed(spec: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    completions, parallelism = spec.get("completions"), count(spec, "parallelism")
    failures, per_index = spec.get("maxFailedIndexes"), spec.get("backoffLimitPerIndex")
    if completions is None:
        causes.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism > _MANY:
        rule = f"must be less than or equal to {_MANY} when completion mode is Indexed"
        causes.append(invalid(f"{path}.parallelism", parallelism, rule))
    if failures is not None:
        if completions is not None and failures > completions:
            rule = "must be less than or equal to completions"
            causes.append(invalid(f"{path}.maxFailedIndexes", failures, rule))
        if failures > _MANY:
            rule = f"must be less than or equal to {_MANY}"
            causes.append(invalid(f"{path}.maxFailedIndexes", failures, rule))
    if (completions or 0) > _MANY and per_index is not None:
        if failures is None:
            rule = f"must be specified when completions is above {_MANY}"
            causes.append(required(f"{path}.maxFailedIndexes", rule))
        rest = f"when completions are above {_MANY} and used with backoff limit per index"
        for field, value in (("parallelism", parallelism), ("maxFailedIndexes", failures or 0)):
            if value > _FEWER:
                causes.append(
                    invalid(f"{path}.{field}", value, f"must be less than or equal to {_FEWER} {rest}")
                )
    return causes


def _listed(values: tuple[str, ...]) -> str:
    return f"valid values: [{' '.join(map(quoted, values))}]"


def _failure_policy(policy: Obj, spec: Obj, path: str) -> list[Cause]:
    rules = items(policy, "rules")
    causes = [too_many(f"{path}.rules", len(rules), 20)] if len(rules) > 20 else []
    pod = part(part(spec, "template"), "spec")
    known = {text(one, "name") for field in ("containers", "initContainers") for one in items(pod, field)}
    for index, rule in enumerate(rules):
        item_path = f"{path}.rules[{index}]"
        action, codes, conditions = (
            text(rule, "action"),
            rule.get("onExitCodes"),
            items(rule, "onPodConditions"),
        )
        if not action:
            causes.append(required(f"{item_path}.action", _listed(_ACTIONS)))
        elif action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                message = "requires the backoffLimitPerIndex to be set"
                causes.append(invalid(f"{item_path}.action", action, message))
        else:
            causes += supported(f"{item_path}.action", action, _ACTIONS)
        if codes is not None:
            causes += _exit_codes(codes, known, f"{item_path}.onExitCodes")
        causes += _pod_conditions(conditions, f"{item_path}.onPodConditions")
        if codes is not None and conditions:
            causes.append(
                omitted(item_path, "specifying both OnExitCodes and OnPodConditions is not supported")
            )
        if codes is None and not conditions:
            causes.append(omitted(item_path, "specifying one of OnExitCodes and OnPodConditions is required"))
    return causes


def _exit_codes(codes: Obj, known: set[str], path: str) -> list[Cause]:
    causes: list[Cause] = []
    operator, container, values = text(codes, "operator"), codes.get("containerName"), items(codes, "values")
    if not operator:
        causes.append(required(f"{path}.operator", _listed(("In", "NotIn"))))
    else:
        causes += supported(f"{path}.operator", operator, ("In", "NotIn"))
    if container is not None and container not in known:
        rule = "must be one of the container or initContainer names in the pod template"
        causes.append(invalid(f"{path}.containerName", container, rule))
    if not values:
        causes.append(invalid(f"{path}.values", list(values), "at least one value is required"))
    elif len(values) > 255:
        causes.append(too_many(f"{path}.values", len(values), 255))
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            causes.append(invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in values[:index]:
            causes.append(duplicate(f"{path}.values[{index}]", value))
    if list(values) != sorted(values):
        causes.append(invalid(f"{path}.values", values, "must be ordered"))
    return causes


def _pod_conditions(patterns: Any, path: str) -> list[Cause]:
    statuses = ("False", "True", "Unknown")
    causes = [too_many(path, len(patterns), 20)] if len(patterns) > 20 else []
    for index, pattern in enumerate(patterns):
        item_path = f"{path}[{index}]"
        causes += ruled(f"{item_path}.type", text(pattern, "type"), names.qualified)
        status = text(pattern, "status")
        if not status:
            causes.append(required(f"{item_path}.status", _listed(statuses)))
        else:
            causes += supported(f"{item_path}.status", status, statuses)
    return causes


def _success_shown(policy: Obj) -> dict[str, Any]:
    rules = [
        {"SucceededIndexes": one.get("succeededIndexes"), "SucceededCount": one.get("succeededCount")}
        for one in items(policy, "rules")
    ]
    return {"Rules": rules}


def _success_policy(policy: Obj, spec: Obj, path: str) -> list[Cause]:
    rules, completions = items(policy, "rules"), count(spec, "completions")
    causes: list[Cause] = []
    if not rules:
        message = "at least one rules must be specified when the successPolicy is specified"
        causes.append(required(f"{path}.rules", message))
    if len(rules) > 20:
        causes.append(too_many(f"{path}.rules", len(rules), 20))
    for index, rule in enumerate(rules):
        item_path = f"{path}.rules[{index}]"
        minimum, which = rule.get("succeededCount"), rule.get("succeededIndexes")
        if minimum is None and which is None:
            message = "at least one of succeededCount or succeededIndexes must be specified"
            causes.append(required(item_path, message))
        total = 0
        if which is not None:
            if len(which) > 64 * 1024:
                causes.append(too_long(f"{item_path}.succeededIndexes", 64 * 1024))
            total, problem = checked_count(which, completions)
            if problem:
                detail = f"error parsing succeededIndexes: {problem}"
                causes.append(invalid(f"{item_path}.succeededIndexes", which, detail))
        if minimum is not None:
            causes += not_negative(f"{item_path}.succeededCount", minimum)
            for maximum, what in (
                (completions, "the number of specified completions"),
                (total, "the number of indexes in the specified succeededIndexes field"),
            ):
                if minimum > maximum and (what.endswith("completions") or which is not None):
                    detail = f"must be less than or equal to {maximum} ({what})"
                    causes.append(invalid(f"{item_path}.succeededCount", minimum, detail))
    return causes


def job_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource == "status":
        return job_status(new, old)
    spec, before = part(new, "spec"), part(old, "spec")
    causes = job(new)
    completions, was = spec.get("completions"), before.get("completions")
    if spec.get("completionMode") != "Indexed":
        causes += immutable("spec.completions", completions, was)
    elif completions not in {was, None} and completions != spec.get("parallelism"):
        rule = "can only be modified in tandem with spec.parallelism"
        causes.append(invalid("spec.completions", completions, rule))
    causes += immutable("spec.selector", spec.get("selector"), before.get("selector"))
    suspended = before.get("suspend") and part(old, "status").get("startTime") is None
    found, had = part(spec, "template"), part(before, "template")
    if not is_same(found, _moved(found, had) if suspended else had):
        causes.append(invalid("spec.template", dict(found), IMMUTABLE))
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        causes += immutable(f"spec.{field}", spec.get(field), before.get(field))
    return causes


def _moved(found: Obj, had: Obj) -> dict[str, Any]:
    """Return the old template with the new scheduling directives, which a suspended Job may change."""
    spec: dict[str, Any] = dict(part(had, "spec"))
    wanted = part(found, "spec")
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        spec[field] = wanted.get(field)
    affinity = dict(part(spec, "affinity")) | {"nodeAffinity": part(wanted, "affinity").get("nodeAffinity")}
    spec["affinity"] = affinity
    meta = dict(part(had, "metadata"))
    for field in ("annotations", "labels"):
        meta[field] = part(found, "metadata").get(field)
    return {**had, "metadata": meta, "spec": spec}
