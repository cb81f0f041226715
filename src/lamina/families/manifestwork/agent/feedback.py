"""
Status feedback of an object: the values that feedback rules name, each with its type.

A path that matches nothing has no value. A value is a number, a string or a boolean;
objects and lists are reported as JSON where that is allowed, and are an error otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from lamina.families.manifestwork.agent.api import FeedbackRule, JsonPathRule
from lamina.objects.go_quote import json_text
from lamina.objects.jsonpath import JsonPath, PathError
from lamina.objects.types import Made, Obj

_LARGEST = 2**63


def _paths(**paths: str) -> tuple[JsonPathRule, ...]:
    return tuple(JsonPathRule(name=name, path=path) for name, path in paths.items())


WELL_KNOWN = {
    ("apps/v1", "Deployment"): _paths(
        ReadyReplicas=".status.readyReplicas",
        Replicas=".status.replicas",
        AvailableReplicas=".status.availableReplicas",
    ),
    ("apps/v1", "DaemonSet"): _paths(
        NumberReady=".status.numberReady",
        DesiredNumberScheduled=".status.desiredNumberScheduled",
        NumberAvailable=".status.numberAvailable",
    ),
    ("batch/v1", "Job"): _paths(
        JobComplete='.status.conditions[?(@.type=="Complete")].status', JobSucceeded=".status.succeeded"
    ),
    ("v1", "Pod"): _paths(PodReady='.status.conditions[?(@.type=="Ready")].status', PodPhase=".status.phase"),
}
"""The paths of WellKnownStatus, by kind."""


class Feedback(Struct, frozen=True):
    """The values of one object, and the errors of others."""

    values: tuple[Made, ...] = ()
    wrong: tuple[str, ...] = ()


class _NoValue(Exception):
    """Why there is no value."""


def feedback(obj: Obj, rules: Sequence[FeedbackRule], *, raw: bool = False, longest: int = 1024) -> Feedback:
    """Return the values that rules name in an object; of several with one name the first is used."""
    values: dict[str, Made] = {}
    wrong: list[str] = []
    for rule in rules:
        try:
            paths = _named(obj, rule)
        except _NoValue as unfit:
            wrong.append(str(unfit))
            continue
        for path in paths:
            try:
                for value in _value(obj, path, raw, longest):
                    values.setdefault(path.name, {"name": path.name, "fieldValue": value})
            except _NoValue as unfit:
                wrong.append(str(unfit))
    return Feedback(tuple(values.values()), tuple(wrong))


def _named(obj: Obj, rule: FeedbackRule) -> Sequence[JsonPathRule]:
    if rule.type != "WellKnownStatus":
        return rule.json_paths
    api_version, kind = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
    found = WELL_KNOWN.get((api_version, kind))
    if found is None:
        raise _NoValue(f"cannot find the wellknown statuses for resource with gvk {api_version}, Kind={kind}")
    return found


def _value(obj: Obj, path: JsonPathRule, raw: bool, longest: int) -> Iterator[Made]:
    version = str(obj.get("apiVersion") or "").rpartition("/")[2]
    if path.version and path.version != version:
        raise _NoValue(f"version set in the path {path.name} is not matched for the related resource")
    found = _found(obj, path)
    if not found:
        return
    value = found if raw and len(found) > 1 else found[0]
    match value:
        case None:
            return
        case bool():
            yield {"type": "Boolean", "boolean": value}
        case int() if -_LARGEST <= value < _LARGEST:
            yield {"type": "Integer", "integer": value}
        case str():
            yield {"type": "String", "string": value}
        case _ if raw:
            text = json_text(value)
            if len(text.encode()) > longest:
                raise _NoValue(
                    f"the length of returned json raw string for name {path.name} is larger than the maximum "
                    f"length {longest}"
                )
            yield {"type": "JsonRaw", "jsonRaw": text}
        case _:
            raise _NoValue(f"the type {_type(value)} of the value for {path.name} is not found")


def _found(obj: Obj, path: JsonPathRule) -> list[Any]:
    read = _read(path.path)
    if isinstance(read, str):
        raise _NoValue(f"failed to parse json path {path.path} of {path.name} with error: {read}")
    try:
        return read.find(obj)
    except PathError as wrong:
        raise _NoValue(f"failed to find value for {path.name} with error: {wrong}") from None


@lru_cache(maxsize=1024)
def _read(path: str) -> JsonPath | str:
    """Return a path, parsed once, or what is wrong with it."""
    try:
        return JsonPath(path)
    except PathError as wrong:
        return str(wrong)


def _type(value: Any) -> str:
    match value:
        case float() | int():
            return "float"
        case list():
            return "list"
        case _:
            return "object"
