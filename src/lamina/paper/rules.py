"""What a server does with any object, whatever its kind: small rules, each by itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lamina.core.definitions import DEFINITION
from lamina.core.questions import Answer, Call, Found
from lamina.errors import BadRequest, HookError
from lamina.objects import meta
from lamina.objects.times import stamp
from lamina.objects.types import Made, Obj, Ref

_GRACE = 30


def nobody_calls(call: Call) -> Answer:
    """Call no hooks."""
    raise HookError(
        f"{call.purpose} hook {call.url} was not called: nobody calls hooks on paper", reached=False
    )


def everybody_may(review: Obj) -> Answer:
    """Keep nobody from anything."""
    return Found({**review, "status": {"allowed": True}})


def as_given(obj: Made, old: Obj | None = None) -> Made:
    """Fill in nothing."""
    return obj


def owned(value: Any) -> Any:
    """Return a copy that nobody else holds, frozen or not."""
    kind = value.__class__
    if kind is str or kind is int or kind is bool:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {key: owned(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [owned(held) for held in value]
    return value


def is_definition(ref: Ref) -> bool:
    return ref.kind == DEFINITION.kind and ref.group == DEFINITION.group


def established(definition: Made, now: datetime) -> Made:
    """Return a definition as a server has it a moment after it was made."""
    if not (definition.get("spec") or {}).get("names"):
        raise BadRequest(f"{meta.ref(definition)} names no kind")
    said = [
        {"type": name, "status": "True", "reason": reason, "lastTransitionTime": stamp(now)}
        for name, reason in (("NamesAccepted", "NoConflicts"), ("Established", "InitialNamesAccepted"))
    ]
    names = definition["spec"]["names"]
    return {**definition, "status": {"conditions": said, "acceptedNames": names}}


def grace_of(obj: Obj, asked: int | None) -> int:
    """Return how many seconds an object is given that is to go: a pod on a node some, anything else none."""
    spec = obj.get("spec") or {}
    if obj.get("kind") != "Pod" or not spec.get("nodeName"):
        return 0
    if asked is not None:
        return asked
    given = spec.get("terminationGracePeriodSeconds")
    return _GRACE if given is None else int(given)
