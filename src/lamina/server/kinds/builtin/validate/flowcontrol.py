"""FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import duplicate, forbidden, invalid, not_supported, required
from lamina.server.kinds.builtin.validate.parts import count, items, named, part, ruled, supported, text

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_KINDS = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
_ZERO_SHARES = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"


def flow_schema(obj: Obj) -> list[Cause]:
    spec, name = part(obj, "spec"), text(part(obj, "metadata"), "name")
    causes: list[Cause] = []
    precedence = count(spec, "matchingPrecedence")
    item_path = "spec.matchingPrecedence"
    if precedence <= 0:
        causes.append(invalid(item_path, precedence, "must be a positive value"))
    if precedence > 10000:
        causes.append(invalid(item_path, precedence, "must not be greater than 10000"))
    if precedence == 1 and name != "exempt":
        detail = "only the schema named 'exempt' may have matchingPrecedence 1"
        causes.append(invalid(item_path, precedence, detail))
    if (method := spec.get("distinguisherMethod")) is not None:
        kind = text(method, "type")
        if kind not in {"ByNamespace", "ByUser"}:
            where = "spec.distinguisherMethod.type"
            causes.append(not_supported(where, {"Type": kind}, ("ByNamespace", "ByUser")))
    level = text(part(spec, "priorityLevelConfiguration"), "name")
    item_path = "spec.priorityLevelConfiguration.name"
    causes += (
        ruled(item_path, level, names.subdomain)
        if level
        else [required(item_path, "must reference a priority level")]
    )
    for index, rule in enumerate(items(spec, "rules")):
        causes += _rule(rule, f"spec.rules[{index}]")
    return causes + _conditions(obj)


def flow_schema_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return _conditions(new) if subresource == "status" else flow_schema(new)


def _conditions(obj: Obj) -> list[Cause]:
    causes: list[Cause] = []
    kinds = [text(one, "type") for one in items(part(obj, "status"), "conditions")]
    for index, kind in enumerate(kinds):
        item_path = f"status.conditions[{index}].type"
        if kind in kinds[:index]:
            causes.append(duplicate(item_path, kind))
        if not kind:
            causes.append(required(item_path))
    return causes


def _rule(rule: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    subjects = items(rule, "subjects")
    if not subjects:
        causes.append(required(f"{path}.subjects", "subjects must contain at least one value"))
    for index, subject in enumerate(subjects):
        causes += _subject(subject, f"{path}.subjects[{index}]")
    resources, others = items(rule, "resourceRules"), items(rule, "nonResourceRules")
    if not resources and not others:
        detail = "at least one of resourceRules and nonResourceRules has to be non-empty"
        causes.append(required(path, detail))
    for index, one in enumerate(resources):
        causes += _resource_rule(one, f"{path}.resourceRules[{index}]")
    for index, one in enumerate(others):
        causes += _other_rule(one, f"{path}.nonResourceRules[{index}]")
    return causes


def _subject(subject: Obj, path: str) -> list[Cause]:
    kind = text(subject, "kind")
    if kind not in _KINDS:
        return [not_supported(f"{path}.kind", kind, ("Group", "ServiceAccount", "User"))]
    field = _KINDS[kind]
    found, item_path = subject.get(field), f"{path}.{field}"
    causes: list[Cause] = []
    if found is None:
        causes.append(required(item_path, f"{field} is required when subject kind is '{kind}'"))
    elif kind == "ServiceAccount":
        name, namespace = text(found, "name"), text(found, "namespace")
        if name != "*":
            causes += named(f"{item_path}.name", name, names.subdomain)
        detail = "must specify namespace for service account"
        causes += (
            ruled(f"{item_path}.namespace", namespace, names.label)
            if namespace
            else [required(f"{item_path}.namespace", detail)]
        )
    elif not text(found, "name"):
        causes.append(required(f"{item_path}.name"))
    causes += (
        forbidden(f"{path}.{other}", f"{other} is forbidden when subject kind is not '{other_kind}'")
        for other_kind, other in _KINDS.items()
        if other != field and subject.get(other) is not None
    )
    return causes


def _verbs(rule: Obj, path: str) -> list[Cause]:
    verbs = items(rule, "verbs")
    item_path = f"{path}.verbs"
    if not verbs:
        return [required(item_path, "verbs must contain at least one value")]
    if "*" in verbs:
        detail = "if '*' is present, must not specify other verbs"
        return [invalid(item_path, verbs, detail)] if len(verbs) > 1 else []
    return [] if set(verbs) <= set(_VERBS) else [not_supported(item_path, verbs, _VERBS)]


def _single_wildcard(path: str, found: Sequence[str], what: str) -> list[Cause]:
    if "*" in found and len(found) > 1:
        return [invalid(path, found, f"if '*' is present, must not specify other {what}")]
    return []


def _resource_rule(rule: Obj, path: str) -> list[Cause]:
    causes = _verbs(rule, path)
    for field, one, several in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        found = items(rule, field)
        if not found:
            causes.append(required(f"{path}.{field}", f"resource rules must supply at least one {one}"))
        causes += _single_wildcard(f"{path}.{field}", found, several)
    namespaces, item_path = items(rule, "namespaces"), f"{path}.namespaces"
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        causes.append(required(item_path, detail))
    elif "*" in namespaces:
        causes += _single_wildcard(item_path, namespaces, "namespaces")
    else:
        detail = "each member of this list must be '*' or a DNS-1123 label; "
        causes += (
            invalid(f"{item_path}[{index}]", one, detail + problem)
            for index, one in enumerate(namespaces)
            for problem in names.label(one)
        )
    return causes


def _other_rule(rule: Obj, path: str) -> list[Cause]:
    causes = _verbs(rule, path)
    urls, item_path = items(rule, "nonResourceURLs"), f"{path}.nonResourceURLs"
    if not urls:
        return [*causes, required(item_path, "nonResourceURLs must contain at least one value")]
    if "*" in urls:
        return causes + _single_wildcard(item_path, urls, "non-resource URLs")
    for index, url in enumerate(urls):
        if problem := _url_problem(url):
            causes.append(invalid(f"{item_path}[{index}]", url, problem))
    return causes


def _url_problem(url: str) -> str:
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    stars = url.count("*")
    return "wildcard can only do suffix matching" if stars > 1 or (stars and not url.endswith("/*")) else ""


def priority_level(obj: Obj) -> list[Cause]:
    meta, spec = part(obj, "metadata"), part(obj, "spec")
    causes: list[Cause] = []
    if _ZERO_SHARES in part(meta, "annotations"):
        causes.append(forbidden("metadata.annotations", f"annotation '{_ZERO_SHARES}' is forbidden"))
    kind, limited, exempt = text(spec, "type"), spec.get("limited"), spec.get("exempt")
    if (text(meta, "name") == "exempt") != (kind == "Exempt"):
        detail = "must be 'Exempt' if and only if `name` is 'exempt'"
        causes.append(invalid("spec.type", kind, detail))
    if kind == "Exempt":
        if limited is not None:
            causes.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
        causes += _shares(exempt or {}, "spec.exempt")
    elif kind == "Limited":
        if exempt is not None:
            causes.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            causes.append(required("spec.limited", "must not be empty when type is Limited"))
        else:
            causes += _limited(limited, "spec.limited")
    else:
        causes.append(not_supported("spec.type", kind, ("Exempt", "Limited")))
    return causes + _conditions(obj)


def priority_level_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return _conditions(new) if subresource == "status" else priority_level(new)


def _shares(found: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    shares, lent = found.get("nominalConcurrencyShares"), found.get("lendablePercent")
    if shares is not None and shares < 0:
        detail = "must be a non-negative integer"
        causes.append(invalid(f"{path}.nominalConcurrencyShares", shares, detail))
    if lent is not None and not 0 <= lent <= 100:
        causes.append(invalid(f"{path}.lendablePercent", lent, names.inclusive_range_error(0, 100)))
    return causes


def _limited(limited: Obj, path: str) -> list[Cause]:
    causes = _shares(limited, path)
    causes += _response(part(limited, "limitResponse"), f"{path}.limitResponse")
    borrowed = limited.get("borrowingLimitPercent")
    if borrowed is not None and borrowed < 0:
        detail = "if specified, must be a non-negative integer"
        causes.append(invalid(f"{path}.borrowingLimitPercent", borrowed, detail))
    return causes


def _response(response: Obj, path: str) -> list[Cause]:
    kind, queuing = text(response, "type"), response.get("queuing")
    item_path = f"{path}.queuing"
    if kind == "Reject":
        detail = "must be nil if limited.limitResponse.type is not Limited"
        return [forbidden(item_path, detail)] if queuing is not None else []
    if kind != "Queue":
        return supported(f"{path}.type", kind, ("Queue", "Reject"))
    if queuing is None:
        return [required(item_path, "must not be empty if limited.limitResponse.type is Limited")]
    length, queues, hand = (count(queuing, field) for field in ("queueLengthLimit", "queues", "handSize"))
    causes: list[Cause] = []
    if length <= 0:
        causes.append(invalid(f"{item_path}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        causes.append(invalid(f"{item_path}.queues", queues, "must be positive"))
    elif queues > 10_000_000:
        causes.append(invalid(f"{item_path}.queues", queues, "must not be greater than 10000000"))
    if hand <= 0:
        causes.append(invalid(f"{item_path}.handSize", hand, "must be positive"))
    elif hand > queues:
        causes.append(invalid(f"{item_path}.handSize", hand, f"should not be greater than queues ({queues})"))
    elif math.ceil(math.log2(queues) * hand) > 60:
        detail = (
            f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than 60"
        )
        causes.append(invalid(f"{item_path}.handSize", hand, detail))
    return causes
