"""The way back to an older revision of a deployment."""

from __future__ import annotations

from lamina.core.model.plan import Plan
from lamina.core.model.world import World
from lamina.core.rollout.revision import CHANGE_CAUSE, Revision
from lamina.core.rollout.rollback import rollback as write_back
from lamina.errors import LaminaError, SpecError
from lamina.families.objectset.deployments.template import find, revisions
from lamina.families.objectset.deployments.view import gather
from lamina.families.objectset.labels import SETS
from lamina.objects import meta
from lamina.objects.types import GroupKind, Obj, Ref


def roll_back(world: World, ref: Ref, to: int | None) -> Plan:
    """
    Return the plan that writes an old template into a deployment, which rolls out like any other change.

    Without a number, it is that of the newest earlier revision that has succeeded. Raises
    RevisionNotFound for a revision that is not kept, and SpecError for a set, which is one revision.
    """
    if GroupKind(ref.group, ref.kind) in SETS:
        raise SpecError(
            f"{ref} is one revision and has no earlier ones",
            hint="roll back its ObjectDeployment; or apply the old objects as a new set with this one in spec.previous",
        )
    view = gather(world, ref)
    if view is None:
        raise LaminaError(f"{ref} does not exist")
    if view.spec is None:
        raise LaminaError(f"{ref} cannot be rolled back: {view.error}")
    found = find(view)
    current = found.current.number if found.current is not None else 0
    if to is None:
        succeeded = [one.number for one in found.previous if one.has_succeeded]
        if not succeeded:
            raise SpecError(
                f"{ref} has no earlier revision that has succeeded",
                hint="name one with --to-revision N; `lamina revisions list` shows all of them",
            )
        to = succeeded[-1]
    stated = view.spec.template.stated

    def restored(revision: Revision) -> Obj:
        snapshot = revision.snapshot
        metadata = {**(stated.get("metadata") or {}), "labels": snapshot["metadata"]["labels"]}
        template = {**stated, "metadata": metadata, "spec": snapshot["spec"]}
        restored_obj = {**view.obj, "spec": {**view.obj["spec"], "template": template}}
        # As `kubectl rollout undo` does: the cause is that of the content.
        causes = {CHANGE_CAUSE: revision.change_cause} if revision.change_cause else {}
        others = {key: value for key, value in meta.annotations(view.obj).items() if key != CHANGE_CAUSE}
        return meta.with_metadata(restored_obj, annotations={**others, **causes})

    return write_back(view.obj, revisions(view), current, to, restored)
