"""LimitRanges and ResourceQuotas."""

from __future__ import annotations

from collections.abc import Collection

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import duplicate, forbidden, invalid, required
from lamina.server.kinds.builtin.validate.parts import items, part, ruled, text
from lamina.server.kinds.builtin.validate.resources import (
    amount,
    container_resource_name,
    is_shared,
    is_standard_quota,
    quota_resource_name,
    resource_amount,
    resource_name,
)

_COMPUTE = frozenset({"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_POD_SCOPES = ("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity")
_SCOPES = frozenset({*_POD_SCOPES, "BestEffort", "VolumeAttributesClass"})
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


def limit_range(obj: Obj) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, limit in enumerate(items(part(obj, "spec"), "limits")):
        item_path = f"spec.limits[{index}]"
        kind = text(limit, "type")
        problem = ruled(f"{item_path}.type", kind, names.qualified)
        if not problem and "/" not in kind and kind not in {"Pod", "Container", "PersistentVolumeClaim"}:
            detail = "must be a standard limit type or fully qualified"
            problem = [invalid(f"{item_path}.type", kind, detail)]
        causes += problem
        if kind in seen:
            causes.append(duplicate(f"{item_path}.type", kind))
        seen.add(kind)
        causes += _limit(limit, kind, item_path)
    return causes


def _limit(limit: Obj, kind: str, path: str) -> list[Cause]:
    causes: list[Cause] = []
    check = container_resource_name if kind in {"Pod", "Container"} else resource_name
    fields = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]
    if kind == "Pod":
        detail = "may not be specified when `type` is 'Pod'"
        causes += (forbidden(f"{path}.{field}", detail) for field in fields[2:4] if limit.get(field))
        del fields[2:4]
    keys: dict[str, None] = {}
    for field in fields:
        for key in part(limit, field):
            causes += check(f"{path}.{field}[{key}]", key)
            keys[key] = None
    if kind == "PersistentVolumeClaim" and not any("storage" in part(limit, f) for f in ("min", "max")):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        causes.append(required(f"{path}.limits", detail))
    for key in keys:
        found = {field: part(limit, field)[key] for field in fields if key in part(limit, field)}
        causes += _bounds(found, key, path)
    return causes


def _bounds(found: dict[str, str], key: str, path: str) -> list[Cause]:
    causes: list[Cause] = []
    words = {
        "min": "min value", "max": "max value", "default": "default value", "defaultRequest": "default request value",
    }  # fmt: skip

    def compare(less: str, more: str, field: str, shown: str, detail: str = "") -> None:
        if less in found and more in found and amount(found[less]) > amount(found[more]):
            rule = f"{words[less]} {found[less]} is greater than {detail or words[more]} {found[more]}"
            causes.append(invalid(f"{path}.{field}[{key}]", found[shown], rule))

    compare("min", "max", "min", "min")
    compare("min", "defaultRequest", "defaultRequest", "defaultRequest")
    compare("defaultRequest", "max", "defaultRequest", "defaultRequest")
    compare("defaultRequest", "default", "defaultRequest", "defaultRequest", "default limit value")
    compare("min", "default", "default", "min")
    compare("default", "max", "default", "max")
    ratio = found.get("maxLimitRequestRatio")
    if ratio is not None:
        item_path = f"{path}.maxLimitRequestRatio[{key}]"
        if amount(ratio) < 1:
            causes.append(invalid(item_path, ratio, f"ratio {ratio} is less than 1"))
        if "min" in found and "max" in found and amount(found["min"]):
            most = amount(found["max"]) / amount(found["min"])
            if amount(ratio) > most:
                detail = f"ratio {ratio} is greater than max/min = {float(most):f}"
                causes.append(invalid(item_path, ratio, detail))
    given, asked = found.get("default"), found.get("defaultRequest")
    if given is not None and asked is not None and not is_shared(key) and amount(given) != amount(asked):
        detail = f"default value {given} must equal to defaultRequest value {asked} in {key}"
        causes.append(invalid(f"{path}.defaultRequest[{key}]", asked, detail))
    return causes


def quota(obj: Obj) -> list[Cause]:
    causes = _quota_spec(part(obj, "spec"))
    return causes + _quota_status(part(obj, "status"))


def _amounts(found: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    for name, value in found.items():
        item_path = f"{path}[{name}]"
        causes += quota_resource_name(item_path, name) + resource_amount(item_path, name, value)
    return causes


def _quota_status(status: Obj) -> list[Cause]:
    return _amounts(part(status, "hard"), "status.hard") + _amounts(part(status, "used"), "status.used")


def _quota_spec(spec: Obj) -> list[Cause]:
    hard = part(spec, "hard")
    causes = _amounts(hard, "spec.hard")
    scopes = list(items(spec, "scopes"))
    for scope in scopes:
        if scope not in _SCOPES:
            causes.append(invalid("spec.scopes", scopes, "unsupported scope"))
        causes += _unfit(scope, hard, "spec.scopes", scopes)
    causes += _opposite(scopes, "spec.scopes", scopes)
    selector = spec.get("scopeSelector")
    return causes if selector is None else causes + _selector(selector, spec)


def _unfit(scope: str, hard: Obj, path: str, shown: object) -> list[Cause]:
    detail = "unsupported scope applied to resource"
    return [
        invalid(path, shown, detail)
        for name in sorted(hard)
        if is_standard_quota(name) and not _fits(scope, name)
    ]


def _fits(scope: str, name: str) -> bool:
    if scope in _POD_SCOPES:
        return name == "pods" or name in _COMPUTE
    if scope == "BestEffort":
        return name == "pods"
    if scope == "VolumeAttributesClass":
        return name in {"persistentvolumeclaims", "requests.storage"}
    return True


def _opposite(scopes: Collection[str], path: str, shown: object) -> list[Cause]:
    return [
        invalid(path, shown, "conflicting scopes")
        for one, other in _OPPOSITES
        if one in scopes and other in scopes
    ]


def _selector(selector: Obj, spec: Obj) -> list[Cause]:
    causes: list[Cause] = []
    path = "spec.scopeSelector.matchExpressions"
    found = items(selector, "matchExpressions")
    shown = {
        "MatchExpressions": [
            {"ScopeName": text(o, "scopeName"), "Operator": text(o, "operator"), "Values": o.get("values")}
            for o in found
        ]
    }
    for one in found:
        scope, operator, values = text(one, "scopeName"), text(one, "operator"), items(one, "values")
        if scope not in _SCOPES:
            causes.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        causes += _unfit(scope, part(spec, "hard"), path, shown)
        alone = _SCOPES - {"PriorityClass", "VolumeAttributesClass"}
        if scope in alone and operator != "Exists":
            detail = (
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
            )
            causes.append(invalid(f"{path}.operator", operator, detail))
        match operator:
            case "In" | "NotIn":
                if not values:
                    detail = (
                        "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                    )
                    causes.append(required(f"{path}.values", detail))
            case "Exists" | "DoesNotExist":
                if values:
                    detail = (
                        "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                    )
                    causes.append(invalid(f"{path}.values", list(values), detail))
            case _:
                causes.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    scopes = [text(one, "scopeName") for one in found]
    return causes + _opposite(scopes, path, spec.get("scopes"))


def quota_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource == "status":
        return _quota_status(part(new, "status"))
    spec, before = part(new, "spec"), part(old, "spec")
    causes = _quota_spec(spec)
    if set(items(spec, "scopes")) != set(items(before, "scopes")):
        causes.append(invalid("spec.scopes", spec.get("scopes"), "field is immutable"))
    return causes


def limit_range_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return limit_range(new)
