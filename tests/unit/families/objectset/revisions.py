"""
A simulated cluster with ObjectSets and ObjectDeployments, and builders of them.

A ConfigMap of a revision is healthy where its annotation `name` is its name, as in the
scenarios of upstream.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from lamina.core.model.controller import AnyController
from lamina.families.objectset.class_phases.view import PhaseClass
from lamina.families.objectset.controllers import deployments, phases, sets
from lamina.families.objectset.labels import API_VERSION
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import SimulatedCluster, settle
from lamina.simulation.cluster.kinds import KINDS, kind

NAMESPACE = "default"
OWN_KINDS = tuple(
    kind(
        API_VERSION,
        name,
        f"{name.lower()}s",
        namespaced=not name.startswith("Cluster"),
        subresources=("status",),
    )
    for base in ("ObjectSet", "ObjectDeployment", "ObjectSetPhase", "ObjectSlice")
    for name in (base, f"Cluster{base}")
)
CONTROLLERS: tuple[AnyController, ...] = (sets(), deployments(), phases(PhaseClass()))
HEALTHY_BY_NAME: Made = {
    "selector": {"kind": {"group": "", "kind": "ConfigMap"}},
    "probes": [{"fieldsEqual": {"fieldA": ".metadata.name", "fieldB": ".metadata.annotations.name"}}],
}


def config_map(name: str, *, healthy: bool = True, namespace: str = "", **data: str) -> Made:
    """A ConfigMap; one that is not healthy lacks the annotation that the probe looks for."""
    metadata: Made = {"name": name}
    if healthy:
        metadata["annotations"] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {"key": "value"}}


def phase(name: str, *objects: Made, protection: str = "", **fields: Any) -> Made:
    items: list[Made] = []
    for one in objects:
        item: Made = {"object": one}
        if protection:
            item["collisionProtection"] = protection
        items.append(item)
    return {"name": name, "objects": items, **fields}


def template(*those: Made, probed: bool = True, **fields: Any) -> Made:
    """The spec of a set, or of the template of a deployment."""
    probes = {"availabilityProbes": [HEALTHY_BY_NAME]} if probed else {}
    return {"phases": list(those), **probes, **fields}


def object_set(
    name: str, spec: Obj, *, previous: Iterable[str] = (), cluster: bool = False, **fields: Any
) -> Made:
    """A set; `previous` are the names of the sets that it may take objects from."""
    earlier = {"previous": [{"name": one} for one in previous]} if previous else {}
    metadata: Made = {"name": name} if cluster else {"name": name, "namespace": NAMESPACE}
    kind_name = "ClusterObjectSet" if cluster else "ObjectSet"
    return {
        "apiVersion": API_VERSION, "kind": kind_name, "metadata": metadata,
        "spec": {"lifecycleState": "Active", **spec, **earlier, **fields},
    }  # fmt: skip


def deployment(
    name: str, spec: Obj, *, cluster: bool = False, labels: Mapping[str, str] | None = None, **fields: Any
) -> Made:
    marked = dict(labels or {"app": name})
    metadata: Made = {"name": name} if cluster else {"name": name, "namespace": NAMESPACE}
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterObjectDeployment" if cluster else "ObjectDeployment",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": marked},
            "template": {"metadata": {"labels": marked}, "spec": spec},
            **fields,
        },
    }


class Revisions:
    """A simulated cluster that runs the controllers of this family."""

    def __init__(self, *controllers: AnyController, kinds: Sequence[Kind] = ()) -> None:
        self.cluster = SimulatedCluster(
            kinds=Kinds((*KINDS.versions(), *OWN_KINDS, *kinds)), tracks_creates=True
        )
        self.controllers = controllers or CONTROLLERS

    def apply(self, *objects: Made) -> None:
        """Create objects, or replace the specs of those that exist, and let the controllers settle."""
        for obj in objects:
            ref = meta.ref(obj)
            live = self.cluster.at(ref)
            if live is None:
                self.cluster.create(obj)
            else:
                self.cluster.replace(
                    {**live, **{key: value for key, value in obj.items() if key != "metadata"}}
                )
        self.settle()

    def edit(self, ref: Ref, patch: Obj) -> None:
        self.cluster.patch(ref, patch)
        self.settle()

    def settle(self) -> None:
        settle(self.cluster, *self.controllers)

    def pass_time(self, seconds: float) -> None:
        self.cluster.now += timedelta(seconds=seconds)
        self.settle()

    def get(self, kind_name: str, name: str, namespace: str = NAMESPACE) -> Made | None:
        own = any(one.kind == kind_name for one in OWN_KINDS)
        return self.cluster.at(Ref(API_VERSION if own else "v1", kind_name, namespace, name))

    def set(self, name: str) -> Made:
        found = self.get("ObjectSet", name)
        assert found is not None, f"there is no ObjectSet {name}"
        return found

    def sets_of(self, deployment_name: str) -> list[Made]:
        """The sets of a deployment, by their revision numbers."""
        sets = [obj for ref, obj in self.cluster.objects.items() if ref.kind == "ObjectSet"]
        controllers = ((one, meta.controller_of(one)) for one in sets)
        owned = [one for one, found in controllers if found is not None and found["name"] == deployment_name]
        return sorted(owned, key=lambda one: one["spec"]["revision"])

    def condition(self, obj: Obj, name: str) -> tuple[str, str] | None:
        found = conditions.find(conditions.of(obj), name)
        return (found["status"], found.get("reason", "")) if found is not None else None

    def config_map(self, name: str) -> Made | None:
        return self.get("ConfigMap", name)

    def controller(self, name: str) -> str:
        """The name of the controller of a ConfigMap."""
        obj = self.config_map(name)
        found = meta.controller_of(obj) if obj is not None else None
        return found["name"] if found is not None else ""

    def controlled(self, set_name: str) -> list[str]:
        return [one["name"] for one in self.set(set_name).get("status", {}).get("controllerOf") or ()]


def ref(kind_name: str, name: str) -> Ref:
    own = any(one.kind == kind_name for one in OWN_KINDS)
    return Ref(API_VERSION if own else "v1", kind_name, NAMESPACE, name)
