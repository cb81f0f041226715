"""
The writes to a parent itself, after those to its children: its status, and the labels and annotations of a decorator.

A parent whose finalizer is removed is written last, because it is not reconciled again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from lamina.core.apply.three_way import without_nulls
from lamina.core.model.plan import Action, Patch, Stage, change, remove_finalizer, set_status
from lamina.core.model.queries import Answer, Answers, Found, ReadSchema
from lamina.families.metacontroller.hooks.protocol import Response
from lamina.families.metacontroller.sync.view import View
from lamina.merge.patches import create_merge_patch
from lamina.objects import conditions, meta
from lamina.objects.diff import is_same
from lamina.objects.times import stamp
from lamina.objects.types import Condition, Made, Obj


def schema_query(view: View, types: Collection[str]) -> ReadSchema | None:
    """Return the query that shows whether our conditions have a transition time; None where the parent's status shows it."""
    there = conditions.of(view.parent)
    if all(conditions.find(there, one) is not None for one in types):
        return None
    return ReadSchema(view.rule.kind)


def with_transition_times(
    view: View, status: Obj, types: Collection[str], answers: Answers, now: datetime
) -> Obj:
    """
    Return a status in which our conditions have a transition time, where the parent's schema requires one.

    The original writes none. A condition that is stored shows what its schema is
    like, so the schema is read only for the first one.
    """
    there, required = conditions.of(view.parent), _requires_times(answers.get(ReadSchema(view.rule.kind)))

    def timed(condition: Condition) -> Condition:
        if condition.get("type") not in types:
            return condition
        old = conditions.find(there, condition["type"])
        since = old.get("lastTransitionTime") if old is not None else None
        if not (required if old is None else since):
            return condition
        unchanged = old is not None and old.get("status") == condition["status"]
        return Condition(**{**condition, "lastTransitionTime": since if since and unchanged else stamp(now)})

    return {**status, "conditions": [timed(one) for one in conditions.of({"status": status})]}


def _requires_times(answer: Answer | None) -> bool:
    schema: object = answer.obj.get("schema") if isinstance(answer, Found) else None
    for field in ("properties", "status", "properties", "conditions", "items"):
        schema = schema.get(field) if isinstance(schema, Mapping) else None
    return isinstance(schema, Mapping) and "lastTransitionTime" in (schema.get("required") or ())


def report(view: View, response: Response, status: Obj | None) -> list[Stage]:
    """Return the stages that write a parent's status, and a decorator's labels and annotations."""
    actions = _status(view, status)
    if view.setup.is_composite:
        return stage("write the status", actions)
    decoration = _decoration(view, response, status)
    # Without a version where the status, just before, changes it.
    decorated = change(view.parent, decoration) if not actions else _unversioned(view.parent, decoration)
    return [
        *stage("write the status", actions),
        *stage("write labels and annotations", [decorated] if decoration else []),
    ]


def final_status(view: View, status: Obj | None) -> list[Stage]:
    """Return the stage that writes the status of a parent that stays without our finalizer."""
    if view.is_deleting:
        return []
    # Without a version: the removal of the finalizer, just before, changes it.
    patches = tuple(replace(patch, version="") for patch in _status(view, status))
    return [Stage("write the status", patches)] if patches else []


def _status(view: View, status: Obj | None) -> list[Patch]:
    """Return the patch of a parent's status, unless it is current or has no subresource."""
    if view.setup.is_composite:
        return _composite_status(view, status or {})
    if status is None or "status" not in view.rule.kind.subresources:
        return []
    wanted = without_nulls(status)
    if not wanted and "status" not in view.parent:
        # An empty status is written too: a hook may wait for it.
        return [change(view.parent, {"status": {}}, subresource="status")]
    patch = set_status(view.parent, wanted)
    return [patch] if patch is not None else []


def stage(name: str, actions: Sequence[Action]) -> list[Stage]:
    """Return a stage that runs after a failure too, or none where it has no actions."""
    return [Stage(name, tuple(actions), run_after_failure=True)] if actions else []


def _composite_status(view: View, status: Obj) -> list[Patch]:
    generation = meta.generation(view.parent)
    wanted: Made = without_nulls(status)
    old: Obj = view.parent.get("status") or {}
    if old and old == wanted and "observedGeneration" not in wanted:
        # A schema that prunes it would cause a write in every pass.
        return []
    if generation:
        wanted = {**wanted, "observedGeneration": generation}
    patch = set_status(view.parent, wanted)
    return [patch] if patch is not None else []


def _decoration(view: View, response: Response, status: Obj | None) -> Made:
    """Return the patch of a decorated object itself: labels, annotations, and a status that has no endpoint."""
    parent = view.parent
    metadata: Made = {}
    for field, wanted in (("labels", response.labels), ("annotations", response.annotations)):
        there = meta.metadata(parent).get(field) or {}
        changed = {key: value for key, value in wanted.items() if there.get(key) != value}
        if changed:
            metadata[field] = changed
    patch: Made = {"metadata": metadata} if metadata else {}
    if status is not None and "status" not in view.rule.kind.subresources:
        old, new = parent.get("status") or {}, without_nulls(status)
        if "status" not in parent or not is_same(old, new):
            patch["status"] = create_merge_patch(old, new) if isinstance(old, Mapping) else new
    return patch


def _unversioned(parent: Obj, patch: Obj) -> Patch:
    return Patch(ref=meta.ref(parent), uid=meta.uid(parent), version="", patch=patch)


def without_finalizer(view: View, response: Response, status: Obj | None) -> Patch:
    """Return the patch that removes the finalizer, with a decorator's labels and annotations."""
    released = remove_finalizer(view.parent, view.setup.finalizer)
    decoration = _decoration(view, response, status) if not view.setup.is_composite else {}
    metadata = {**(decoration.get("metadata") or {}), **released.patch["metadata"]}
    return replace(released, patch={**decoration, "metadata": metadata})
