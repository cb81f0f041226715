"""
The next step of one ObjectDeployment: its revisions are created, paused, archived and pruned.

A revision is archived in two steps: it is paused, and once it reports that, it is archived.
Before that, all revisions are read live and decided about again, because what an archived
revision deletes does not come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from lamina.core.live_check import LiveCheck, check_live, lists_the_same
from lamina.core.model.plan import (
    NOTHING,
    Action,
    Create,
    Plan,
    Stage,
    change,
    delete,
    in_stages,
    one_stage,
    set_status,
)
from lamina.core.model.queries import Answers, Found, Listed, Read, ReadAll
from lamina.core.ownership.controller_ref import controls
from lamina.core.phases.archive import archivable, working
from lamina.core.rollout.history import prune
from lamina.families.objectset.deployments.status import EMPTY, invalid, status
from lamina.families.objectset.deployments.template import TemplateRevision, find, new_set, revisions
from lamina.families.objectset.deployments.view import View
from lamina.families.objectset.labels import OWNING_DEPLOYMENT, PAUSED_BY_PARENT
from lamina.families.objectset.reporting import report
from lamina.families.objectset.set_facts import SetFacts, facts
from lamina.objects import meta
from lamina.objects.selectors import from_labels
from lamina.objects.types import Obj

_SOON = timedelta(seconds=1)
_WAITING = Plan(because="waiting for the cache to have all revisions", requeue_after=_SOON)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return the next step of a deployment."""
    if meta.is_deleting(view.obj):
        return NOTHING
    if view.spec is None:
        held = (
            Stage("pause", tuple(_pause(view)))
            if view.is_paused
            else Stage("resume", tuple(_resume(view, ())))
        )
        refused = Stage("report", report(view.obj, invalid(view, now), now))
        return in_stages([held, refused], because=view.error)
    if any(not one.number for one in view.sets):
        return Plan(because="waiting until all of its revisions have a number")
    found = find(view)
    if view.is_paused:
        return _with_report(view, found, [Stage("pause", tuple(_pause(view)))], now)
    if found.current is None:
        return _create(view, found, answers, now)
    return _advance(view, found, found.current, answers, now)


def _with_report(
    view: View,
    found: TemplateRevision,
    stages: list[Stage],
    now: datetime,
    because: str = "",
    created: SetFacts | None = None,
) -> Plan:
    reported = status(view, found, now, created=created)
    stages.append(Stage("report", report(view.obj, reported.status, now)))
    return in_stages(stages, because=because or reported.because, again=reported.again)


# Pause


def _pause(view: View) -> Iterator[Action]:
    """Yield what pauses the sets of a paused deployment; one that is paused already is not marked."""
    for one in view.sets:
        if one.is_live and one.state == "Active":
            yield _set_state(one.obj, "Paused", paused_by_parent="true")


def _resume(view: View, ending: Sequence[SetFacts]) -> Iterator[Action]:
    """
    Yield what resumes the sets that the deployment paused and does not archive.

    Whether one is archived is known once it reports what it controls while it is paused.
    """
    for one in view.sets:
        is_paused_here = one.is_live and PAUSED_BY_PARENT in meta.annotations(one.obj)
        if is_paused_here and one.is_reported and one not in ending:
            state = "Active" if one.state == "Paused" else one.state
            yield _set_state(one.obj, state, paused_by_parent=None)


def _set_state(obj: Obj, state: str, *, paused_by_parent: str | None) -> Action:
    annotations = {PAUSED_BY_PARENT: paused_by_parent}
    return change(obj, {"metadata": {"annotations": annotations}, "spec": {"lifecycleState": state}})


# Revisions


def _create(view: View, found: TemplateRevision, answers: Answers, now: datetime) -> Plan:
    """Create the revision of a template that has none, after a live read: a cache may lack the newest set."""
    resumed = Stage("resume", tuple(_resume(view, ())))
    if not view.valid_spec.template.spec.phases:
        return _with_report(view, found, [resumed], now, EMPTY)
    itself, listed = LiveCheck(cached=view.obj), _list(view)
    confirmation, there = check_live([itself], answers), answers.get(listed)
    if confirmation.pending or there is None:
        return Plan(queries=(itself.read, listed))
    if not confirmation.is_confirmed or not isinstance(there, Listed):
        return Plan(because="waiting for the cache to have the latest template")
    if not lists_the_same(there.objects, view.owned, meta.uid(view.obj)):
        return _WAITING
    new = new_set(view, found)
    if new.collisions is not None:
        counted = {**(view.obj.get("status") or {}), "collisionCount": new.collisions}
        patch = set_status(view.obj, counted)
        because = "the name of the new revision is taken; it gets another one"
        return one_stage("count the collision", (patch,) if patch is not None else (), because=because)
    if new.obj is None:
        return Plan(because="waiting for the cache to list the revision that was created")
    because = f"creating revision {found.number}, {meta.name(new.obj)}"
    stages = [resumed, Stage("create the revision", (Create(obj=new.obj),))]
    # Reported only once it is created, so the status is that of a deployment that has it.
    [created] = facts([new.obj], view.slices, view.kinds)
    return _with_report(view, found, stages, now, because, created)


def _advance(view: View, found: TemplateRevision, current: SetFacts, answers: Answers, now: datetime) -> Plan:
    """Archive what the latest revision has replaced, and prune what is archived."""
    ending = list(archivable(view.sets))
    ready = [one for one, _ in ending if one.is_paused]
    if ready:
        listed, reads = (
            _list(view),
            [Read(meta.ref(one.obj), whole=True) for one in view.sets if not one.is_archived],
        )
        there = answers.get(listed)
        if there is None or not all(one in answers for one in reads):
            return Plan(queries=(listed, *reads))
        if not isinstance(there, Listed) or not lists_the_same(there.objects, view.owned, meta.uid(view.obj)):
            return _WAITING
        read = [one.obj for one in map(answers.get, reads) if isinstance(one, Found)]
        ending = _confirmed(view, ending, read)
        ready = [one for one, _ in ending if one.is_paused]
    paused = tuple(
        _set_state(one.obj, "Paused", paused_by_parent="true") for one, _ in ending if one.state == "Active"
    )
    stages = [
        Stage("resume", tuple(_resume(view, [one for one, _ in ending]))),
        Stage("pause what ends", paused),
        Stage("archive", tuple(_set_state(one.obj, "Archived", paused_by_parent=None) for one in ready)),
        Stage("prune", tuple(delete(one.obj) for one in _prunable(view))),
        Stage("set the deadline", tuple(_deadline(view, current))),
    ]
    because = "; ".join(f"archiving revision {one.number}: {reason}" for one, reason in ending)
    return _with_report(view, found, stages, now, because)


def _confirmed(
    view: View, ending: Sequence[tuple[SetFacts, str]], live: Sequence[Obj]
) -> list[tuple[SetFacts, str]]:
    """Return which of these revisions are archived by the live state, too; what is archived stays so."""
    archived = [one.obj for one in view.sets if one.is_archived]
    own = [one for one in live if controls(meta.uid(view.obj), one) and not meta.is_deleting(one)]
    owned = facts([*archived, *own], view.slices, view.kinds)
    now_ending = {meta.uid(one.obj) for one, _ in archivable(owned)}
    return [(one, reason) for one, reason in ending if meta.uid(one.obj) in now_ending]


def _list(view: View) -> ReadAll:
    """Return the live list of the metadata of the sets that may be the deployment's."""
    kind = view.kinds.preferred(view.set_kind)
    assert kind is not None, "a deployment is served together with its sets"
    own = {OWNING_DEPLOYMENT: meta.name(view.obj)}
    marked = all(own.items() <= meta.labels(one).items() for one in view.owned)
    return ReadAll(kind, meta.namespace(view.obj), labels=from_labels(own if marked else None))


def _prunable(view: View) -> Iterator[SetFacts]:
    """Yield the archived revisions beyond the limit, oldest first; the newest that works is kept as a record."""
    unarchived = {one.name for one in view.sets if not one.is_archived}
    beyond = prune(revisions(view), limit=max(0, view.valid_spec.revision_history_limit), keep=unarchived)
    names, kept = {one.name for one in beyond}, working(view.sets)
    yield from (one for one in view.sets if one.name in names and one is not kept)


def _deadline(view: View, current: SetFacts) -> Iterator[Action]:
    """Yield the write that gives the current set the deadline of its deployment, which may change."""
    wanted = view.valid_spec.progress_deadline_seconds
    if (current.obj.get("spec") or {}).get("progressDeadlineSeconds") != wanted:
        yield change(current.obj, {"spec": {"progressDeadlineSeconds": wanted}})
