"""
What comes before a definition is served, and after.

It is held by a finalizer before anything is made for it. Revisions that an earlier definition
of its name left as orphans become its own; those that are to be collected with their
definition are waited for, so that their numbers are not in the way. When it is deleted, its
revisions are released, and its CRD is deleted if that is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from lamina.core.model.finalizers import hold, is_held
from lamina.core.model.plan import Patch, Plan, Stage, delete, one_stage, remove_finalizer
from lamina.core.model.queries import Answers
from lamina.families.resourcegraph import counters
from lamina.families.resourcegraph.definitions.crd_cache import conflict
from lamina.families.resourcegraph.definitions.findings import RESOLVED, SETTLING, Finding
from lamina.families.resourcegraph.definitions.revision_object import adoptions, is_behind
from lamina.families.resourcegraph.definitions.status import report_stages
from lamina.families.resourcegraph.definitions.view import View
from lamina.families.resourcegraph.labels import FINALIZER
from lamina.objects import meta
from lamina.objects.types import Obj

_COLLECTED = "waiting until the revisions of a former definition of this name are collected"


def prepare(view: View, answers: Answers, now: datetime) -> Plan | None:
    """Return what has to be done before a definition is served, or in place of that; raises Unanswered."""
    if view.obj is None:
        return _release_former([*view.former, *(one.obj for one in view.revisions)], ())
    if meta.is_deleting(view.obj):
        return _teardown(view, view.obj)
    if not is_held(view.obj, FINALIZER):
        return hold(view.obj, FINALIZER, because="holding the definition")
    if view.former:
        settling = {RESOLVED: Finding("Unknown", SETTLING, _COLLECTED)}
        return _release_former(view.former, report_stages(view, settling, now))
    if is_behind(view, answers):
        return Plan(because="waiting for the cache to have the current revision")
    if adopted := adoptions(view, answers):
        return one_stage("adopt revisions", adopted, because="adopting the revisions of a former definition")
    return None


def _teardown(view: View, definition: Obj) -> Plan:
    crd = view.crd
    is_own = crd is not None and not conflict(crd, view.name) and not meta.is_deleting(crd)
    deletions = [delete(crd)] if crd is not None and is_own and view.options.deletes_definitions else []
    counted = (counters.deleted(definition),)
    released = tuple(replace(one, counters=counted) for one in _released([definition]))
    stages = (
        Stage("delete the CRD", tuple(deletions)),
        Stage("release the revisions", _released([one.obj for one in view.revisions])),
        Stage("release the definition", released),
    )
    return Plan(stages=tuple(one for one in stages if one.actions), because="the definition is being deleted")


def _release_former(revisions: Sequence[Obj], report: Sequence[Stage]) -> Plan:
    """Release revisions whose definition is gone, as they are collected."""
    released = _released([one for one in revisions if meta.is_deleting(one)])
    stages = (*report, Stage("release the revisions", released))
    return Plan(stages=tuple(one for one in stages if one.actions), because=_COLLECTED)


def _released(objects: Sequence[Obj]) -> tuple[Patch, ...]:
    return tuple(remove_finalizer(one, FINALIZER) for one in objects if is_held(one, FINALIZER))
