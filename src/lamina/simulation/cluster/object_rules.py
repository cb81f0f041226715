"""Rules that an API server applies to objects of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from lamina.core.crd.kinds import DEFINITION
from lamina.core.model.queries import Answer, Call, Found
from lamina.errors import BadRequest, HookError
from lamina.objects import meta
from lamina.objects.times import stamp
from lamina.objects.types import Made, Obj, Ref

_GRACE = 30


class KindRules(NamedTuple):
    """What a server does with the metadata of a kind."""

    has_generation: bool = True
    """Whether a change of its content raises the generation."""
    has_status: bool = True
    """Whether its status is written through a subresource of its own."""
    counts_annotations: bool = False
    """Whether a change of its annotations raises the generation, too."""


USUAL = KindRules()


def refuse_hooks(call: Call) -> Answer:
    """Refuse to call hooks."""
    raise HookError(
        f"{call.purpose} hook {call.url} was not called: this simulation calls no hooks", reached=False
    )


def allow_all(review: Obj) -> Answer:
    """Allow every access review."""
    return Found({**review, "status": {"allowed": True}})


def unchanged(obj: Made, old: Obj | None = None) -> Made:
    """Return an object unchanged."""
    return obj


def deep_copy(value: Any) -> Any:
    """Return a deep, mutable copy of a value, frozen or not."""
    kind = value.__class__
    if kind is str or kind is int or kind is bool:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {key: deep_copy(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [deep_copy(held) for held in value]
    return value


def is_edited(old: Obj, new: Obj, rules: KindRules) -> bool:
    """Say whether more than the metadata has changed, and the status where it has a subresource; or what counts of it."""
    if rules.counts_annotations and meta.annotations(old) != meta.annotations(new):
        return True
    apart = ("metadata", "status") if rules.has_status else ("metadata",)
    return any(new.get(name) != old.get(name) for name in {*new, *old} if name not in apart)


def without_empty(metadata: Made) -> Made:
    """Return metadata as a server shows it: empty maps and lists are left out."""
    for name in _OMITTED_IF_EMPTY:
        if name in metadata and not metadata[name]:
            del metadata[name]
    return metadata


_OMITTED_IF_EMPTY = ("annotations", "finalizers", "labels", "ownerReferences")


def is_definition(ref: Ref) -> bool:
    return ref.kind == DEFINITION.kind and ref.group == DEFINITION.group


def established(definition: Made, now: datetime) -> Made:
    """Return a CRD with the conditions that a server sets after its creation."""
    if not (definition.get("spec") or {}).get("names"):
        raise BadRequest(f"{meta.ref(definition)} names no kind")
    said = [
        {"type": name, "status": "True", "reason": reason, "lastTransitionTime": stamp(now)}
        for name, reason in (("NamesAccepted", "NoConflicts"), ("Established", "InitialNamesAccepted"))
    ]
    names = definition["spec"]["names"]
    return {**definition, "status": {"conditions": said, "acceptedNames": names}}


def grace_period(obj: Obj, asked: int | None) -> int:
    """Return the grace period of a deletion: that of a pod on a node, and none for anything else."""
    spec = obj.get("spec") or {}
    if obj.get("kind") != "Pod" or not spec.get("nodeName"):
        return 0
    if asked is not None:
        return asked
    given = spec.get("terminationGracePeriodSeconds")
    return _GRACE if given is None else int(given)
