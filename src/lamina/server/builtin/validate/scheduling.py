"""Where a pod may go: selectors of nodes, affinity, tolerations, spreading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.labels import label_selector
from lamina.server.builtin.validate.parts import count, items, part, positive, ruled, supported, text
from lamina.server.fields import duplicate, each, forbidden, invalid, not_supported, required

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def node_selector(selector: Obj, path: str) -> list[Cause]:
    terms = items(selector, "nodeSelectorTerms")
    here = f"{path}.nodeSelectorTerms"
    if not terms:
        return [required(here, "must have at least one node selector term")]
    said: list[Cause] = []
    for index, term in enumerate(terms):
        said += _node_term(term, f"{here}[{index}]")
    return said


def _node_term(term: Obj, path: str, *, any_value: bool = False) -> list[Cause]:
    said: list[Cause] = []
    for index, expression in enumerate(items(term, "matchExpressions")):
        said += _node_requirement(expression, f"{path}.matchExpressions[{index}]", any_value=any_value)
    for index, expression in enumerate(items(term, "matchFields")):
        said += _node_field(expression, f"{path}.matchFields[{index}]")
    return said


def _node_requirement(expression: Obj, path: str, *, any_value: bool) -> list[Cause]:
    said: list[Cause] = []
    values = items(expression, "values")
    match text(expression, "operator"):
        case "In" | "NotIn":
            if not values:
                said.append(
                    required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
                )
        case "Exists" | "DoesNotExist":
            if values:
                rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                said.append(forbidden(f"{path}.values", rule))
        case "Gt" | "Lt":
            if len(values) != 1:
                rule = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                said.append(required(f"{path}.values", rule))
        case operator:
            said.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    said += ruled(f"{path}.key", text(expression, "key"), names.qualified)
    if not any_value:
        for index, value in enumerate(values):
            said += ruled(f"{path}.values[{index}]", value, names.label_value)
    return said


def _node_field(expression: Obj, path: str) -> list[Cause]:
    said: list[Cause] = []
    operator, key, values = text(expression, "operator"), text(expression, "key"), items(expression, "values")
    if operator not in {"In", "NotIn"}:
        said.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        rule = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        said.append(required(f"{path}.values", rule))
    if key != "metadata.name":
        return [*said, invalid(f"{path}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        said += ruled(f"{path}.values[{index}]", value, names.subdomain)
    return said


def affinity(found: Obj, path: str) -> list[Cause]:
    """Check what a pod wants to be near to, and far from."""
    said: list[Cause] = []
    must, would = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    nodes = part(found, "nodeAffinity")
    if nodes.get(must) is not None:
        said += node_selector(nodes[must], f"{path}.nodeAffinity.{must}")
    for index, term in enumerate(items(nodes, would)):
        here = f"{path}.nodeAffinity.{would}[{index}]"
        said += _weight(term, here) + _node_term(
            part(term, "preference"), f"{here}.preference", any_value=True
        )
    for field in ("podAffinity", "podAntiAffinity"):
        pods = part(found, field)
        for index, term in enumerate(items(pods, must)):
            said += _pod_term(term, f"{path}.{field}.{must}[{index}]")
        for index, term in enumerate(items(pods, would)):
            here = f"{path}.{field}.{would}[{index}]"
            said += _weight(term, here) + _pod_term(part(term, "podAffinityTerm"), f"{here}.podAffinityTerm")
    return said


def _weight(term: Obj, path: str) -> list[Cause]:
    weight = count(term, "weight")
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _pod_term(term: Obj, path: str) -> list[Cause]:
    said = label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    said += label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for namespace in items(term, "namespaces"):
        said += ruled(f"{path}.namespace", namespace, names.label)
    said += _label_keys(term, path)
    key = text(term, "topologyKey")
    if not key:
        said.append(required(f"{path}.topologyKey", "can not be empty"))
    return said + ruled(f"{path}.topologyKey", key, names.qualified)


def _label_keys(term: Obj, path: str) -> list[Cause]:
    said: list[Cause] = []
    selector = term.get("labelSelector")
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        keys = items(term, field)
        if keys and selector is None:
            said.append(forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set"))
            continue
        for index, key in enumerate(keys):
            said += ruled(f"{path}.{field}[{index}]", key, names.qualified)
    matching = items(term, "matchLabelKeys")
    if selector is not None:
        known = set(part(selector, "matchLabels"))
        for expression in items(selector, "matchExpressions"):
            key = text(expression, "key")
            if key in matching and key in known:
                where = f"{path}[{len(matching) - 1 - matching[::-1].index(key)}]"
                said.append(invalid(where, key, "exists in both matchLabelKeys and labelSelector"))
            known.add(key)
    for index, key in enumerate(matching):
        if key in items(term, "mismatchLabelKeys"):
            rule = "exists in both matchLabelKeys and mismatchLabelKeys"
            said.append(invalid(f"{path}.matchLabelKeys[{index}]", key, rule))
    return said


def tolerations(found: Sequence[Obj], path: str) -> list[Cause]:
    said: list[Cause] = []
    for index, toleration in enumerate(found):
        here = f"{path}[{index}]"
        key, operator = text(toleration, "key"), text(toleration, "operator")
        value, effect = text(toleration, "value"), text(toleration, "effect")
        if key:
            said += ruled(f"{here}.key", key, names.qualified)
        elif operator != "Exists":
            rule = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            said.append(invalid(f"{here}.operator", operator, rule))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            rule = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            said.append(invalid(f"{here}.effect", effect, rule))
        match operator:
            case "Equal" | "":
                if wrong := names.label_value(value):
                    said.append(invalid(f"{here}.operator", value, ";".join(wrong)))
            case "Exists":
                if value:
                    rule = "value must be empty when `operator` is 'Exists'"
                    said.append(invalid(f"{here}.operator", value, rule))
            case "Lt" | "Gt":
                said.append(not_supported(f"{here}.operator", operator, ("Equal", "Exists", "Lt", "Gt")))
            case _:
                said.append(not_supported(f"{here}.operator", operator, ("Equal", "Exists")))
        if effect:
            said += supported(f"{here}.effect", effect, TAINT_EFFECTS)
    return said


def taints(found: Sequence[Obj], path: str) -> list[Cause]:
    """Check what keeps pods off a node."""
    said: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(found):
        here = f"{path}[{index}]"
        key, value, effect = text(taint, "key"), text(taint, "value"), text(taint, "effect")
        said += each(f"{here}.key", key, names.qualified(key))
        if wrong := names.label_value(value):
            said.append(invalid(f"{here}.value", value, ";".join(wrong)))
        said += supported(f"{here}.effect", effect, TAINT_EFFECTS) if effect else [required(f"{here}.effect")]
        if (key, effect) in seen:
            twice = duplicate(here, _taint_shown(taint))
            rule = "taints must be unique by key and effect pair"
            said.append(twice._replace(message=f"{twice.message}: {rule}"))
        seen.add((key, effect))
    return said


def _taint_shown(taint: Obj) -> dict[str, Any]:
    return {
        "Key": text(taint, "key"),
        "Value": text(taint, "value"),
        "Effect": text(taint, "effect"),
        "TimeAdded": taint.get("timeAdded"),
    }


def spread_constraints(found: Sequence[Obj], path: str) -> list[Cause]:
    """Check how evenly pods are to be spread."""
    said: list[Cause] = []
    for index, constraint in enumerate(found):
        here = f"{path}[{index}]"
        key, action = text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable")
        said += positive(f"{here}.maxSkew", count(constraint, "maxSkew"))
        if not key:
            said.append(required(f"{here}.topologyKey", "can not be empty"))
        said += supported(f"{here}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        if any(
            (text(other, "topologyKey"), text(other, "whenUnsatisfiable")) == (key, action)
            for other in found[index + 1 :]
        ):
            said.append(duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        domains = constraint.get("minDomains")
        if domains is not None:
            said += positive(f"{here}.minDomains", domains)
            if action != "DoNotSchedule":
                rule = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                said.append(invalid(f"{here}.minDomains", domains, rule))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            said += supported(f"{here}.{field}", constraint.get(field), ("Honor", "Ignore"))
        said += _label_keys(constraint, here)
        said += label_selector(constraint.get("labelSelector"), f"{here}.labelSelector")
    return said
