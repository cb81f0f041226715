"""The way back: an old snapshot written into the parent, which rolls out like any other change."""

from __future__ import annotations

from lamina.core.family import Account
from lamina.core.history import History, history, to_return_to
from lamina.core.plan import Plan, Replace, one_stage
from lamina.core.revision import Revision
from lamina.errors import SpecError
from lamina.families.metacontroller.revisions import as_it_was
from lamina.families.metacontroller.rolling import Album, album
from lamina.families.metacontroller.view import View
from lamina.objects import conditions, meta
from lamina.objects.types import Ref

_STATES = {
    "OnLatestRevision": "settled",
    "RolloutProgressing": "moving",
    "RolloutWaiting": "waiting",
    "RolloutStalled": "failed",
    "RolloutPaused": "held",
}


def account(view: View) -> Account:
    """Return how a parent stands: its revisions, and which of its children is on which."""
    if not view.setup.rolls:
        return Account(owner=view.parent, history=History(), goal=0, state="unnumbered",
                       because="none of its children's kinds rolls, so it has no revisions")  # fmt: skip
    revisions = album(view)
    told, goal = _told(revisions)
    numbers = {one.name: one.number for one in told.revisions}
    targets: dict[str, int] = {}
    for kept in (revisions.latest, *revisions.others):
        for kind, name in kept.claimed:
            targets.setdefault(f"{kind.kind} {name}", numbers[kept.name])
    state, because = _said(view)
    return Account(owner=view.parent, history=told, goal=goal, targets=targets, state=state, because=because)


def _said(view: View) -> tuple[str, str]:
    """Return a word and a sentence: what the parent's status says of its rollout, if it is about this spec."""
    said = conditions.find(conditions.of(view.parent), "Updated")
    if said is None:
        return "unknown", "its controller has not said anything yet"
    status = view.parent["status"]
    if status.get("observedGeneration", meta.generation(view.parent)) < meta.generation(view.parent):
        return "waiting", "its controller has not looked at the latest change yet"
    return _STATES.get(said.get("reason", ""), "unknown"), said.get("message", "")


def _told(revisions: Album) -> tuple[History, int]:
    """Return the history, with a number for what is wanted and not kept yet, and that number."""
    others = [one.revision for one in revisions.others]
    latest = revisions.latest
    if latest.obj is None:
        past = history(others)
        wanted = Revision(number=past.next_number, name=latest.name, snapshot=latest.revision.snapshot)
        return history([*others, wanted]), wanted.number
    return history([*others, latest.revision]), latest.revision.number


def rollback(view: View, to: int | None) -> Plan:
    """
    Return the plan that writes an old snapshot into the parent; nothing but the spec changes.

    Raises RevisionNotFound for a revision that is not kept, and SpecError for a
    parent that has none.
    """
    ref: Ref = meta.ref(view.parent)
    if not view.setup.rolls:
        raise SpecError(
            f"{ref} has no revisions: no kind of child of {view.setup.name} rolls",
            hint="use RollingInPlace or RollingRecreate, and revisionHistory.limit to keep some",
        )
    told, goal = _told(album(view))
    wanted = to_return_to(ref, told, goal, to)
    past = as_it_was(view.parent, wanted, view.setup.paths)
    return one_stage(
        "write the old snapshot",
        [Replace(obj=past)] if past != view.parent else [],
        because=f"returning {ref} to what revision {wanted.number} holds",
    )
