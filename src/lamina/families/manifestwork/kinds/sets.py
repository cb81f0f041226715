"""What a ManifestWorkReplicaSet holds."""

from __future__ import annotations

from lamina.families.manifestwork.kinds.words import (
    amount,
    choice,
    column,
    conditions,
    definition,
    fields,
    moment,
    said,
    several,
    text,
    whole,
)
from lamina.families.manifestwork.kinds.works import work_spec
from lamina.families.manifestwork.names import REPLICA_SET
from lamina.objects.types import Made, Obj

DEADLINE = "^([0-9]+[hms]|None)$"
"""Anchored: the pattern as it was published also let through what no reader of it understands."""
_COUNTS = ("total", "progressing", "available", "degraded", "applied", "desiredTotal", "updated")


def _strategy() -> Made:
    """How a change goes out: three manners, each with its own block, of which the one that is chosen counts."""
    pace: Obj = {
        "minSuccessTime": text(default="0"),
        "progressDeadline": text(default="None", pattern=DEADLINE),
        "maxFailures": amount(default=0),
    }
    mandatory: Obj = {
        "mandatoryDecisionGroups": several(fields({"groupName": text(), "groupIndex": whole()})),
    }
    return fields(
        {
            "type": choice("All", "Progressive", "ProgressivePerGroup", default="All"),
            "all": fields(pace),
            "progressive": fields({**pace, **mandatory, "maxConcurrency": amount()}),
            "progressivePerGroup": fields({**pace, **mandatory}),
            # An empty one, and null, mean that nothing is done about a failure, as none does. No list of values
            # can have null in it, so this is a pattern.
            "failureStrategy": text(pattern="^(AbortAll)?$", nullable=True),
        },
        default={"type": "All", "all": {"progressDeadline": "None"}},
    )


def _summary() -> Made:
    return fields({name: {"type": "integer"} for name in _COUNTS})


def replica_set() -> Made:
    placement = fields({"name": text(minLength=1), "rolloutStrategy": _strategy()}, "name")
    spec = fields(
        {
            "manifestWorkTemplate": work_spec(),
            "placementRefs": several(placement, minItems=1),
            "cascadeDeletionPolicy": choice("Background", "Foreground", default="Background"),
            "revisionHistoryLimit": whole(minimum=0, default=10),
        },
        "placementRefs",
    )
    placed = fields({"name": text(), "availableDecisionGroups": text(), "summary": _summary()})
    status = fields(
        {
            "conditions": conditions(),
            "summary": _summary(),
            "placementSummary": several(placed),
            "collisionCount": whole(),
            "currentRevision": text(),
            "updateRevision": text(),
            "abortedTime": moment(),
        }
    )
    return definition(
        REPLICA_SET,
        "manifestworkreplicasets",
        fields({"spec": spec, "status": status}),
        versions=("v1alpha1", "v1"),
        short=("mwrs",),
        columns=(
            column("Placement", said("PlacementVerified", "reason"), description="Reason"),
            column("Found", said("PlacementVerified", "status"), description="Configured"),
            column("ManifestWorks", said("ManifestworkApplied", "reason"), description="Reason"),
            column("Applied", said("ManifestworkApplied", "status"), description="Applied"),
        ),
    )
