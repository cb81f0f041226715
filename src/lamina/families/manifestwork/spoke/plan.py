"""
What happens next to one work on its cluster.

What is about to be made is in the record of the work first. Then everything is
applied in the order of its kinds, whatever fails on the way, and what nobody means
any more is let go. How it went is seen rather than assumed: the next pass finds
things as they should be, and says so on the hub.

A work that goes takes its record along, and the record everything in it; the work is
let go once the record is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from lamina.core.plan import (
    NOTHING,
    Action,
    Delete,
    Plan,
    Stage,
    change,
    change_metadata,
    one_stage,
    remove_finalizer,
    set_status,
)
from lamina.core.questions import Answers, Question
from lamina.core.world import World
from lamina.errors import ApiError, LaminaError, PlanFailed, SpecError
from lamina.families.manifestwork.spoke.api import Resource
from lamina.families.manifestwork.spoke.deeds import Considered, Deed, Outcome, considered
from lamina.families.manifestwork.spoke.manifest import meant
from lamina.families.manifestwork.spoke.names import HUB, WORK_CLEANUP, Agent
from lamina.families.manifestwork.spoke.ownership import is_ours
from lamina.families.manifestwork.spoke.record import (
    Entry,
    SetKeys,
    brought,
    entries,
    kept_in_step,
    listed,
    opened,
    set_keys,
)
from lamina.families.manifestwork.spoke.said import condition
from lamina.families.manifestwork.spoke.status import refused, status
from lamina.families.manifestwork.spoke.view import View, gather, share
from lamina.objects import conditions, meta
from lamina.objects.types import Obj, Ref

_SOON = timedelta(seconds=1)
"""When to see what became of something that nobody tells us about."""


def questions(view: View, answers: Answers) -> tuple[Question, ...]:
    """Return what has still to be asked: what there is, what would become of it, and who may do that."""
    record = _record_in_use(view)
    if record is None:
        return ()
    return tuple(dict.fromkeys(one for one in considered(view, record, answers).asks if one not in answers))


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Decide what happens next."""
    if meta.is_deleting(view.work):
        return _farewell(view, now)
    if WORK_CLEANUP not in meta.finalizers(view.work):
        held = change_metadata(view.work, cluster=HUB, finalizers=[*meta.finalizers(view.work), WORK_CLEANUP])
        return one_stage("hold", [held], because="what is applied of it is to go before it does")
    if view.record is None:
        made = opened(view.agent, view.work, _brought(view))
        return one_stage("open a record", [made], because="what is applied of it is to be known")
    record = _record_in_use(view)
    if record is None:
        return Plan(because="its record is on its way out, and is made anew once it is gone")
    return _applied(view, record, considered(view, record, answers), now)


def _record_in_use(view: View) -> Obj | None:
    if meta.is_deleting(view.work) or WORK_CLEANUP not in meta.finalizers(view.work):
        return None
    if view.record is None or meta.is_deleting(view.record):
        return None
    return view.record


def _brought(view: View) -> Mapping[Resource, SetKeys]:
    return {
        one.resource: brought(one.obj)
        for one in view.manifests
        if one.kind is not None and _sets_keys(one.config.strategy.type)
    }


def _sets_keys(strategy: str) -> bool:
    return strategy == "Update"


def _applied(view: View, record: Obj, done: Considered, now: datetime) -> Plan:
    if _is_to_be_recorded(record, done):
        stages = [Stage("write down what is about to be made", tuple(_written_down(view, record, done)))]
        return _planned(stages, "what is about to be made is written down first", None)
    stages = [
        Stage(f"apply, turn {rank}", actions, even_after_failure=True) for rank, actions in _turns(done)
    ]
    parting = tuple(one.parting.action for one in done.leaving if one.parting.action is not None)
    stages += [
        Stage("let go", parting, even_after_failure=True),
        Stage("write down what is there", tuple(_written_down(view, record, done)), even_after_failure=True),
        Stage("say so", tuple(_said(view, done, now)), even_after_failure=True),
    ]
    return _planned(stages, _because(done), _again(view, done))


def _planned(stages: list[Stage], because: str, again: timedelta | None) -> Plan:
    return Plan(stages=tuple(stage for stage in stages if stage.actions), look_again=again, because=because)


def _turns(done: Considered) -> Iterator[tuple[int, tuple[Action, ...]]]:
    """Yield what is written, turn by turn: within one, in the order of the manifests."""
    turns: dict[int, list[Action]] = {}
    for deed in done.deeds:
        if deed.action is not None:
            turns.setdefault(deed.manifest.rank, []).append(deed.action)
    for rank in sorted(turns):
        yield rank, tuple(turns[rank])


def _said(view: View, done: Considered, now: datetime) -> Iterator[Action]:
    made = status(view, done.deeds, now)
    if made is not None and (patch := set_status(view.work, made, cluster=HUB)) is not None:
        yield patch


def _because(done: Considered) -> str:
    writing = [str(deed.manifest) for deed in done.deeds if deed.action is not None]
    going = [str(one.entry.resource) for one in done.leaving if one.parting.action is not None]
    failed = [f"{one.manifest}: {one.message}" for one in done.deeds if one.outcome is Outcome.FAILED]
    said = [
        f"applying {', '.join(writing)}" if writing else "",
        f"letting go of {', '.join(going)}" if going else "",
        f"not applied: {'; '.join(failed)}" if failed else "",
    ]
    return "; ".join(filter(None, said)) or "everything is as it should be"


def _again(view: View, done: Considered) -> timedelta:
    """Return when to look again: sooner where we would not be told, or were not let."""
    options = view.agent.options
    mark = share(["again", meta.uid(view.work)])
    moments = [options.reapply * (1 + mark / 2)]
    moments += [deed.again for deed in done.deeds if deed.again is not None]
    unheard = [deed for deed in done.deeds if not deed.seen.is_heard_of]
    if any(deed.action is not None for deed in unheard):
        moments.append(_SOON)
    if unheard or any(not one.is_heard_of and one.parting.waits for one in done.leaving):
        moments.append(options.poll * (1 + 0.9 * mark))
    return min(moments)


# The record


def _is_to_be_recorded(record: Obj, done: Considered) -> bool:
    """Say whether something is about to be made, marked or set that the record does not know of."""
    known = {entry.resource: entry for entry in entries(record)}
    keys = set_keys(record)
    for deed in done.deeds:
        resource = deed.manifest.resource
        if deed.makes and (resource not in known or known[resource].uid):
            return True
        if _marks(deed, record) and (
            resource not in known or known[resource].uid != meta.uid(deed.there or {})
        ):
            # Whoever finds it on the list may set our mark, too.
            return True
        sets = deed.action is not None and _sets_keys(deed.manifest.config.strategy.type)
        if sets and not keys.get(resource, SetKeys()).covers(brought(deed.manifest.obj)):
            return True
    return False


def _marks(deed: Deed, record: Obj) -> bool:
    """Say whether our mark is about to be set on something that is there."""
    there = deed.there
    marked = deed.action is not None and not deed.manifest.is_orphaned
    return marked and there is not None and not is_ours(there, record)


def _written_down(view: View, record: Obj, done: Considered) -> Iterator[Action]:
    """Yield what makes the record say what there is, what is about to be, and which keys were set on it."""
    wanted = listed(_entries(view, record, done))
    if wanted != ((record.get("status") or {}).get("appliedResources") or []):
        yield change(record, {"status": {"appliedResources": wanted}}, subresource="status")
    yield from kept_in_step(view.agent, view.work, record, dict(_keys(view, record, done)))


def _entries(view: View, record: Obj, done: Considered) -> Iterator[Entry]:
    known = {entry.resource: entry for entry in entries(record)}
    told: set[Resource] = set()
    for deed in done.deeds:
        manifest, there = deed.manifest, deed.there
        if manifest.kind is None or manifest.wrong:
            continue
        before = known.get(manifest.resource)
        version = manifest.version
        told.add(manifest.resource)
        if there is not None:
            yield Entry(resource=manifest.resource, version=version, uid=meta.uid(there))
        elif deed.makes:
            yield Entry(resource=manifest.resource, version=version)
        elif before is not None and (deed.seen.unknown or not before.uid):
            yield before
    waiting = {one.entry.resource for one in done.leaving if one.parting.waits}
    wanted = meant(view.manifests, view.kinds)
    for resource, entry in known.items():
        if resource not in told and (resource in waiting or resource in wanted):
            yield entry


def _keys(view: View, record: Obj, done: Considered) -> Iterator[tuple[Resource, SetKeys]]:
    """Yield the keys that objects have from their manifests: until they are gone, those of before as well."""
    known = set_keys(record)
    for deed in done.deeds:
        manifest = deed.manifest
        before, brings = known.get(manifest.resource, SetKeys()), SetKeys()
        if manifest.kind is not None and _sets_keys(manifest.config.strategy.type):
            brings = brought(manifest.obj)
        yield manifest.resource, brings if _is_settled(deed) else before | brings
    told = {deed.manifest.resource for deed in done.deeds}
    still_there = {entry.resource for entry in _entries(view, record, done)} - told
    yield from ((resource, known[resource]) for resource in still_there if resource in known)


def _is_settled(deed: Deed) -> bool:
    return deed.outcome is Outcome.DONE and deed.there is not None


# The end


def _farewell(view: View, now: datetime) -> Plan:
    if WORK_CLEANUP not in meta.finalizers(view.work):
        return NOTHING
    if view.record is None:
        gone = remove_finalizer(view.work, WORK_CLEANUP, cluster=HUB)
        return one_stage("let go", [gone], because="nothing of it is left here")
    said = view.status.get("conditions") or ()
    deleting = condition(
        said,
        "Deleting",
        "True",
        "WorkDeleting",
        "What was applied of it is being deleted",
        now=now,
        generation=view.generation,
    )
    rest = conditions.without_condition(said, "Deleting")
    patch = set_status(view.work, {**view.status, "conditions": [*rest, deleting]}, cluster=HUB)
    stages = [
        Stage("say so", (patch,) if patch is not None else ()),
        Stage("close its record", () if meta.is_deleting(view.record) else (_closed(view.record),)),
    ]
    return _planned(stages, "what was applied of it is being deleted", None)


def _closed(record: Obj) -> Action:
    # Whatever is written on it meanwhile, it is to go.
    return Delete(ref=meta.ref(record), uid=meta.uid(record))


# When something went wrong


def complain(agent: Agent, world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """Return how to say on a work that some of its manifests were refused."""
    work = world.get(ref)
    if isinstance(error, SpecError):
        return _failed(work, str(error), now) if work is not None and not meta.is_deleting(work) else NOTHING
    view = gather(agent, world, ref)
    if view is None or meta.is_deleting(view.work) or not isinstance(error, PlanFailed):
        return NOTHING
    places = {manifest.ref for manifest in view.manifests}
    failures = list(zip(error.failures, error.about, strict=True))
    refusals = {about: str(failure) for failure, about in failures if about is not None and about in places}
    if refusals:
        patch = set_status(view.work, refused(view, refusals, now), cluster=HUB)
        return one_stage("say so", [patch] if patch is not None else [], because=str(error))
    record = agent.record_ref(ref.name)
    if any(about == record and isinstance(failure, ApiError) for failure, about in failures):
        # Without a record nothing is applied: a name that is too long for one, say.
        return _failed(view.work, f"its record was refused: {error}", now)
    return NOTHING


def _failed(work: Obj, why: str, now: datetime) -> Plan:
    """Return how to say of a work as a whole that it is not applied."""
    status: Obj = work.get("status") or {}
    said = status.get("conditions") or ()
    failed = condition(
        said,
        "Applied",
        "False",
        "AppliedManifestWorkFailed",
        why,
        now=now,
        generation=meta.generation(work),
        restarts=True,
    )
    rest = conditions.without_condition(said, "Applied")
    patch = set_status(work, {**status, "conditions": [failed, *rest]}, cluster=HUB)
    return one_stage("say so", [patch] if patch is not None else [], because=why)
