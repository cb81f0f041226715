"""
What is said of a parent once its children are seen to: its status, and what a decorator marks it with.

A parent that is let go hears it last: nobody looks at it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from lamina.core.plan import Action, Patch, Stage, change, remove_finalizer, set_status
from lamina.families.metacontroller.apply import stated
from lamina.families.metacontroller.hooks import Response
from lamina.families.metacontroller.names import COMPOSITE
from lamina.families.metacontroller.view import View
from lamina.merge.patches import create_merge_patch
from lamina.objects import meta
from lamina.objects.diff import is_same
from lamina.objects.types import Made, Obj


def report(view: View, response: Response, status: Obj | None) -> list[Stage]:
    """Return the stages that write a parent's status, and a decorator's labels and annotations."""
    actions = _status(view, status)
    if view.setup.kind == COMPOSITE:
        return stage("say so", actions)
    marks = _marks(view, response, status)
    # A status written just before it must not refuse it.
    decorated = change(view.parent, marks) if not actions else _unversioned(view.parent, marks)
    return [*stage("say so", actions), *stage("decorate", [decorated] if marks else [])]


def last_words(view: View, status: Obj | None) -> list[Stage]:
    """Return what writes the status of a parent that lives on without us: nobody looks at it again."""
    if view.is_deleting:
        return []
    # Letting it go, just before, must not refuse it.
    said = tuple(replace(patch, version="") for patch in _status(view, status))
    return [Stage("say so", said)] if said else []


def _status(view: View, status: Obj | None) -> list[Patch]:
    """Return the patch that gives a parent its status, unless it has it or that is not where it goes."""
    if view.setup.kind == COMPOSITE:
        return _composite_status(view, status or {})
    if status is None or "status" not in view.rule.kind.subresources:
        return []
    wanted = stated(status)
    if not wanted and "status" not in view.parent:
        # An empty status is one: a hook may wait to see that it has been written.
        return [change(view.parent, {"status": {}}, subresource="status")]
    patch = set_status(view.parent, wanted)
    return [patch] if patch is not None else []


def stage(name: str, actions: Sequence[Action]) -> list[Stage]:
    """Return a stage that comes whatever went wrong before it, unless there is nothing to do in it."""
    return [Stage(name, tuple(actions), even_after_failure=True)] if actions else []


def _composite_status(view: View, status: Obj) -> list[Patch]:
    generation = meta.generation(view.parent)
    wanted: Made = stated(status)
    old: Obj = view.parent.get("status") or {}
    if old and old == wanted and "observedGeneration" not in wanted:
        # A schema that drops it would be written to for ever.
        return []
    if generation:
        wanted = {**wanted, "observedGeneration": generation}
    patch = set_status(view.parent, wanted)
    return [patch] if patch is not None else []


def _marks(view: View, response: Response, status: Obj | None) -> Made:
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
        old, new = parent.get("status") or {}, stated(status)
        if "status" not in parent or not is_same(old, new):
            patch["status"] = create_merge_patch(old, new) if isinstance(old, Mapping) else new
    return patch


def _unversioned(parent: Obj, patch: Obj) -> Patch:
    return Patch(ref=meta.ref(parent), uid=meta.uid(parent), version="", patch=patch)


def let_go(view: View, response: Response, status: Obj | None) -> Patch:
    """Return the patch that lets a parent go, with whatever it is marked with."""
    released = remove_finalizer(view.parent, view.setup.finalizer)
    marks = _marks(view, response, status) if view.setup.kind != COMPOSITE else {}
    metadata = {**(marks.get("metadata") or {}), **released.patch["metadata"]}
    return replace(released, patch={**marks, "metadata": metadata})
