"""The objects that store the revisions of a definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from lamina.core.live_check import is_current
from lamina.core.model.plan import Create, Patch, Plan, Stage, change_metadata
from lamina.core.model.queries import Answers, Found, Listed, Read, ReadAll
from lamina.core.ownership.controller_ref import controlled
from lamina.core.rollout.revision import CHANGE_CAUSE
from lamina.families.resourcegraph import counters
from lamina.families.resourcegraph.api import content
from lamina.families.resourcegraph.definitions import events
from lamina.families.resourcegraph.definitions.queried import answer, require
from lamina.families.resourcegraph.definitions.view import REVISION_INFIX, Revision, View
from lamina.families.resourcegraph.hashes import label_value, revision_name
from lamina.families.resourcegraph.labels import (
    API_VERSION,
    CONTENT_FROM,
    DEFINITION_REVISION,
    FINALIZER,
    REVISION_NUMBER,
    RGD_NAME,
    ROLLBACK_MODE,
    SOURCE_GENERATION,
)
from lamina.graph.graph import Graph
from lamina.objects import meta
from lamina.objects.selectors import LabelSelector, from_labels
from lamina.objects.types import Made, Obj

_WAITING = Plan(because="waiting for the cache to have the latest definition and all of its revisions")


def listed(name: str) -> LabelSelector:
    """Return what selects the revisions of the definition of that name, and perhaps those of a few others."""
    return from_labels({RGD_NAME: label_value(name)})


def number_in_name(definition: str, revision: Obj) -> int:
    """Return the number of a revision of that definition by its metadata alone, 0 for one of another definition."""
    number = meta.labels(revision).get(REVISION_NUMBER) or ""
    if not number.isdigit() or meta.name(revision) != revision_name(definition, REVISION_INFIX, int(number)):
        return 0
    return int(number)


def issued(status: Obj, numbers: Sequence[int]) -> int:
    """
    Return the highest number that was ever issued, by the status of a definition and by its revisions.

    What upstream has issued are revisions of its own, which it lists in no history.
    """
    last = status.get("lastIssuedRevision") if "revisionHistory" in status else 0
    return max(status.get("currentRevision") or 0, last or 0, *numbers, 0)


def last_issued(view: View) -> int:
    return issued(view.status, [one.number for one in view.revisions])


def new_revision(
    live: Obj, number: int, *, content_from: int = 0, mode: str = "", change_cause: str = ""
) -> Made:
    """Return the revision of the content of a definition as it was read."""
    annotations = {SOURCE_GENERATION: str(meta.generation(live))}
    if content_from:
        annotations[CONTENT_FROM] = str(content_from)
    if mode:
        annotations[ROLLBACK_MODE] = mode
    if change_cause:
        annotations[CHANGE_CAUSE] = change_cause
    return {
        "apiVersion": API_VERSION,
        "kind": DEFINITION_REVISION.kind,
        "metadata": {
            "name": revision_name(meta.name(live), REVISION_INFIX, number),
            "labels": {RGD_NAME: label_value(meta.name(live)), REVISION_NUMBER: str(number)},
            "annotations": annotations,
            "ownerReferences": [meta.owner_ref(live, controller=True, blocks=True)],
            "finalizers": [FINALIZER],
        },
        "spec": {"revision": number, **content(live.get("spec") or {})},
    }


def creation(view: View, graph: Graph, content_from: int, mode: str, answers: Answers, now: datetime) -> Plan:
    """
    Return the plan that creates the revision of the content of a definition; raises Unanswered.

    It follows a live read, because a cache may lack the newest revision. `content_from` and
    `mode` are those of a rollback.
    """
    assert view.revision_kind is not None, "a definition is served together with its revisions"
    itself = Read(meta.ref(view.definition), whole=True)
    all_of_them = ReadAll(view.revision_kind, "", labels=listed(view.name))
    require(answers, itself, all_of_them)
    read, there = answers.get(itself), answers.get(all_of_them)
    if not isinstance(read, Found) or not isinstance(there, Listed) or not _is_same(view, read.obj):
        return _WAITING
    numbers = _numbers(view, there)
    if numbers.keys() != {meta.uid(one.obj) for one in view.revisions}:
        return _WAITING
    number = issued(read.obj.get("status") or {}, tuple(numbers.values())) + 1
    taken = {meta.name(one) for one in there.objects}
    while view.name_of(number) in taken:
        # An object that is no revision has the name.
        number += 1
    cause = _change_cause(view, read.obj, content_from)
    revision = new_revision(read.obj, number, content_from=content_from, mode=mode, change_cause=cause)
    news = events.published(view.definition, revision, content_from, graph, now)
    counted = [counters.issued(revision)]
    if content_from:
        counted.append(counters.rolled_back(counters.DEFINITION, counters.RESTORED))
    made = Create(obj=revision, counters=tuple(counted))
    stages = (Stage("create the revision", (made,)), Stage("emit events", tuple(news)))
    return Plan(stages=stages, because=f"creating revision {number}, {meta.name(revision)}")


def _numbers(view: View, there: Listed) -> Mapping[str, int]:
    """
    Return the numbers of the revisions of a live list by their uids.

    The list has metadata only, so the cache says which objects have a spec whose number is not
    that of their name: these are no revisions.
    """
    known = {meta.uid(one.obj): one.number for one in view.revisions}
    listed = ((meta.uid(one), one) for one in there.objects)
    found = {uid: known.get(uid) or number_in_name(view.name, one) for uid, one in listed}
    return {uid: number for uid, number in found.items() if number and uid not in view.misnamed}


def _change_cause(view: View, live: Obj, content_from: int) -> str:
    """Return why a revision is made: what the definition says, or the revision that a rollback returns to."""
    source = view.numbered(content_from) if content_from else None
    return meta.annotations(live if source is None else source.obj).get(CHANGE_CAUSE) or ""


def _is_same(view: View, live: Obj) -> bool:
    """Say whether the definition was decided about as it is: its content, and the annotations that count."""
    same_notes = meta.annotations(live) == meta.annotations(view.definition)
    return same_notes and is_current(live, view.definition)


def is_behind(view: View, answers: Answers) -> bool:
    """
    Say whether the cache lacks the revision that the status names as current; raises Unanswered.

    One that the server does not have either was removed by force, and gets a successor.
    """
    current = view.status.get("currentRevision") or 0
    if view.revision_kind is None or current <= (view.current.number if view.current is not None else 0):
        return False
    there = answer(answers, ReadAll(view.revision_kind, "", labels=listed(view.name)))
    return isinstance(there, Listed) and current in _numbers(view, there).values()


def adoptions(view: View, answers: Answers) -> Sequence[Patch]:
    """
    Return what makes orphaned revisions those of the definition, and holds them; raises Unanswered.

    The definition is read first: a revision that is adopted by one that is gone is collected.
    """
    orphans = [one for one in view.revisions if _is_loose(one)]
    if not orphans:
        return ()
    read = answer(answers, Read(meta.ref(view.definition)))
    if not isinstance(read, Found) or meta.uid(read.obj) != meta.uid(view.definition):
        return ()
    return [_adopted(one.obj, view.definition) for one in orphans if not meta.is_deleting(read.obj)]


def _is_loose(revision: Revision) -> bool:
    is_held = meta.controller_of(revision.obj) is not None and FINALIZER in meta.finalizers(revision.obj)
    return not is_held and not meta.is_deleting(revision.obj)


def _adopted(revision: Obj, definition: Obj) -> Patch:
    return change_metadata(
        revision,
        ownerReferences=controlled(meta.owner_refs(revision), definition),
        finalizers=[*(one for one in meta.finalizers(revision) if one != FINALIZER), FINALIZER],
    )
