"""Preview: what a new revision would create, take over and delete, before it is made."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lamina.core.ownership.handover import Handover, Holder
from lamina.core.phases.manifest import Manifest, ObjectKey
from lamina.core.phases.object_step import observe
from lamina.core.phases.owner import PhaseOwner
from lamina.core.phases.targets import RevisionObjects
from lamina.core.rollout.preview import ChangeKind, TargetChange
from lamina.objects import meta
from lamina.objects.types import Obj


def refusal(owner: PhaseOwner, manifest: Manifest, live: Obj | None) -> str:
    """Return why a revision would not get an object; empty where it would."""
    step = observe(owner, manifest, live)
    return f"refused: {step.collision}" if step.handover is Handover.COLLIDE else ""


def object_change(owner: PhaseOwner, manifest: Manifest, live: Obj | None) -> TargetChange | None:
    """Return what a revision would do with an object; None where it would keep it, leave it, or not get it."""
    target = str(manifest.key)
    step = observe(owner, manifest, live)
    if live is None:
        is_new = step.handover is Handover.CREATE
        return TargetChange(target=target, kind=ChangeKind.CREATE) if is_new else None
    if step.handover is not Handover.TAKE:
        return None
    controller = owner.controller(live)
    revision = owner.conventions.written_by(live)
    if controller is None:
        message = "adopted; it has no controller"
        return TargetChange(target=target, kind=ChangeKind.ADOPT, revision=revision, message=message)
    held = f"{controller['kind']} {controller['name']}"
    if owner.holder(live) is Holder.SIBLING:
        message = f"taken over from {held}"
        return TargetChange(target=target, kind=ChangeKind.UPDATE, revision=revision, message=message)
    return TargetChange(target=target, kind=ChangeKind.ADOPT, revision=revision, message=f"taken from {held}")


def given_up(older: RevisionObjects, wanted: Collection[ObjectKey], number: int) -> Iterator[TargetChange]:
    """
    Yield what an older revision controls and a new one does not contain.

    It goes once the new one is available, or stays without an owner where its deletion policy says so.
    """
    found = older.facts
    message = f"when revision {number} is available and {meta.ref(found.obj)} is archived"
    staying = {one.key for one in older.manifests if one.is_orphaned}
    for key in sorted(found.controlled):
        kind = ChangeKind.RELEASE if key in staying else ChangeKind.DELETE
        if key not in wanted:
            yield TargetChange(target=str(key), kind=kind, revision=found.number, message=message)
