"""
LimitRanger: sets default requests and limits from LimitRanges, and enforces them.

The LimitRanges of a namespace are checked in the order of their names; the first
that is violated returns all of its violations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from lamina.objects.quantities import quantity
from lamina.objects.types import Made, Obj
from lamina.server.admission.plugins.lister import Denied, Lister
from lamina.server.kinds.builtin.amounts import pod_total

_RANGES: Final = "limitranges"
_ANNOTATION: Final = "kubernetes.io/limit-ranger"


def _ranges(obj: Obj, lookup: Lister) -> Sequence[Obj]:
    ranges = lookup.list(_RANGES)
    if not ranges:
        return ()
    namespace = obj["metadata"].get("namespace")
    return [one for one in ranges if one["metadata"].get("namespace") == namespace]


def _limits(limit_range: Obj, kind: str) -> Iterator[Obj]:
    for limit in (limit_range.get("spec") or {}).get("limits") or ():
        if limit.get("type") == kind:
            yield limit


def set_pod_limits(pod: Made, lookup: Lister, suffix: str) -> None:
    """Set the default requests and limits of a new Pod's containers, and record that in an annotation."""
    for limit_range in _ranges(pod, lookup):
        defaults: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
        for limit in _limits(limit_range, "Container"):
            defaults["requests"] |= limit.get("defaultRequest") or {}
            defaults["limits"] |= limit.get("default") or {}
        changes: list[str] = []
        for group, word in (("containers", "container"), ("initContainers", "init container")):
            for container in pod["spec"].get(group) or ():
                changes += _set_defaults(container, defaults, word)
        if changes:
            annotations = pod["metadata"].get("annotations") or {}
            message = f"LimitRanger plugin set: {'; '.join(changes)}"
            pod["metadata"]["annotations"] = {**annotations, _ANNOTATION: message}


def _set_defaults(container: Made, defaults: dict[str, dict[str, str]], word: str) -> Iterator[str]:
    resources = container["resources"]
    for field in ("requests", "limits"):
        has: Obj = resources.get(field) or {}
        missing = {name: amount for name, amount in defaults[field].items() if name not in has}
        if missing:
            resources[field] = {**has, **missing}
            yield f"{', '.join(sorted(missing))} {field[:-1]} for {word} {container['name']}"


def validate_pod(new: Obj, old: Obj | None, lookup: Lister) -> None:
    """Refuse a new Pod outside the limits."""
    if old is not None:
        return
    spec = new["spec"]
    for limit_range in _ranges(new, lookup):
        found: list[str] = []
        for limit in (limit_range.get("spec") or {}).get("limits") or ():
            if limit.get("type") == "Container":
                for container in (*spec["containers"], *(spec.get("initContainers") or ())):
                    resources = container["resources"]
                    found += _violations(
                        limit, resources.get("requests") or {}, resources.get("limits") or {}, "Container"
                    )
            elif limit.get("type") == "Pod":
                found += _violations(limit, pod_total(spec, "requests"), pod_total(spec, "limits"), "Pod")
        _deny(found)


def validate_claim(new: Obj, old: Obj | None, lookup: Lister) -> None:
    """Refuse a claim outside the limits."""
    requests = (new["spec"].get("resources") or {}).get("requests") or {}
    for limit_range in _ranges(new, lookup):
        found: list[str] = []
        for limit in _limits(limit_range, "PersistentVolumeClaim"):
            for name, minimum in sorted((limit.get("min") or {}).items()):
                found += _below_minimum(name, minimum, requests, {}, "PersistentVolumeClaim")
            for name, maximum in sorted((limit.get("max") or {}).items()):
                message = f"maximum {name} usage per PersistentVolumeClaim is {maximum}"
                if name not in requests:
                    found.append(f"{message}.  No request is specified")
                elif _amount(requests[name]) > _amount(maximum):
                    found.append(f"{message}, but request is {requests[name]}")
        _deny(found)


def _deny(found: Sequence[str]) -> None:
    found = list(dict.fromkeys(found))
    if found:
        raise Denied(found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def _amount(text: str) -> Any:
    return quantity(text).amount


def _violations(limit: Obj, requests: Obj, limits: Obj, kind: str) -> Iterator[str]:
    for name, minimum in sorted((limit.get("min") or {}).items()):
        yield from _below_minimum(name, minimum, requests, limits, kind)
    for name, maximum in sorted((limit.get("max") or {}).items()):
        message = f"maximum {name} usage per {kind} is {maximum}"
        if name not in limits:
            yield f"{message}.  No limit is specified"
        elif _amount(limits[name]) > _amount(maximum):
            yield f"{message}, but limit is {limits[name]}"
        elif name in requests and _amount(requests[name]) > _amount(maximum):
            yield f"{message}, but request is {requests[name]}"
    for name, ratio in sorted((limit.get("maxLimitRequestRatio") or {}).items()):
        message = f"{name} max limit to request ratio per {kind} is {ratio}"
        if not _amount(requests.get(name, "0")):
            yield f"{message}, but no request is specified or request is 0"
        elif not _amount(limits.get(name, "0")):
            yield f"{message}, but no limit is specified or limit is 0"
        elif (provided := _amount(limits[name]) / _amount(requests[name])) > _amount(ratio):
            yield f"{message}, but provided ratio is {float(provided):f}"


def _below_minimum(name: str, minimum: str, requests: Obj, limits: Obj, kind: str) -> Iterator[str]:
    message = f"minimum {name} usage per {kind} is {minimum}"
    if name not in requests:
        yield f"{message}.  No request is specified"
    elif _amount(requests[name]) < _amount(minimum):
        yield f"{message}, but request is {requests[name]}"
    elif name in limits and _amount(limits[name]) < _amount(minimum):
        yield f"{message}, but limit is {limits[name]}"
