"""Rollback: writes an older revision's snapshot into the parent's spec, which rolls out like any other change."""

from __future__ import annotations

from msgspec.structs import replace

from lamina.core.model.plan import Plan
from lamina.core.rollout.history import History, history
from lamina.core.rollout.rollback import rollback as write_back
from lamina.errors import RevisionNotFound, SpecError
from lamina.families.metacontroller.sync.revisions import ParentRevisions, revisions, with_snapshot
from lamina.families.metacontroller.sync.view import View
from lamina.objects import meta


def revised(found: ParentRevisions) -> tuple[History, int]:
    """Return the history with the revision of the current spec, stored or not, and its number."""
    latest, others = found.latest.revision, [one.revision for one in found.others]
    wanted = latest if latest.obj is not None else replace(latest, number=found.number)
    return history([*others, wanted]), wanted.number


def rollback(view: View, to: int | None) -> Plan:
    """
    Return the plan that writes an old snapshot into the parent; nothing but the spec changes.

    Raises RevisionNotFound for a revision that is not kept, and SpecError for a
    parent that has none.
    """
    if not view.setup.rolls:
        ref = meta.ref(view.parent)
        raise SpecError(
            f"{ref} has no revisions: no kind of child of {view.setup.name} rolls",
            hint="use RollingInPlace or RollingRecreate, and revisionHistory.limit to keep some",
        )
    kept, goal = revised(revisions(view))
    try:
        return write_back(
            view.parent,
            kept,
            goal,
            to,
            lambda revision: with_snapshot(view.parent, revision, view.setup.paths),
        )
    except RevisionNotFound:
        if view.setup.history_limit:
            raise
        # Without a limit, a revision is deleted as soon as no child is on it.
        raise RevisionNotFound(
            meta.ref(view.parent),
            to,
            [one.number for one in kept.revisions],
            hint=f"set spec.parentResource.revisionHistory.limit of {meta.ref(view.setup.obj)}, and older revisions are kept",
        ) from None
