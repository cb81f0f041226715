"""A simulated hub with clusters, their cluster sets, and placements that select among them."""

from dataclasses import dataclass, field
from typing import Any

from lamina.families.manifestwork.labels import CLUSTER_GROUP, PLACEMENT_VERSION
from lamina.families.manifestwork.placement.controller import PLACEMENTS
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import SimulatedCluster, settle
from lamina.simulation.cluster.kinds import KINDS, kind, make

PLACEMENT = kind(PLACEMENT_VERSION, "Placement", "placements", subresources=("status",))
DECISION = kind(PLACEMENT_VERSION, "PlacementDecision", "placementdecisions", subresources=("status",))
CLUSTER = kind(
    f"{CLUSTER_GROUP}/v1", "ManagedCluster", "managedclusters", namespaced=False, subresources=("status",)
)
SET = kind(
    f"{CLUSTER_GROUP}/v1beta2",
    "ManagedClusterSet",
    "managedclustersets",
    namespaced=False,
    subresources=("status",),
)
BINDING = kind(
    f"{CLUSTER_GROUP}/v1beta2",
    "ManagedClusterSetBinding",
    "managedclustersetbindings",
    subresources=("status",),
)
SCORE = kind(f"{CLUSTER_GROUP}/v1alpha1", "AddOnPlacementScore", "addonplacementscores")
LEASE = kind("coordination.k8s.io/v1", "Lease", "leases")
SET_LABEL = f"{CLUSTER_GROUP}/clusterset"


@dataclass
class Land(SimulatedCluster):
    """One hub."""

    kinds: Kinds = field(
        default_factory=lambda: Kinds(
            [*KINDS.versions(), PLACEMENT, DECISION, CLUSTER, SET, BINDING, SCORE, LEASE]
        )
    )

    def bound(self, name: str = "fleet", namespace: str = "team", **selector: Any) -> None:
        """Have a set, bound to a namespace."""
        if self.at(Ref(SET.api_version, SET.kind, "", name)) is None:
            self.create(make(SET, name, spec={"clusterSelector": selector}))
        self.create(make(BINDING, name, namespace, spec={"clusterSet": name}))

    def clusters(self, *names: str, member_of: str = "fleet", **fields: Any) -> None:
        labels = {SET_LABEL: member_of, **fields.pop("labels", {})}
        for name in names:
            self.create(make(CLUSTER, name, labels=labels, **{"spec": {}, **fields}))

    def place(self, name: str = "place", **spec: Any) -> Obj:
        """Create or change a placement, and schedule it."""
        ref = Ref(PLACEMENT.api_version, PLACEMENT.kind, "team", name)
        old = self.at(ref)
        if old is None:
            self.create(make(PLACEMENT, name, "team", spec=spec))
        else:
            self.replace({**old, "spec": spec}, "")
        return self.scheduled(name)

    def scheduled(self, name: str = "place") -> Obj:
        settle(self, PLACEMENTS)
        return self.get(Ref(PLACEMENT.api_version, PLACEMENT.kind, "team", name))

    def chosen(self, name: str = "place") -> list[list[str]]:
        """Return the selected clusters, a list for each PlacementDecision, by number."""
        prefix = f"{name}-decision-"
        found = [one for one in self.listed(DECISION, "team") if meta.name(one).startswith(prefix)]
        found.sort(key=lambda one: int(meta.name(one).removeprefix(prefix)))
        return [[own["clusterName"] for own in one["status"]["decisions"]] for one in found]


def said(obj: Obj, condition: str) -> tuple[str, str, str]:
    found = conditions.find(obj["status"]["conditions"], condition)
    assert found is not None
    return found["status"], found.get("reason", ""), found.get("message", "")


def labelled(**labels: str) -> Made:
    return {"requiredClusterSelector": {"labelSelector": {"matchLabels": labels}}}
