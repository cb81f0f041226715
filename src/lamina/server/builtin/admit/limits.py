"""
The limits of a namespace: what its LimitRanges fill in, and what they refuse.

Each LimitRange of the namespace is taken by itself, in the order of their
names; the first that refuses says everything it has against an object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from lamina.objects.types import Made, Obj
from lamina.server.builtin.admit.asking import Lookup, Refusal
from lamina.server.builtin.amounts import needed_together
from lamina.server.builtin.values import quantity

_RANGES: Final = "limitranges"
_TOLD: Final = "kubernetes.io/limit-ranger"


def _ranges(obj: Obj, lookup: Lookup) -> Sequence[Obj]:
    every = lookup.every(_RANGES)
    if not every:
        return ()
    namespace = obj["metadata"].get("namespace")
    return [one for one in every if one["metadata"].get("namespace") == namespace]


def _limits(limit_range: Obj, kind: str) -> Iterator[Obj]:
    for limit in (limit_range.get("spec") or {}).get("limits") or ():
        if limit.get("type") == kind:
            yield limit


def fill_pod(pod: Made, lookup: Lookup, suffix: str) -> None:
    """Fill in what the containers of a new Pod do not ask for, and tell so in an annotation."""
    for limit_range in _ranges(pod, lookup):
        usual: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
        for limit in _limits(limit_range, "Container"):
            usual["requests"] |= limit.get("defaultRequest") or {}
            usual["limits"] |= limit.get("default") or {}
        told: list[str] = []
        for group, word in (("containers", "container"), ("initContainers", "init container")):
            for container in pod["spec"].get(group) or ():
                told += _fill(container, usual, word)
        if told:
            annotations = pod["metadata"].get("annotations") or {}
            said = f"LimitRanger plugin set: {'; '.join(told)}"
            pod["metadata"]["annotations"] = {**annotations, _TOLD: said}


def _fill(container: Made, usual: dict[str, dict[str, str]], word: str) -> Iterator[str]:
    resources = container["resources"]
    for what in ("requests", "limits"):
        has: Obj = resources.get(what) or {}
        missing = {name: amount for name, amount in usual[what].items() if name not in has}
        if missing:
            resources[what] = {**has, **missing}
            yield f"{', '.join(sorted(missing))} {what[:-1]} for {word} {container['name']}"


def judge_pod(new: Obj, old: Obj | None, lookup: Lookup) -> None:
    """Refuse a new Pod that asks for too little or too much."""
    if old is not None:
        return
    spec = new["spec"]
    for limit_range in _ranges(new, lookup):
        found: list[str] = []
        for limit in (limit_range.get("spec") or {}).get("limits") or ():
            if limit.get("type") == "Container":
                for container in (*spec["containers"], *(spec.get("initContainers") or ())):
                    resources = container["resources"]
                    found += _judge(
                        limit, resources.get("requests") or {}, resources.get("limits") or {}, "Container"
                    )
            elif limit.get("type") == "Pod":
                found += _judge(
                    limit, needed_together(spec, "requests"), needed_together(spec, "limits"), "Pod"
                )
        _refuse(found)


def judge_claim(new: Obj, old: Obj | None, lookup: Lookup) -> None:
    """Refuse a claim that asks for too little or too much."""
    asked = (new["spec"].get("resources") or {}).get("requests") or {}
    for limit_range in _ranges(new, lookup):
        found: list[str] = []
        for limit in _limits(limit_range, "PersistentVolumeClaim"):
            for name, least in sorted((limit.get("min") or {}).items()):
                found += _too_little(name, least, asked, {}, "PersistentVolumeClaim")
            for name, most in sorted((limit.get("max") or {}).items()):
                said = f"maximum {name} usage per PersistentVolumeClaim is {most}"
                if name not in asked:
                    found.append(f"{said}.  No request is specified")
                elif _amount(asked[name]) > _amount(most):
                    found.append(f"{said}, but request is {asked[name]}")
        _refuse(found)


def _refuse(found: Sequence[str]) -> None:
    found = list(dict.fromkeys(found))
    if found:
        raise Refusal(found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def _amount(text: str) -> Any:
    return quantity(text).amount


def _judge(limit: Obj, requests: Obj, limits: Obj, kind: str) -> Iterator[str]:
    for name, least in sorted((limit.get("min") or {}).items()):
        yield from _too_little(name, least, requests, limits, kind)
    for name, most in sorted((limit.get("max") or {}).items()):
        said = f"maximum {name} usage per {kind} is {most}"
        if name not in limits:
            yield f"{said}.  No limit is specified"
        elif _amount(limits[name]) > _amount(most):
            yield f"{said}, but limit is {limits[name]}"
        elif name in requests and _amount(requests[name]) > _amount(most):
            yield f"{said}, but request is {requests[name]}"
    for name, ratio in sorted((limit.get("maxLimitRequestRatio") or {}).items()):
        said = f"{name} max limit to request ratio per {kind} is {ratio}"
        if not _amount(requests.get(name, "0")):
            yield f"{said}, but no request is specified or request is 0"
        elif not _amount(limits.get(name, "0")):
            yield f"{said}, but no limit is specified or limit is 0"
        elif (provided := _amount(limits[name]) / _amount(requests[name])) > _amount(ratio):
            yield f"{said}, but provided ratio is {float(provided):f}"


def _too_little(name: str, least: str, requests: Obj, limits: Obj, kind: str) -> Iterator[str]:
    said = f"minimum {name} usage per {kind} is {least}"
    if name not in requests:
        yield f"{said}.  No request is specified"
    elif _amount(requests[name]) < _amount(least):
        yield f"{said}, but request is {requests[name]}"
    elif name in limits and _amount(limits[name]) < _amount(least):
        yield f"{said}, but limit is {limits[name]}"
