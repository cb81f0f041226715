"""Node selectors, affinity, tolerations and topology spread constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import duplicate, each, forbidden, invalid, not_supported, required
from lamina.server.kinds.builtin.validate.labels import check_operator, label_selector
from lamina.server.kinds.builtin.validate.parts import count, items, part, positive, ruled, supported, text

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def node_selector(selector: Obj, path: str) -> list[Cause]:
    terms = items(selector, "nodeSelectorTerms")
    item_path = f"{path}.nodeSelectorTerms"
    if not terms:
        return [required(item_path, "must have at least one node selector term")]
    causes: list[Cause] = []
    for index, term in enumerate(terms):
        causes += _node_term(term, f"{item_path}[{index}]")
    return causes


def _node_term(term: Obj, path: str, *, any_value: bool = False) -> list[Cause]:
    causes: list[Cause] = []
    for index, expression in enumerate(items(term, "matchExpressions")):
        causes += _node_requirement(expression, f"{path}.matchExpressions[{index}]", any_value=any_value)
    for index, expression in enumerate(items(term, "matchFields")):
        causes += _node_field(expression, f"{path}.matchFields[{index}]")
    return causes


def _node_requirement(expression: Obj, path: str, *, any_value: bool) -> list[Cause]:
    causes = check_operator(expression, path, has_numeric=True)
    causes += ruled(f"{path}.key", text(expression, "key"), names.qualified)
    if not any_value:
        for index, value in enumerate(items(expression, "values")):
            causes += ruled(f"{path}.values[{index}]", value, names.label_value)
    return causes


def _node_field(expression: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    operator, key, values = text(expression, "operator"), text(expression, "key"), items(expression, "values")
    if operator not in {"In", "NotIn"}:
        causes.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        rule = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        causes.append(required(f"{path}.values", rule))
    if key != "metadata.name":
        return [*causes, invalid(f"{path}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        causes += ruled(f"{path}.values[{index}]", value, names.subdomain)
    return causes


def affinity(found: Obj, path: str) -> list[Cause]:
    """Validate the affinity and anti-affinity of a pod."""
    causes: list[Cause] = []
    must, would = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    nodes = part(found, "nodeAffinity")
    if nodes.get(must) is not None:
        causes += node_selector(nodes[must], f"{path}.nodeAffinity.{must}")
    for index, term in enumerate(items(nodes, would)):
        item_path = f"{path}.nodeAffinity.{would}[{index}]"
        causes += _weight(term, item_path) + _node_term(
            part(term, "preference"), f"{item_path}.preference", any_value=True
        )
    for field in ("podAffinity", "podAntiAffinity"):
        pods = part(found, field)
        for index, term in enumerate(items(pods, must)):
            causes += _pod_term(term, f"{path}.{field}.{must}[{index}]")
        for index, term in enumerate(items(pods, would)):
            item_path = f"{path}.{field}.{would}[{index}]"
            causes += _weight(term, item_path) + _pod_term(
                part(term, "podAffinityTerm"), f"{item_path}.podAffinityTerm"
            )
    return causes


def _weight(term: Obj, path: str) -> list[Cause]:
    weight = count(term, "weight")
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _pod_term(term: Obj, path: str) -> list[Cause]:
    causes = label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    causes += label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for namespace in items(term, "namespaces"):
        causes += ruled(f"{path}.namespace", namespace, names.label)
    causes += _label_keys(term, path)
    key = text(term, "topologyKey")
    if not key:
        causes.append(required(f"{path}.topologyKey", "can not be empty"))
    return causes + ruled(f"{path}.topologyKey", key, names.qualified)


def _label_keys(term: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    selector = term.get("labelSelector")
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        keys = items(term, field)
        if keys and selector is None:
            causes.append(forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set"))
            continue
        for index, key in enumerate(keys):
            causes += ruled(f"{path}.{field}[{index}]", key, names.qualified)
    matching = items(term, "matchLabelKeys")
    if selector is not None:
        known = set(part(selector, "matchLabels"))
        for expression in items(selector, "matchExpressions"):
            key = text(expression, "key")
            if key in matching and key in known:
                where = f"{path}[{len(matching) - 1 - matching[::-1].index(key)}]"
                causes.append(invalid(where, key, "exists in both matchLabelKeys and labelSelector"))
            known.add(key)
    for index, key in enumerate(matching):
        if key in items(term, "mismatchLabelKeys"):
            rule = "exists in both matchLabelKeys and mismatchLabelKeys"
            causes.append(invalid(f"{path}.matchLabelKeys[{index}]", key, rule))
    return causes


def tolerations(found: Sequence[Obj], path: str) -> list[Cause]:
    causes: list[Cause] = []
    for index, toleration in enumerate(found):
        item_path = f"{path}[{index}]"
        key, operator = text(toleration, "key"), text(toleration, "operator")
        value, effect = text(toleration, "value"), text(toleration, "effect")
        if key:
            causes += ruled(f"{item_path}.key", key, names.qualified)
        elif operator != "Exists":
            rule = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            causes.append(invalid(f"{item_path}.operator", operator, rule))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            rule = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            causes.append(invalid(f"{item_path}.effect", effect, rule))
        match operator:
            case "Equal" | "":
                if problem := names.label_value(value):
                    causes.append(invalid(f"{item_path}.operator", value, ";".join(problem)))
            case "Exists":
                if value:
                    rule = "value must be empty when `operator` is 'Exists'"
                    causes.append(invalid(f"{item_path}.operator", value, rule))
            case "Lt" | "Gt":
                causes.append(
                    not_supported(f"{item_path}.operator", operator, ("Equal", "Exists", "Lt", "Gt"))
                )
            case _:
                causes.append(not_supported(f"{item_path}.operator", operator, ("Equal", "Exists")))
        if effect:
            causes += supported(f"{item_path}.effect", effect, TAINT_EFFECTS)
    return causes


def taints(found: Sequence[Obj], path: str) -> list[Cause]:
    """Validate the taints of a node."""
    causes: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(found):
        item_path = f"{path}[{index}]"
        key, value, effect = text(taint, "key"), text(taint, "value"), text(taint, "effect")
        causes += each(f"{item_path}.key", key, names.qualified(key))
        if problem := names.label_value(value):
            causes.append(invalid(f"{item_path}.value", value, ";".join(problem)))
        causes += (
            supported(f"{item_path}.effect", effect, TAINT_EFFECTS)
            if effect
            else [required(f"{item_path}.effect")]
        )
        if (key, effect) in seen:
            twice = duplicate(item_path, _taint_shown(taint))
            rule = "taints must be unique by key and effect pair"
            causes.append(twice._replace(message=f"{twice.message}: {rule}"))
        seen.add((key, effect))
    return causes


def _taint_shown(taint: Obj) -> dict[str, Any]:
    return {
        "Key": text(taint, "key"),
        "Value": text(taint, "value"),
        "Effect": text(taint, "effect"),
        "TimeAdded": taint.get("timeAdded"),
    }


def spread_constraints(found: Sequence[Obj], path: str) -> list[Cause]:
    """Validate topology spread constraints."""
    causes: list[Cause] = []
    for index, constraint in enumerate(found):
        item_path = f"{path}[{index}]"
        key, action = text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable")
        causes += positive(f"{item_path}.maxSkew", count(constraint, "maxSkew"))
        if not key:
            causes.append(required(f"{item_path}.topologyKey", "can not be empty"))
        causes += supported(f"{item_path}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        if any(
            (text(other, "topologyKey"), text(other, "whenUnsatisfiable")) == (key, action)
            for other in found[index + 1 :]
        ):
            causes.append(
                duplicate(f"{item_path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
            )
        domains = constraint.get("minDomains")
        if domains is not None:
            causes += positive(f"{item_path}.minDomains", domains)
            if action != "DoNotSchedule":
                rule = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                causes.append(invalid(f"{item_path}.minDomains", domains, rule))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            causes += supported(f"{item_path}.{field}", constraint.get(field), ("Honor", "Ignore"))
        causes += _label_keys(constraint, item_path)
        causes += label_selector(constraint.get("labelSelector"), f"{item_path}.labelSelector")
    return causes
