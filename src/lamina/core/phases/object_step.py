"""
The next step of one object: created, kept, taken over, left to a newer revision, or refused.

    there is no such object         it is created by POST, so that an object that another client
                                    created in between is never merged into
    the owner controls it           it is applied where that changes anything
    an older revision controls it   it is taken over: control, number and content in one apply
    a newer one does                it is left alone
    anything else                   its collision protection decides

Every apply names the version that it was decided on. Before any write, a dry run tells
what the server refuses, and whether the write would change anything.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.apply.change_check import Effect, apply_query, check_apply
from lamina.core.apply.field_manager import has_updated, merge_into_apply, owned_references
from lamina.core.health.probe import ProbeResult, unhealthy
from lamina.core.health.probe_spec import Probes
from lamina.core.live_check import check_live
from lamina.core.model.plan import Action, Apply, Create
from lamina.core.model.queries import Answers, DryRun, Found, Query, Read, Refused, Unserved
from lamina.core.ownership.handover import Handover, Holder, hand_over
from lamina.core.phases.manifest import Manifest, desired
from lamina.core.phases.owner import PhaseOwner, has_lost, has_unknown_sibling
from lamina.errors import Conflict
from lamina.objects import meta
from lamina.objects.digest import digest
from lamina.objects.types import Made, Obj


class ObjectStep(Struct, frozen=True, kw_only=True):
    """What is known of one object and what is done next about it; `queries` have to be answered first."""

    manifest: Manifest
    live: Obj | None
    is_controlled: bool
    handover: Handover
    result: ProbeResult
    action: Action | None = None
    queries: tuple[Query, ...] = ()
    violation: str = ""
    collision: str = ""

    @property
    def is_handed_over(self) -> bool:
        """Say whether a newer revision has the object."""
        return self.handover is Handover.YIELD

    @property
    def changes_content(self) -> bool:
        """Say whether the object has to be observed again before its phase can pass."""
        return isinstance(self.action, Create | Apply)

    @property
    def moves_control(self) -> bool:
        """Say whether the owner gains control of the object."""
        return self.action is not None and self.handover in (Handover.CREATE, Handover.TAKE)

    @property
    def gates(self) -> bool:
        """Say whether later phases have to wait for this object."""
        return not self.is_handed_over and (self.changes_content or not self.result.is_healthy)


def observe(owner: PhaseOwner, manifest: Manifest, live: Obj | None) -> ObjectStep:
    """Return what is known of an object, without a decision about a write."""
    found = owner.holder(live)
    theirs = owner.number_of(live) if live is not None else 0
    adoption = owner.adoption or manifest.adoption
    decided = (
        Handover.COLLIDE
        if adoption is None
        else hand_over(found, theirs=theirs, ours=owner.revision, adoption=adoption)
    )
    return ObjectStep(
        manifest=manifest,
        live=live,
        is_controlled=found is Holder.SELF,
        handover=decided,
        result=probe(owner.probes, live),
        collision=_collision(owner, live) if decided is Handover.COLLIDE and live is not None else "",
    )


def decide(owner: PhaseOwner, step: ObjectStep, answers: Answers) -> ObjectStep:
    """Return the step with what is written next, with what the server refuses, or with what has to be asked first."""
    if step.handover is Handover.KEEP:
        return _keep(owner, step, answers)
    return _gain(owner, step, answers) if gains(owner, step) else step


def gains(owner: PhaseOwner, step: ObjectStep) -> bool:
    """Say whether an owner is to create an object or to take it over; a superseded failure does neither."""
    if step.handover is Handover.CREATE:
        return owner.creates and step.manifest.key not in owner.siblings.taken
    return owner.creates and step.handover is Handover.TAKE


def _gain(owner: PhaseOwner, step: ObjectStep, answers: Answers) -> ObjectStep:
    """
    Create an object or take it over, once live reads confirm that the owner still is to have it.

    A cache may not know yet that the owner is archived or being deleted. Its objects are
    gone then, or were released, and what is created after that would never be deleted.
    Nor does it know what a newer revision has taken in phases that others reconcile, and it may
    lack a newer revision that has the object.
    """
    gained = _create(owner, step, answers) if step.live is None else _take(owner, step, answers)
    confirmation = check_live(owner.checks, answers)
    unknown = owner.unknown_controller(step.live)
    reads = (*owner.siblings.shared, *((unknown,) if unknown is not None else ()))
    if asked := (*confirmation.pending, *(one for one in reads if one not in answers)):
        # Together with the dry run, so that one round of queries is enough.
        return replace(step, queries=(*asked, *gained.queries))
    is_taken = has_lost(owner, answers) or has_unknown_sibling(owner, step.live, answers)
    return gained if confirmation.is_confirmed and not is_taken else step


def probe(probes: Probes, live: Obj | None) -> ProbeResult:
    """Return whether an object is available; one that is missing, or is being deleted, is not."""
    if live is None:
        return unhealthy("not found")
    if meta.is_deleting(live):
        return unhealthy("is being deleted")
    return probes.probe(live)


def _collision(owner: PhaseOwner, live: Obj) -> str:
    controller = owner.controller(live)
    if controller is None:
        return "refusing adoption, not owned by previous revision: it exists and has no controller"
    who = f"{controller['kind']} {controller['name']}"
    if owner.holder(live) is Holder.SIBLING:
        return f"revision collision: {who} has revision number {owner.revision}, too"
    return f"refusing adoption, not owned by previous revision: {who} controls it"


def _create(owner: PhaseOwner, step: ObjectStep, answers: Answers) -> ObjectStep:
    body = owner.record.taken(_desired(owner, step.manifest), None, owner.obj)
    key = digest(["create", body, owner.cluster])
    manager = owner.conventions.manager
    query = DryRun(obj=body, manager=manager, key=key, cluster=owner.cluster, fresh=True)
    return _checked(owner, step, query, answers, Create(obj=body, cluster=owner.cluster))


def _keep(owner: PhaseOwner, step: ObjectStep, answers: Answers) -> ObjectStep:
    live, manager, former = step.live, owner.conventions.manager, owner.conventions.former_managers
    assert live is not None, "what is kept exists"
    body = _kept_body(owner, step.manifest, live)
    if has_updated(live, (manager, *former)):
        # What was created becomes what was applied, so that a later apply removes what it no longer names.
        merged = merge_into_apply(live, body, manager, former, answers, cluster=owner.cluster)
        asks = isinstance(merged, DryRun)
        return replace(step, queries=(merged,)) if asks else replace(step, action=merged)
    query = apply_query(live, body, manager)
    if query is None:
        return step
    query = _on(query, owner.cluster)
    if check_apply(query, live, answers).effect is Effect.NONE:
        return step
    return _checked(owner, step, query, answers, _apply(owner, body, live))


def _take(owner: PhaseOwner, step: ObjectStep, answers: Answers) -> ObjectStep:
    live = step.live
    assert live is not None, "what is taken over exists"
    body = owner.record.taken(_desired(owner, step.manifest), live, owner.obj)
    query = apply_query(live, body, owner.conventions.manager)
    assert query is not None, "an object of another revision is never what this one applied"
    return _checked(owner, step, _on(query, owner.cluster), answers, _apply(owner, body, live))


def _desired(owner: PhaseOwner, manifest: Manifest) -> Made:
    return desired(manifest, owner.obj, owner.revision, owner.conventions)


def _kept_body(owner: PhaseOwner, manifest: Manifest, live: Obj) -> Made:
    """Return an object to apply again: with those owner references that were applied, and no others."""
    body, labels = _desired(owner, manifest), meta.labels(live)
    body["metadata"]["labels"] |= {
        name: value for name, value in owner.conventions.tolerated_labels.items() if labels.get(name) == value
    }
    known = {owner.uid, *owned_references(live, owner.conventions.manager)}
    return owner.record.kept(body, live, owner.obj, known)


def _apply(owner: PhaseOwner, body: Made, live: Obj) -> Apply:
    decided_on = meta.with_metadata(body, uid=meta.uid(live), resourceVersion=meta.resource_version(live))
    return Apply(obj=decided_on, force=True, manager=owner.conventions.manager, cluster=owner.cluster)


def _checked(
    owner: PhaseOwner, step: ObjectStep, query: DryRun, answers: Answers, action: Create | Apply
) -> ObjectStep:
    """Return the step with an action, or with what the server refuses about it now."""
    match answers.get(query):
        case None:
            return replace(step, queries=(query,))
        case Refused() if not query.fresh:
            # It may be the answer to an earlier one, and what was refused then may be accepted now.
            again = dataclasses.replace(query, obj=action.obj, fresh=True)
            return _checked(owner, step, again, answers, action)
        case Refused(code=code, because=because):
            return _refused(owner, step, answers, because, is_stale=code == Conflict.code)
        case Unserved():
            where = step.manifest.key.namespace
            missing = f'namespace "{where}" not found; create it in an earlier phase'
            return replace(step, violation=missing if where else "its kind is not served any more")
        case _:
            return replace(step, action=action)


def _refused(
    owner: PhaseOwner, step: ObjectStep, answers: Answers, because: str, *, is_stale: bool
) -> ObjectStep:
    """
    Return the step with a violation, unless the object is not any more as it was seen.

    Another revision may write it at the same time; the event of that write leads to the next pass.
    """
    if is_stale:
        return step
    if step.live is None:
        read = Read(step.manifest.ref(owner.cluster))
        match answers.get(read):
            case None:
                return replace(step, queries=(read,))
            case Found():
                return step
    return replace(step, violation=because)


def _on(query: DryRun, cluster: str) -> DryRun:
    return dataclasses.replace(query, cluster=cluster) if cluster else query


def described(steps: Iterable[ObjectStep]) -> str:
    """Return failing objects with their reasons, as conditions have them."""
    return ", ".join(f"{one.manifest.key}: {one.result.because}" for one in steps)
