"""
Rollback by the deprecated annotation.

Current versions of kubectl write the old template into the Deployment instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lamina.actors.workloads.deployment.new_replicaset import last_revision, parsed_revision, revision
from lamina.actors.workloads.deployment.sets import NOT_COPIED, ROLLBACK, ReplicaSet
from lamina.actors.workloads.templates import HASH_LABEL, is_same
from lamina.core.model.events import normal, warning
from lamina.core.model.plan import Emit, Plan, Replace, Stage
from lamina.objects import meta
from lamina.objects.types import Made, Obj


def requested_revision(deployment: Obj) -> int | None:
    """Return the requested revision, 0 for the previous one; None without a request."""
    return parsed_revision(meta.annotations(deployment).get(ROLLBACK) or "")


def rollback_plan(deployment: Obj, sets: Sequence[ReplicaSet], to: int, *, by: str, now: datetime) -> Plan:
    """Return the plan that restores a revision's template, or reports why not; it removes the annotation."""
    occasion = meta.resource_version(deployment)
    plain = meta.without_annotation(deployment, ROLLBACK)
    number = to or last_revision(sets)
    chosen = next((one for one in sets if revision(one.observed) == number), None)
    if not number or chosen is None:
        reason = "DeploymentRollbackRevisionNotFound"
        missing = "the revision to rollback to" if number else "last revision"
        event = warning(deployment, reason, f"Unable to find {missing}.", by=by, now=now, occasion=occasion)
    elif is_same(chosen.observed["spec"]["template"], deployment["spec"]["template"]):
        message = (
            "The rollback revision contains the same template as current deployment "
            f'"{meta.name(deployment)}"'
        )
        reason = "DeploymentRollbackTemplateUnchanged"
        event = warning(deployment, reason, message, by=by, now=now, occasion=occasion)
    else:
        plain = _with_template(plain, chosen)
        message = f'Rolled back deployment "{meta.name(deployment)}" to revision {number}'
        event = normal(deployment, "DeploymentRollback", message, by=by, now=now, occasion=occasion)
    return Plan(
        stages=(
            Stage("roll back", (Replace(obj=plain),)),
            Stage("record events", (Emit(event=event),)),
        ),
        because=event["message"],
    )


def _with_template(deployment: Obj, chosen: ReplicaSet) -> Made:
    """Return the Deployment with a ReplicaSet's template and annotations."""
    template = chosen.observed["spec"]["template"]
    head = template.get("metadata") or {}
    labels = {key: value for key, value in (head.get("labels") or {}).items() if key != HASH_LABEL}
    kept = {key: value for key, value in meta.annotations(deployment).items() if key in NOT_COPIED}
    taken = {key: value for key, value in meta.annotations(chosen.observed).items() if key not in NOT_COPIED}
    back = meta.with_metadata(deployment, annotations=kept | taken)
    return {
        **back,
        "spec": {**back["spec"], "template": {**template, "metadata": {**head, "labels": labels}}},
    }
