"""Definitions of ManagedClusters, their sets, scores and claims, and of Placements."""

from __future__ import annotations

from lamina.core.crd.schema_dsl import (
    AGE,
    amount,
    choice,
    column,
    condition_path,
    conditions,
    fields,
    label_selector,
    map_of,
    moment,
    several,
    text,
    whole,
    yes_or_no,
)
from lamina.families.manifestwork.crds.definition import definition
from lamina.families.manifestwork.labels import (
    CLUSTER,
    CLUSTER_CLAIM,
    CLUSTER_SET,
    CLUSTER_SET_BINDING,
    DECISION,
    PLACEMENT,
    SCORE,
)
from lamina.objects.types import Made, Obj

_QUANTITY: Obj = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    "x-kubernetes-int-or-string": True,
}
_LABEL_KEY = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"


def managed_cluster() -> Made:
    taint = fields(
        {
            "key": text(minLength=1, maxLength=316, pattern=_LABEL_KEY),
            "value": text(maxLength=1024),
            "effect": choice("NoSelect", "PreferNoSelect", "NoSelectIfNew"),
            "timeAdded": moment(nullable=True),
        },
        "effect",
        "key",
    )
    client = fields({"url": text(), "caBundle": text(format="byte")})
    spec = fields(
        {
            "hubAcceptsClient": yes_or_no(default=False),
            "leaseDurationSeconds": whole(default=60),
            "managedClusterClientConfigs": several(client),
            "taints": several(taint),
        },
    )
    claim = fields({"name": text(minLength=1, maxLength=253), "value": text(minLength=1, maxLength=1024)})
    status = fields(
        {
            "conditions": conditions(),
            "allocatable": map_of(_QUANTITY),
            "capacity": map_of(_QUANTITY),
            "clusterClaims": several(claim),
            "version": fields({"kubernetes": text()}),
        }
    )
    return definition(
        CLUSTER,
        "managedclusters",
        fields({"spec": spec, "status": status}),
        versions=("v1",),
        short=("mcl", "mcls"),
        namespaced=False,
        columns=(
            column("Hub Accepted", ".spec.hubAcceptsClient", "boolean"),
            column("Managed Cluster URLs", ".spec.managedClusterClientConfigs[*].url"),
            column("Joined", condition_path("ManagedClusterJoined", "status")),
            column("Available", condition_path("ManagedClusterConditionAvailable", "status")),
            AGE,
        ),
    )


def cluster_claim() -> Made:
    """Return the definition of the claims on a cluster, which its agent reports to the hub."""
    spec = fields({"value": text(minLength=1, maxLength=1024)})
    return definition(
        CLUSTER_CLAIM, "clusterclaims", fields({"spec": spec}), versions=("v1alpha1",), namespaced=False
    )


def managed_cluster_set() -> Made:
    usual: Obj = {"selectorType": "ExclusiveClusterSetLabel"}
    selector = fields(
        {
            "selectorType": choice(
                "ExclusiveClusterSetLabel", "LabelSelector", default="ExclusiveClusterSetLabel"
            ),
            "labelSelector": label_selector(),
        },
        default=dict(usual),
    )
    spec = fields({"clusterSelector": selector}, default={"clusterSelector": dict(usual)})
    return definition(
        CLUSTER_SET,
        "managedclustersets",
        fields({"spec": spec, "status": fields({"conditions": conditions()})}),
        versions=("v1beta2",),
        short=("mclset", "mclsets"),
        namespaced=False,
        columns=(column("Empty", condition_path("ClusterSetEmpty", "status")), AGE),
    )


def managed_cluster_set_binding() -> Made:
    spec = fields({"clusterSet": text(minLength=1)})
    return definition(
        CLUSTER_SET_BINDING,
        "managedclustersetbindings",
        fields({"spec": spec, "status": fields({"conditions": conditions()})}),
        versions=("v1beta2",),
        short=("mclsetbinding", "mclsetbindings"),
    )


def add_on_placement_score() -> Made:
    score = fields({"name": text(), "value": whole(minimum=-100, maximum=100)}, "name", "value")
    status = fields(
        {
            "conditions": conditions(),
            "scores": several(
                score, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
            ),
            "validUntil": moment(),
        }
    )
    return definition(SCORE, "addonplacementscores", fields({"status": status}), versions=("v1alpha1",))


def _cluster_selector() -> Made:
    requirement = fields({"key": text(), "operator": text(), "values": several(text())}, "key", "operator")
    return fields(
        {
            "labelSelector": label_selector(),
            "claimSelector": fields({"matchExpressions": several(requirement)}),
            "celSelector": fields({"celExpressions": several(text())}),
        }
    )


def _prioritizer() -> Made:
    add_on = fields({"resourceName": text(), "scoreName": text()}, "resourceName", "scoreName")
    coordinate = fields(
        {"type": choice("BuiltIn", "AddOn", default="BuiltIn"), "builtIn": text(), "addOn": add_on}, "type"
    )
    configuration = fields(
        {"scoreCoordinate": coordinate, "weight": whole(minimum=-10, maximum=10, default=1)},
        "scoreCoordinate",
    )
    return fields(
        {
            "mode": choice("Additive", "Exact", "", default="Additive"),
            "configurations": several(configuration),
        }
    )


def placement() -> Made:
    group = fields(
        {
            "groupName": text(pattern="^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$"),
            "groupClusterSelector": _cluster_selector(),
        },
        "groupClusterSelector",
        "groupName",
    )
    strategy = fields(
        {
            "decisionGroups": several(group),
            "clustersPerDecisionGroup": amount("^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$", default="100%"),
        }
    )
    toleration = fields(
        {
            "key": text(maxLength=316, pattern=_LABEL_KEY),
            "operator": choice("Equal", "Exists", default="Equal"),
            "value": text(maxLength=1024),
            "effect": choice("NoSelect", "PreferNoSelect", "NoSelectIfNew"),
            "tolerationSeconds": whole("int64"),
        }
    )
    spread = fields(
        {
            "maxSkew": whole(minimum=1, default=1),
            "topologyKey": text(),
            "topologyKeyType": choice("Label", "Claim"),
            "whenUnsatisfiable": choice("DoNotSchedule", "ScheduleAnyway", default="ScheduleAnyway"),
        },
        "topologyKey",
        "topologyKeyType",
    )
    spec = fields(
        {
            "clusterSets": several(text()),
            "numberOfClusters": whole(),
            "predicates": several(fields({"requiredClusterSelector": _cluster_selector()})),
            "prioritizerPolicy": _prioritizer(),
            "tolerations": several(toleration),
            "decisionStrategy": fields({"groupStrategy": strategy}),
            "spreadPolicy": fields({"spreadConstraints": several(spread, maxItems=8)}),
            "sortBy": choice("ClusterName", "Score"),
            "scoreRateLimit": text(),
        }
    )
    decided = fields(
        {
            "decisionGroupIndex": whole(),
            "decisionGroupName": text(),
            "decisions": several(text()),
            "clusterCount": whole(default=0),
        }
    )
    status = fields(
        {
            "numberOfSelectedClusters": whole(),
            "decisionGroups": several(decided),
            "conditions": conditions(),
        }
    )
    return definition(
        PLACEMENT,
        "placements",
        fields({"spec": spec, "status": status}, "spec"),
        versions=("v1beta1",),
        columns=(
            column("Succeeded", condition_path("PlacementSatisfied", "status")),
            column("Reason", condition_path("PlacementSatisfied", "reason")),
            column("SelectedClusters", ".status.numberOfSelectedClusters", "integer"),
        ),
    )


def placement_decision() -> Made:
    decision = fields(
        {"clusterName": text(), "reason": text(), "score": whole("int64")}, "clusterName", "reason"
    )
    status = fields({"decisions": several(decision, maxItems=100)}, "decisions")
    return definition(DECISION, "placementdecisions", fields({"status": status}), versions=("v1beta1",))
