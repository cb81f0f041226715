"""
A manifest applied on paper, as kubectl would apply it, and an object taken away.

kubectl applies by itself unless it is told otherwise, and remembers in an annotation
what it stated. Whoever applied an object by the server the last time does so again,
and is refused where somebody else has changed what they state.
"""

from __future__ import annotations

from msgspec import Struct

from lamina.actors.definitions import FINALIZER
from lamina.core.definitions import DEFINITION, kinds_of
from lamina.core.questions import Rehearse
from lamina.errors import Conflict, Forbidden
from lamina.merge.client_side import annotated, client_side
from lamina.merge.last_applied import ANNOTATION, KUBECTL
from lamina.merge.managed import APPLY
from lamina.objects import meta
from lamina.objects.diff import diff
from lamina.objects.kinds import Kind
from lamina.objects.paths import shown
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.paper import Paper
from lamina.paper.rules import owned

_FEW = 3
_NO_NEWS = (
    ("metadata", "annotations", ANNOTATION),
    ("metadata", "generation"),
    ("metadata", "managedFields"),
    ("metadata", "resourceVersion"),
)
_GROUND = ("default", "kube-public", "kube-system")
"""Namespaces that no server lets go."""


class Manner(Struct, frozen=True):
    """How manifests are applied: by the server or as it was done before, as whom, and whether others give way."""

    server_side: bool = False
    manager: str = KUBECTL
    force: bool = False


def apply(paper: Paper, manifest: Obj, manner: Manner) -> Made:
    """Apply a manifest; raises what kubectl would be told."""
    stated, there = owned(manifest), paper.at(meta.ref(manifest))
    if manner.server_side or (there is not None and _is_by_server(there, manner.manager)):
        try:
            return paper.apply(stated, manager=manner.manager, force=manner.force)
        except Conflict as disputed:
            disputed.hint = "have them give way with --force-conflicts"
            raise
    # Fields that nobody knows are refused either way.
    remembered = annotated(stated)
    paper.answer(Rehearse(obj=remembered, manager=manner.manager, key=""))
    if there is None:
        return paper.create(remembered)
    return paper.replace(client_side(owned(there), stated, paper.schema(meta.ref(there))), "")


def _is_by_server(there: Obj, manager: str) -> bool:
    entries = there["metadata"].get("managedFields") or ()
    return any(
        (one.get("manager"), one.get("operation"), one.get("subresource") or "") == (manager, APPLY, "")
        for one in entries
    )


def becomes(before: Obj | None, made: Obj) -> str:
    """Return in words what a change makes of an object."""
    if before is None:
        return "it is new"
    changed = [shown(one.path) for one in diff(before, made) if not _is_no_news(one.path)]
    if not changed:
        return "nothing of it changes"
    more = f" and {len(changed) - _FEW} more" if len(changed) > _FEW else ""
    return f"it is changed: {', '.join(changed[:_FEW])}{more}"


def _is_no_news(path: tuple[str | int, ...]) -> bool:
    return any(path[: len(one)] == one for one in _NO_NEWS)


def take_away(paper: Paper, ref: Ref) -> tuple[Kind, ...]:
    """Ask for the end of an object, and return the kinds whose objects go with it and before it."""
    if (ref.group, ref.kind) == ("", "Namespace") and ref.name in _GROUND:
        raise Forbidden(f'namespaces "{ref.name}" is forbidden: this namespace may not be deleted')
    if GroupKind(ref.group, ref.kind) != DEFINITION:
        paper.delete(ref)
        return ()
    definition = paper.get(ref)
    held = [one for one in meta.finalizers(definition) if one != FINALIZER]
    paper.patch(ref, {"metadata": {"finalizers": [*held, FINALIZER]}})
    paper.delete(ref)
    return tuple(kinds_of(definition))
