"""
Which changes of an existing pod are allowed.

Of its spec: images, a shorter deadline, additional tolerations, removal of scheduling
gates, and node selection while there are gates. Its status is written by the kubelet,
with some limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import forbidden, immutable, invalid, is_same, required
from lamina.server.kinds.builtin.validate.addresses import check_address, is_dual_stack
from lamina.server.kinds.builtin.validate.containers import restarts_always
from lamina.server.kinds.builtin.validate.differences import difference
from lamina.server.kinds.builtin.validate.parts import count, items, part, ruled, text
from lamina.server.kinds.builtin.validate.pods import pod, pod_annotations
from lamina.server.kinds.builtin.validate.scheduling import tolerations

_CHANGEABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_MIRROR = "kubernetes.io/config.mirror"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_LARGEST = 2**31 - 1
_SYSTEM_CONDITIONS = frozenset({"PodScheduled", "Ready", "Initialized"})


def update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    match subresource:
        case "status":
            return _status(new, old)
        case "ephemeralcontainers":
            return _ephemeral(new, old)
        case "resize":
            return _resize(new, old)
        case _:
            return _spec(new, old)


def _spec(new: Obj, old: Obj) -> list[Cause]:
    causes = pod(new) + _annotations(new, old)
    spec, before = part(new, "spec"), part(old, "spec")
    for field in ("containers", "initContainers"):
        containers = items(spec, field)
        if len(containers) != len(items(before, field)):
            causes.append(forbidden(f"spec.{field}", "pod updates may not add or remove containers"))
            return causes
        for index, container in enumerate(containers):
            image = text(container, "image")
            if not image:
                causes.append(required(f"spec.{field}[{index}].image"))
            if image != image.strip():
                rule = "must not have leading or trailing whitespace"
                causes.append(invalid(f"spec.{field}[{index}].image", image, rule))
    deadline, was = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if deadline is None:
        if was is not None:
            rule = "must not update from a positive integer to nil value"
            causes.append(invalid("spec.activeDeadlineSeconds", None, rule))
    elif not 0 <= deadline <= _LARGEST:
        return [
            *causes,
            invalid("spec.activeDeadlineSeconds", deadline, names.inclusive_range_error(0, _LARGEST)),
        ]
    elif was is not None and was < deadline:
        rule = "must be less than or equal to previous value"
        return [*causes, invalid("spec.activeDeadlineSeconds", deadline, rule)]
    causes += _more_tolerations(items(spec, "tolerations"), items(before, "tolerations"))
    causes += _fewer_gates(items(spec, "schedulingGates"), items(before, "schedulingGates"))
    if is_same(spec, before):
        return causes
    rest = _with_allowed_changes_undone(spec, before)
    if items(before, "schedulingGates"):
        causes += _node_selection(rest, before)
    if not is_same(rest, before):
        rule = f"pod updates may not change fields other than {_CHANGEABLE}\n{difference(before, rest)}"
        causes.append(forbidden("spec", rule))
    return causes


def _with_allowed_changes_undone(spec: Obj, before: Obj) -> dict[str, Any]:
    rest: dict[str, Any] = dict(spec)
    for field in ("containers", "initContainers"):
        rest[field] = [
            {**container, "image": was.get("image")}
            for container, was in zip(items(spec, field), items(before, field), strict=True)
        ]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        rest[field] = before.get(field)
    grace = before.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and rest.get("terminationGracePeriodSeconds") == 1:
        rest["terminationGracePeriodSeconds"] = grace
    return {key: value for key, value in rest.items() if value is not None and (value or key in before)}


def _node_selection(rest: dict[str, Any], before: Obj) -> list[Cause]:
    """Validate changes of node selection of a gated pod, and restore them in `rest`."""
    causes: list[Cause] = []
    selector, was = part(rest, "nodeSelector"), part(before, "nodeSelector")
    if any(selector.get(key) != value for key, value in was.items()):
        rule = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        causes.append(invalid("spec.nodeSelector", dict(selector), rule))
    _put_back(rest, "nodeSelector", before.get("nodeSelector"))
    nodes, had = (part(part(one, "affinity"), "nodeAffinity") for one in (rest, before))
    if not is_same(nodes, had):
        causes += _node_affinity(nodes, had)
        affinity = {k: v for k, v in part(rest, "affinity").items() if k != "nodeAffinity"}
        if had:
            affinity["nodeAffinity"] = had
        _put_back(rest, "affinity", affinity or None)
    return causes


def _put_back(rest: dict[str, Any], field: str, value: Any) -> None:
    if value is None:
        rest.pop(field, None)
    else:
        rest[field] = value


def _node_affinity(nodes: Obj, had: Obj) -> list[Cause]:
    must = "requiredDuringSchedulingIgnoredDuringExecution"
    if had.get(must) is None:
        return []
    terms, were = (items(part(one, must), "nodeSelectorTerms") for one in (nodes, had))
    path = f"spec.affinity.nodeAffinity.{must}.nodeSelectorTerms"
    if were and len(terms) != len(were):
        rule = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(path, terms, rule)]
    rule = "only additions are allowed (no mutations or deletions)"
    return [
        invalid(f"{path}[{index}]", terms[index], rule)
        for index, was in enumerate(were)
        if not _only_adds(terms[index], was)
    ]


def _only_adds(term: Obj, was: Obj) -> bool:
    fields = ("matchExpressions", "matchFields")
    if not any(items(was, field) for field in fields):
        return not any(items(term, field) for field in fields)
    return all(list(items(term, f))[: len(items(was, f))] == list(items(was, f)) for f in fields)


def _more_tolerations(new: Sequence[Obj], old: Sequence[Obj]) -> list[Cause]:
    def lasting(toleration: Obj) -> dict[str, Any]:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = [lasting(toleration) for toleration in new]
    if any(lasting(toleration) not in kept for toleration in old):
        rule = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden("spec.tolerations", rule)]
    return tolerations(new, "spec.tolerations")


def _fewer_gates(new: Sequence[Obj], old: Sequence[Obj]) -> list[Cause]:
    known = {text(gate, "name") for gate in old}
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{text(gate, 'name')}'",
        )
        for index, gate in enumerate(new)
        if text(gate, "name") not in known
    ]


def _annotations(new: Obj, old: Obj) -> list[Cause]:
    after, before = (part(part(one, "metadata"), "annotations") for one in (new, old))
    causes: list[Cause] = []
    for key in {**before, **after}:
        if after.get(key) == before.get(key):
            continue
        verb = "add" if key not in before else "remove or update"
        if key.startswith(_APP_ARMOR):
            causes.append(forbidden(f"metadata.annotations[{key}]", f"may not {verb} AppArmor annotations"))
        if key == _MIRROR:
            causes.append(forbidden(f"metadata.annotations[{key}]", f"may not {verb} mirror pod annotation"))
    return causes + pod_annotations(part(new, "metadata"), part(new, "spec"), "metadata.annotations")


def _ephemeral(new: Obj, old: Obj) -> list[Cause]:
    if _MIRROR in part(part(old, "metadata"), "annotations"):
        return [forbidden("", "static pods do not support ephemeral containers")]
    causes = pod(new) + _annotations(new, old)
    path = "spec.ephemeralContainers"
    now = {text(one, "name"): one for one in items(part(new, "spec"), "ephemeralContainers")}
    for was in items(part(old, "spec"), "ephemeralContainers"):
        name = text(was, "name")
        if name not in now:
            causes.append(forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n'))
        elif not is_same(now[name], was):
            rule = f'existing ephemeral containers "{name}" may not be changed\n'
            causes.append(forbidden(path, rule + difference(was, now[name])))
    return causes


def _resize(new: Obj, old: Obj) -> list[Cause]:
    if _MIRROR in part(part(old, "metadata"), "annotations"):
        return [forbidden("", "static pods cannot be resized")]
    spec, before = part(new, "spec"), part(old, "spec")
    if text(part(before, "os"), "name") == "windows":
        return [forbidden("", "windows pods cannot be resized")]
    causes = pod(new)
    if part(before, "resources") or part(spec, "resources"):
        rule = "resize of pods with pod-level resources is forbidden when"
        gate = "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
        return [*causes, forbidden("", f"{rule} {gate}")]
    rest: dict[str, Any] = dict(spec)
    for field in ("containers", "initContainers"):
        now, were = items(spec, field), items(before, field)
        if [text(one, "name") for one in now] != [text(one, "name") for one in were]:
            verb = "added or removed" if len(now) != len(were) else "renamed or reordered"
            return [*causes, forbidden(f"spec.{field}", f"{field} may not be {verb} on resize")]
        rest[field] = [_without_resize(one, was) for one, was in zip(now, were, strict=True)]
        for index, (one, was) in enumerate(zip(now, were, strict=True)):
            causes += _removed(one, was, f"spec.{field}[{index}].resources", field)
    if not causes and not is_same(rest, before):
        causes.append(forbidden("spec", "only cpu and memory resources are mutable"))
    return causes


def _removed(container: Obj, was: Obj, path: str, field: str) -> list[Cause]:
    if field == "initContainers" and not restarts_always(was):
        return []
    return [
        forbidden(f"{path}.{kind}", f"resource {kind} cannot be removed")
        for kind in ("requests", "limits")
        if set(part(part(was, "resources"), kind)) - set(part(part(container, "resources"), kind))
    ]


def _without_resize(container: Obj, was: Obj) -> dict[str, Any]:
    resources: dict[str, Any] = dict(part(container, "resources"))
    for kind in ("requests", "limits"):
        had = part(part(was, "resources"), kind)
        kept = {k: v for k, v in part(resources, kind).items() if k not in {"cpu", "memory"}}
        resources[kind] = {**kept, **{k: had[k] for k in ("cpu", "memory") if k in had}}
    return {**container, "resources": resources}


def _status(new: Obj, old: Obj) -> list[Cause]:
    status, before = part(new, "status"), part(old, "status")
    causes = _annotations(new, old)
    for index, condition in enumerate(items(status, "conditions")):
        kind = text(condition, "type")
        if count(condition, "observedGeneration") < 0:
            where = f"status.conditions[{index}].observedGeneration"
            causes.append(invalid(where, condition["observedGeneration"], "must be a non-negative integer"))
        if kind not in _SYSTEM_CONDITIONS:
            causes += ruled(f"status.conditions[{index}].Type", kind, names.qualified)
    spec = part(old, "spec")
    if text(part(new, "spec"), "nodeName") != text(spec, "nodeName"):
        causes.append(forbidden("status.nodeName", "may not be changed directly"))
    nominated = text(status, "nominatedNodeName")
    if nominated and nominated != text(before, "nominatedNodeName"):
        causes += ruled("status.nominatedNodeName", nominated, names.subdomain)
        if text(spec, "nodeName"):
            rule = "may not be set on pods that are already bound to a node"
            causes.append(forbidden("status.nominatedNodeName", rule))
    if count(status, "observedGeneration") < 0:
        rule = "must be a non-negative integer"
        causes.append(invalid("status.observedGeneration", status["observedGeneration"], rule))
    causes += immutable("status.qosClass", status.get("qosClass") or "", before.get("qosClass") or "")
    for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        causes += _stay_terminated(items(status, field), items(before, field), spec, f"status.{field}")
    causes += _addresses(status, before, "podIPs")
    if hosts := items(status, "hostIPs"):
        if text(status, "hostIP") != text(hosts[0], "ip"):
            causes.append(invalid("status.hostIPs[0].ip", text(hosts[0], "ip"), "must be equal to `hostIP`"))
        causes += _addresses(status, before, "hostIPs")
    return causes


def _stay_terminated(new: Sequence[Obj], old: Sequence[Obj], spec: Obj, path: str) -> list[Cause]:
    states = {text(status, "name"): part(status, "state") for status in new}
    containers = {
        text(container, "name"): container
        for field in ("containers", "initContainers")
        for container in items(spec, field)
    }
    return [
        forbidden(f"{path}[{index}].state", "may not be transitioned to non-terminated state")
        for index, was in enumerate(old)
        if (ended := part(was, "state").get("terminated")) is not None
        and text(was, "name") in states
        and states[text(was, "name")].get("terminated") is None
        and not _may_restart(containers.get(text(was, "name")), spec, count(ended, "exitCode"))
    ]


def _may_restart(container: Obj | None, spec: Obj, code: int) -> bool:
    if container is None:
        return False
    for rule in items(container, "restartPolicyRules"):
        codes = part(rule, "exitCodes")
        listed = code in items(codes, "values")
        if listed is (text(codes, "operator") == "In"):
            return True
    policy = container.get("restartPolicy") or text(spec, "restartPolicy")
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _addresses(status: Obj, before: Obj, field: str) -> list[Cause]:
    found = [text(one, "ip") for one in items(status, field)]
    known = [text(one, "ip") for one in items(before, field)]
    causes: list[Cause] = []
    for index, address in enumerate(found):
        causes += check_address(f"status.{field}[{index}]", address, known)
    if len(found) > 2 or (len(found) == 2 and not is_dual_stack(found)):
        rule = "may specify no more than one IP for each IP family"
        causes.append(invalid(f"status.{field}", [{"IP": one} for one in found], rule))
    return causes


def binding(found: Obj) -> list[Cause]:
    """Validate the body of a pod's `binding`."""
    target = part(found, "target")
    kind = text(target, "kind")
    causes: list[Cause] = []
    if kind and kind != "Node":
        shown = f'Unsupported value: "{kind}": supported values: "Node", "<empty>"'
        causes.append(Cause("FieldValueNotSupported", shown, "target.kind"))
    if not text(target, "name"):
        causes.append(required("target.name"))
    return causes
