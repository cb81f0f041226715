"""FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.parts import count, items, named, part, ruled, supported, text
from lamina.server.fields import duplicate, forbidden, invalid, not_supported, required

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_KINDS = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
_ZERO_SHARES = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"


def flow_schema(obj: Obj) -> list[Cause]:
    spec, name = part(obj, "spec"), text(part(obj, "metadata"), "name")
    said: list[Cause] = []
    precedence = count(spec, "matchingPrecedence")
    here = "spec.matchingPrecedence"
    if precedence <= 0:
        said.append(invalid(here, precedence, "must be a positive value"))
    if precedence > 10000:
        said.append(invalid(here, precedence, "must not be greater than 10000"))
    if precedence == 1 and name != "exempt":
        told = "only the schema named 'exempt' may have matchingPrecedence 1"
        said.append(invalid(here, precedence, told))
    if (method := spec.get("distinguisherMethod")) is not None:
        kind = text(method, "type")
        if kind not in {"ByNamespace", "ByUser"}:
            where = "spec.distinguisherMethod.type"
            said.append(not_supported(where, {"Type": kind}, ("ByNamespace", "ByUser")))
    level = text(part(spec, "priorityLevelConfiguration"), "name")
    here = "spec.priorityLevelConfiguration.name"
    said += (
        ruled(here, level, names.subdomain) if level else [required(here, "must reference a priority level")]
    )
    for index, rule in enumerate(items(spec, "rules")):
        said += _rule(rule, f"spec.rules[{index}]")
    return said + _conditions(obj)


def flow_schema_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return _conditions(new) if subresource == "status" else flow_schema(new)


def _conditions(obj: Obj) -> list[Cause]:
    said: list[Cause] = []
    kinds = [text(one, "type") for one in items(part(obj, "status"), "conditions")]
    for index, kind in enumerate(kinds):
        here = f"status.conditions[{index}].type"
        if kind in kinds[:index]:
            said.append(duplicate(here, kind))
        if not kind:
            said.append(required(here))
    return said


def _rule(rule: Obj, path: str) -> list[Cause]:
    said: list[Cause] = []
    subjects = items(rule, "subjects")
    if not subjects:
        said.append(required(f"{path}.subjects", "subjects must contain at least one value"))
    for index, subject in enumerate(subjects):
        said += _subject(subject, f"{path}.subjects[{index}]")
    resources, others = items(rule, "resourceRules"), items(rule, "nonResourceRules")
    if not resources and not others:
        told = "at least one of resourceRules and nonResourceRules has to be non-empty"
        said.append(required(path, told))
    for index, one in enumerate(resources):
        said += _resource_rule(one, f"{path}.resourceRules[{index}]")
    for index, one in enumerate(others):
        said += _other_rule(one, f"{path}.nonResourceRules[{index}]")
    return said


def _subject(subject: Obj, path: str) -> list[Cause]:
    kind = text(subject, "kind")
    if kind not in _KINDS:
        return [not_supported(f"{path}.kind", kind, ("Group", "ServiceAccount", "User"))]
    field = _KINDS[kind]
    found, here = subject.get(field), f"{path}.{field}"
    said: list[Cause] = []
    if found is None:
        said.append(required(here, f"{field} is required when subject kind is '{kind}'"))
    elif kind == "ServiceAccount":
        name, namespace = text(found, "name"), text(found, "namespace")
        if name != "*":
            said += named(f"{here}.name", name, names.subdomain)
        told = "must specify namespace for service account"
        said += (
            ruled(f"{here}.namespace", namespace, names.label)
            if namespace
            else [required(f"{here}.namespace", told)]
        )
    elif not text(found, "name"):
        said.append(required(f"{here}.name"))
    said += (
        forbidden(f"{path}.{other}", f"{other} is forbidden when subject kind is not '{other_kind}'")
        for other_kind, other in _KINDS.items()
        if other != field and subject.get(other) is not None
    )
    return said


def _verbs(rule: Obj, path: str) -> list[Cause]:
    verbs = items(rule, "verbs")
    here = f"{path}.verbs"
    if not verbs:
        return [required(here, "verbs must contain at least one value")]
    if "*" in verbs:
        told = "if '*' is present, must not specify other verbs"
        return [invalid(here, verbs, told)] if len(verbs) > 1 else []
    return [] if set(verbs) <= set(_VERBS) else [not_supported(here, verbs, _VERBS)]


def _alone(path: str, found: Sequence[str], what: str) -> list[Cause]:
    if "*" in found and len(found) > 1:
        return [invalid(path, found, f"if '*' is present, must not specify other {what}")]
    return []


def _resource_rule(rule: Obj, path: str) -> list[Cause]:
    said = _verbs(rule, path)
    for field, one, several in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        found = items(rule, field)
        if not found:
            said.append(required(f"{path}.{field}", f"resource rules must supply at least one {one}"))
        said += _alone(f"{path}.{field}", found, several)
    namespaces, here = items(rule, "namespaces"), f"{path}.namespaces"
    if not namespaces and not rule.get("clusterScope"):
        told = "resource rules that are not cluster scoped must supply at least one namespace"
        said.append(required(here, told))
    elif "*" in namespaces:
        said += _alone(here, namespaces, "namespaces")
    else:
        told = "each member of this list must be '*' or a DNS-1123 label; "
        said += (
            invalid(f"{here}[{index}]", one, told + wrong)
            for index, one in enumerate(namespaces)
            for wrong in names.label(one)
        )
    return said


def _other_rule(rule: Obj, path: str) -> list[Cause]:
    said = _verbs(rule, path)
    urls, here = items(rule, "nonResourceURLs"), f"{path}.nonResourceURLs"
    if not urls:
        return [*said, required(here, "nonResourceURLs must contain at least one value")]
    if "*" in urls:
        return said + _alone(here, urls, "non-resource URLs")
    for index, url in enumerate(urls):
        if wrong := _url_complaint(url):
            said.append(invalid(f"{here}[{index}]", url, wrong))
    return said


def _url_complaint(url: str) -> str:
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
    said: list[Cause] = []
    if _ZERO_SHARES in part(meta, "annotations"):
        said.append(forbidden("metadata.annotations", f"annotation '{_ZERO_SHARES}' is forbidden"))
    kind, limited, exempt = text(spec, "type"), spec.get("limited"), spec.get("exempt")
    if (text(meta, "name") == "exempt") != (kind == "Exempt"):
        told = "must be 'Exempt' if and only if `name` is 'exempt'"
        said.append(invalid("spec.type", kind, told))
    if kind == "Exempt":
        if limited is not None:
            said.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
        said += _shares(exempt or {}, "spec.exempt")
    elif kind == "Limited":
        if exempt is not None:
            said.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            said.append(required("spec.limited", "must not be empty when type is Limited"))
        else:
            said += _limited(limited, "spec.limited")
    else:
        said.append(not_supported("spec.type", kind, ("Exempt", "Limited")))
    return said + _conditions(obj)


def priority_level_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return _conditions(new) if subresource == "status" else priority_level(new)


def _shares(found: Obj, path: str) -> list[Cause]:
    said: list[Cause] = []
    shares, lent = found.get("nominalConcurrencyShares"), found.get("lendablePercent")
    if shares is not None and shares < 0:
        told = "must be a non-negative integer"
        said.append(invalid(f"{path}.nominalConcurrencyShares", shares, told))
    if lent is not None and not 0 <= lent <= 100:
        said.append(invalid(f"{path}.lendablePercent", lent, names.between(0, 100)))
    return said


def _limited(limited: Obj, path: str) -> list[Cause]:
    said = _shares(limited, path)
    said += _response(part(limited, "limitResponse"), f"{path}.limitResponse")
    borrowed = limited.get("borrowingLimitPercent")
    if borrowed is not None and borrowed < 0:
        told = "if specified, must be a non-negative integer"
        said.append(invalid(f"{path}.borrowingLimitPercent", borrowed, told))
    return said


def _response(response: Obj, path: str) -> list[Cause]:
    kind, queuing = text(response, "type"), response.get("queuing")
    here = f"{path}.queuing"
    if kind == "Reject":
        told = "must be nil if limited.limitResponse.type is not Limited"
        return [forbidden(here, told)] if queuing is not None else []
    if kind != "Queue":
        return supported(f"{path}.type", kind, ("Queue", "Reject"))
    if queuing is None:
        return [required(here, "must not be empty if limited.limitResponse.type is Limited")]
    length, queues, hand = (count(queuing, field) for field in ("queueLengthLimit", "queues", "handSize"))
    said: list[Cause] = []
    if length <= 0:
        said.append(invalid(f"{here}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        said.append(invalid(f"{here}.queues", queues, "must be positive"))
    elif queues > 10_000_000:
        said.append(invalid(f"{here}.queues", queues, "must not be greater than 10000000"))
    if hand <= 0:
        said.append(invalid(f"{here}.handSize", hand, "must be positive"))
    elif hand > queues:
        said.append(invalid(f"{here}.handSize", hand, f"should not be greater than queues ({queues})"))
    elif math.ceil(math.log2(queues) * hand) > 60:
        told = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than 60"
        said.append(invalid(f"{here}.handSize", hand, told))
    return said
