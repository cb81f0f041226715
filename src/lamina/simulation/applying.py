"""
A manifest applied on paper, as kubectl would apply it.

kubectl applies by itself unless it is told otherwise, and remembers in an annotation
what it stated. Whoever applied an object by the server the last time does so again,
and is refused where somebody else has changed what they state.
"""

from __future__ import annotations

from msgspec import Struct

from lamina.core.questions import Rehearse
from lamina.errors import Conflict
from lamina.merge.client_side import annotated, client_side
from lamina.merge.last_applied import KUBECTL
from lamina.merge.managed import APPLY
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.paper import Paper
from lamina.paper.rules import owned


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
