"""Definition of ManifestWorkReplicaSet."""

from __future__ import annotations

from lamina.core.crd.schema_dsl import (
    amount,
    choice,
    column,
    condition_path,
    conditions,
    fields,
    moment,
    several,
    text,
    whole,
)
from lamina.families.manifestwork.crds.definition import definition
from lamina.families.manifestwork.crds.manifestwork import work_spec
from lamina.families.manifestwork.labels import REPLICA_SET
from lamina.objects.types import Made, Obj

_UNIT = "(ns|us|µs|μs|ms|s|m|h)"
DEADLINE = rf"^([0-9]+(h|m|s|ms)(([0-9]+(\.[0-9]*)?|\.[0-9]+){_UNIT})*|None)$"
"""What the upstream pattern admits and Go parses; that pattern is not anchored, and also admits `10sX`."""
_COUNTS = ("total", "progressing", "available", "degraded", "applied", "desiredTotal", "updated")


def _strategy() -> Made:
    """Return the rollout strategy: three types, each with its own settings, of which those of the type are used."""
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
            # Empty, null and unset mean that a failure aborts nothing. An enum cannot hold null, so this is a pattern.
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
            column("Placement", condition_path("PlacementVerified", "reason"), description="Reason"),
            column("Found", condition_path("PlacementVerified", "status"), description="Configured"),
            column("ManifestWorks", condition_path("ManifestworkApplied", "reason"), description="Reason"),
            column("Applied", condition_path("ManifestworkApplied", "status"), description="Applied"),
        ),
    )
