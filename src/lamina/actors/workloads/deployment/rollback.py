"""
Going back because an annotation asks for it, as clients of long ago do.

Today's kubectl writes the old template into the Deployment itself, and none of
this happens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from lamina.actors.workloads.deployment.revising import last_revision, revision
from lamina.actors.workloads.deployment.sets import NOT_COPIED, ROLLBACK, ReplicaSet
from lamina.actors.workloads.templates import HASH_LABEL, is_same
from lamina.core.events import normal, warning
from lamina.core.plan import Emit, Plan, Replace, Stage
from lamina.objects import meta
from lamina.objects.types import Made, Obj

_INTEGER = re.compile("[+-]?[0-9]+", re.ASCII).fullmatch


def asked_for(deployment: Obj) -> int | None:
    """Return the revision to go back to, 0 for the one before; None where nobody asks."""
    written = meta.annotations(deployment).get(ROLLBACK) or ""
    return int(written) if _INTEGER(written) else None


def rolled_back(deployment: Obj, sets: Sequence[ReplicaSet], to: int, *, by: str, now: datetime) -> Plan:
    """Return the plan that puts the template of a revision back, or says why not; either way nobody asks any more."""
    occasion = meta.resource_version(deployment)
    plain = meta.without_annotation(deployment, ROLLBACK)
    number = to or last_revision(sets)
    chosen = next((one for one in sets if revision(one.seen) == number), None)
    if not number or chosen is None:
        reason = "DeploymentRollbackRevisionNotFound"
        missing = "the revision to rollback to" if number else "last revision"
        event = warning(deployment, reason, f"Unable to find {missing}.", by=by, now=now, occasion=occasion)
    elif is_same(chosen.seen["spec"]["template"], deployment["spec"]["template"]):
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
            Stage("go back", (Replace(obj=plain),)),
            Stage("tell", (Emit(event=event),)),
        ),
        because=event["message"],
    )


def _with_template(deployment: Obj, chosen: ReplicaSet) -> Made:
    """Return the Deployment with a set's template, and the annotations that belong to it."""
    template = chosen.seen["spec"]["template"]
    head = template.get("metadata") or {}
    labels = {key: value for key, value in (head.get("labels") or {}).items() if key != HASH_LABEL}
    kept = {key: value for key, value in meta.annotations(deployment).items() if key in NOT_COPIED}
    taken = {key: value for key, value in meta.annotations(chosen.seen).items() if key not in NOT_COPIED}
    back = meta.with_metadata(deployment, annotations=kept | taken)
    return {
        **back,
        "spec": {**back["spec"], "template": {**template, "metadata": {**head, "labels": labels}}},
    }
