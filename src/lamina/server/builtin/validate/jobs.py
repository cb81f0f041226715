"""Jobs."""

from __future__ import annotations

from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.printing import quoted
from lamina.objects.types import Obj
from lamina.server.builtin.validate.indexes import indexed
from lamina.server.builtin.validate.job_status import job_status
from lamina.server.builtin.validate.labels import compiled, label_selector
from lamina.server.builtin.validate.parts import (
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
from lamina.server.builtin.validate.pods import template
from lamina.server.fields import (
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

_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
)  # fmt: skip
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_MANY = 100_000
_FEWER = 10_000


def job(obj: Obj) -> list[Cause]:
    said = _generated_selector(obj) + _with_selector(part(obj, "spec"), "spec")
    spec, name = part(obj, "spec"), text(part(obj, "metadata"), "name")
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions:
        longest = f"{name}-{completions - 1}"
        if completions > 0 and names.label(longest):
            rule = f"will not able to create pod with invalid DNS label: {longest}"
            said.append(invalid("metadata.name", name, rule))
    return said


def _generated_selector(obj: Obj) -> list[Cause]:
    spec, meta = part(obj, "spec"), part(obj, "metadata")
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    said: list[Cause] = []
    uid, name = text(meta, "uid"), text(meta, "name")
    if not uid:
        said.append(required("metadata.uid"))
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
            said.append(required(where, f"must be '{value}'"))
        elif labels[key] != value:
            said.append(invalid(where, in_order(labels), f"must be '{value}'"))
    ready = compiled(selector)
    if ready is not None and not ready.matches(expected):
        said.append(invalid("spec.selector", dict(selector), "`selector` not auto-generated"))
    return said


def _with_selector(spec: Obj, path: str) -> list[Cause]:
    said = job_spec(spec, path)
    selector = spec.get("selector")
    said += (
        [required(f"{path}.selector")] if selector is None else label_selector(selector, f"{path}.selector")
    )
    ready = compiled(selector)
    labels = part(part(spec, "template"), "metadata").get("labels")
    if ready is not None and not ready.matches(labels):
        rule = "`selector` does not match template `labels`"
        said.append(invalid(f"{path}.template.metadata.labels", in_order(labels), rule))
    return said


def job_spec(spec: Obj, path: str) -> list[Cause]:
    """Check a Job's spec but for its selector, which a template of Jobs has none of."""
    said: list[Cause] = []
    for field in _COUNTS:
        said += not_negative(f"{path}.{field}", spec.get(field))
    failures, per_index = spec.get("maxFailedIndexes"), spec.get("backoffLimitPerIndex")
    if failures is not None:
        said += not_negative(f"{path}.maxFailedIndexes", failures)
        if per_index is None:
            said.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if (manager := spec.get("managedBy")) is not None:
        said += domain_path(f"{path}.managedBy", manager)
        if len(manager.encode()) > 63:
            said.append(too_long(f"{path}.managedBy", 63))
    mode = spec.get("completionMode")
    said += supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        said += _indexed(spec, path)
    elif mode in {None, "NonIndexed"}:
        said += (
            invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
            for field in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(field) is not None
        )
    if (policy := spec.get("podFailurePolicy")) is not None:
        said += _failure_policy(policy, spec, f"{path}.podFailurePolicy")
    if (policy := spec.get("successPolicy")) is not None:
        if mode != "Indexed":
            rule = "requires indexed completion mode"
            said.append(invalid(f"{path}.successPolicy", _success_shown(policy), rule))
        else:
            said += _success_policy(policy, spec, f"{path}.successPolicy")
    replaced = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    said += supported(f"{path}.podReplacementPolicy", spec.get("podReplacementPolicy"), replaced)
    said += template(part(spec, "template"), f"{path}.template")
    return said + _restart_policy(spec, f"{path}.template.spec.restartPolicy")


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
    said: list[Cause] = []
    completions, parallelism = spec.get("completions"), count(spec, "parallelism")
    failures, per_index = spec.get("maxFailedIndexes"), spec.get("backoffLimitPerIndex")
    if completions is None:
        said.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism > _MANY:
        rule = f"must be less than or equal to {_MANY} when completion mode is Indexed"
        said.append(invalid(f"{path}.parallelism", parallelism, rule))
    if failures is not None:
        if completions is not None and failures > completions:
            rule = "must be less than or equal to completions"
            said.append(invalid(f"{path}.maxFailedIndexes", failures, rule))
        if failures > _MANY:
            rule = f"must be less than or equal to {_MANY}"
            said.append(invalid(f"{path}.maxFailedIndexes", failures, rule))
    if (completions or 0) > _MANY and per_index is not None:
        if failures is None:
            rule = f"must be specified when completions is above {_MANY}"
            said.append(required(f"{path}.maxFailedIndexes", rule))
        rest = f"when completions are above {_MANY} and used with backoff limit per index"
        for field, value in (("parallelism", parallelism), ("maxFailedIndexes", failures or 0)):
            if value > _FEWER:
                said.append(
                    invalid(f"{path}.{field}", value, f"must be less than or equal to {_FEWER} {rest}")
                )
    return said


def _listed(values: tuple[str, ...]) -> str:
    return f"valid values: [{' '.join(map(quoted, values))}]"


def _failure_policy(policy: Obj, spec: Obj, path: str) -> list[Cause]:
    rules = items(policy, "rules")
    said = [too_many(f"{path}.rules", len(rules), 20)] if len(rules) > 20 else []
    pod = part(part(spec, "template"), "spec")
    known = {text(one, "name") for field in ("containers", "initContainers") for one in items(pod, field)}
    for index, rule in enumerate(rules):
        here = f"{path}.rules[{index}]"
        action, codes, conditions = (
            text(rule, "action"),
            rule.get("onExitCodes"),
            items(rule, "onPodConditions"),
        )
        if not action:
            said.append(required(f"{here}.action", _listed(_ACTIONS)))
        elif action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                why = "requires the backoffLimitPerIndex to be set"
                said.append(invalid(f"{here}.action", action, why))
        else:
            said += supported(f"{here}.action", action, _ACTIONS)
        if codes is not None:
            said += _exit_codes(codes, known, f"{here}.onExitCodes")
        said += _pod_conditions(conditions, f"{here}.onPodConditions")
        if codes is not None and conditions:
            said.append(omitted(here, "specifying both OnExitCodes and OnPodConditions is not supported"))
        if codes is None and not conditions:
            said.append(omitted(here, "specifying one of OnExitCodes and OnPodConditions is required"))
    return said


def _exit_codes(codes: Obj, known: set[str], path: str) -> list[Cause]:
    said: list[Cause] = []
    operator, container, values = text(codes, "operator"), codes.get("containerName"), items(codes, "values")
    if not operator:
        said.append(required(f"{path}.operator", _listed(("In", "NotIn"))))
    else:
        said += supported(f"{path}.operator", operator, ("In", "NotIn"))
    if container is not None and container not in known:
        rule = "must be one of the container or initContainer names in the pod template"
        said.append(invalid(f"{path}.containerName", container, rule))
    if not values:
        said.append(invalid(f"{path}.values", list(values), "at least one value is required"))
    elif len(values) > 255:
        said.append(too_many(f"{path}.values", len(values), 255))
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            said.append(invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in values[:index]:
            said.append(duplicate(f"{path}.values[{index}]", value))
    if list(values) != sorted(values):
        said.append(invalid(f"{path}.values", values, "must be ordered"))
    return said


def _pod_conditions(patterns: Any, path: str) -> list[Cause]:
    statuses = ("False", "True", "Unknown")
    said = [too_many(path, len(patterns), 20)] if len(patterns) > 20 else []
    for index, pattern in enumerate(patterns):
        here = f"{path}[{index}]"
        said += ruled(f"{here}.type", text(pattern, "type"), names.qualified)
        status = text(pattern, "status")
        if not status:
            said.append(required(f"{here}.status", _listed(statuses)))
        else:
            said += supported(f"{here}.status", status, statuses)
    return said


def _success_shown(policy: Obj) -> dict[str, Any]:
    rules = [
        {"SucceededIndexes": one.get("succeededIndexes"), "SucceededCount": one.get("succeededCount")}
        for one in items(policy, "rules")
    ]
    return {"Rules": rules}


def _success_policy(policy: Obj, spec: Obj, path: str) -> list[Cause]:
    rules, completions = items(policy, "rules"), count(spec, "completions")
    said: list[Cause] = []
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        said.append(required(f"{path}.rules", why))
    if len(rules) > 20:
        said.append(too_many(f"{path}.rules", len(rules), 20))
    for index, rule in enumerate(rules):
        here = f"{path}.rules[{index}]"
        least, which = rule.get("succeededCount"), rule.get("succeededIndexes")
        if least is None and which is None:
            why = "at least one of succeededCount or succeededIndexes must be specified"
            said.append(required(here, why))
        total = 0
        if which is not None:
            if len(which) > 64 * 1024:
                said.append(too_long(f"{here}.succeededIndexes", 64 * 1024))
            total, wrong = indexed(which, completions)
            if wrong:
                told = f"error parsing succeededIndexes: {wrong}"
                said.append(invalid(f"{here}.succeededIndexes", which, told))
        if least is not None:
            said += not_negative(f"{here}.succeededCount", least)
            for most, what in (
                (completions, "the number of specified completions"),
                (total, "the number of indexes in the specified succeededIndexes field"),
            ):
                if least > most and (what.endswith("completions") or which is not None):
                    told = f"must be less than or equal to {most} ({what})"
                    said.append(invalid(f"{here}.succeededCount", least, told))
    return said


def job_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource == "status":
        return job_status(new, old)
    spec, before = part(new, "spec"), part(old, "spec")
    said = job(new)
    completions, was = spec.get("completions"), before.get("completions")
    if spec.get("completionMode") != "Indexed":
        said += immutable("spec.completions", completions, was)
    elif completions not in {was, None} and completions != spec.get("parallelism"):
        rule = "can only be modified in tandem with spec.parallelism"
        said.append(invalid("spec.completions", completions, rule))
    said += immutable("spec.selector", spec.get("selector"), before.get("selector"))
    suspended = before.get("suspend") and part(old, "status").get("startTime") is None
    found, had = part(spec, "template"), part(before, "template")
    if not is_same(found, _moved(found, had) if suspended else had):
        said.append(invalid("spec.template", dict(found), IMMUTABLE))
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        said += immutable(f"spec.{field}", spec.get(field), before.get(field))
    return said


def _moved(found: Obj, had: Obj) -> dict[str, Any]:
    """Return the old template, but sent where the new one goes: a Job not started yet may still be moved."""
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
