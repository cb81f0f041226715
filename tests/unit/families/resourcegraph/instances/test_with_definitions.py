"""Instances together with the controller of their definition: published, moved in waves, pinned, deleted."""

from datetime import timedelta

import pytest

from lamina.actors import DEFINITIONS, GARBAGE
from lamina.families.resourcegraph.controllers import controllers
from lamina.families.resourcegraph.crds import definitions
from lamina.families.resourcegraph.labels import API_VERSION
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.simulation import Loop, Process, SimulatedCluster
from lamina.simulation.cluster.kinds import KINDS
from tests.unit.families.resourcegraph.instances.world import (
    SPEC,
    app,
    cm,
    data,
    instance,
    rgd,
    with_image,
)

GATE = "${exponentiallyUpdated(instances, each)}"


class Both:
    """A simulated cluster with the controllers of this family."""

    def __init__(self) -> None:
        self.cluster = SimulatedCluster(kinds=KINDS, tracks_creates=True)
        for crd in definitions():
            self.cluster.create(crd)
        found = controllers()
        self.process = Process(self.cluster, [found.definitions], [found.instances])
        others = Process(self.cluster, [DEFINITIONS, GARBAGE])
        self.loop = Loop(self.cluster, self.process, others, max_steps=50_000)

    def run(self, seconds: float = 60) -> None:
        self.loop.until(self.cluster.now + timedelta(seconds=seconds))

    def define(self, image: str, **fields: object) -> None:
        """Create the definition, or edit it."""
        schema = {
            "kind": "App",
            "apiVersion": "v1alpha1",
            "group": "kro.run",
            "scope": "Namespaced",
            "spec": dict(SPEC),
        }
        spec: Made = {"schema": schema, "resources": [with_image(image)], **fields}
        live = self.cluster.at(rgd("app"))
        if live is None:
            self.cluster.create(
                {
                    "apiVersion": API_VERSION,
                    "kind": "ResourceGraphDefinition",
                    "metadata": {"name": "app"},
                    "spec": spec,
                }
            )
        else:
            self.cluster.replace({**live, "spec": spec}, "")
        self.run()

    def create(self, count: int) -> None:
        for number in range(count):
            self.cluster.create(instance(f"a{number}"))
            self.run(2)

    def images(self) -> list[str]:
        return [
            data(obj)["image"] for ref, obj in sorted(self.cluster.objects.items()) if ref.kind == "ConfigMap"
        ]


@pytest.mark.check("RG-65")
def test_a_new_revision_reaches_every_instance() -> None:
    both = Both()
    both.define("v1")
    both.create(3)
    both.define("v2")

    assert both.images() == ["v2"] * 3
    status = both.cluster.get(rgd("app"))["status"]
    assert [(one["revision"], one["instanceCount"]) for one in status["revisionHistory"]] == [(2, 3), (1, 0)]


@pytest.mark.check("RG-73")
@pytest.mark.parametrize("gate", [[], [GATE]], ids=["no gate", "a gate"])
def test_a_definition_that_is_made_again_moves_only_the_instances_that_follow(gate: list[str]) -> None:
    both = Both()
    both.define("v1", propagateWhen=gate)
    both.create(2)
    both.cluster.create(instance("a2", annotations={"kro.run/rgd-revision": "1"}))
    both.cluster.create(instance("a3", annotations={"kro.run/update-policy": "Manual"}))
    both.run()
    both.cluster.delete(rgd("app"))
    both.run()
    both.define("v9", propagateWhen=gate)

    assert both.images() == ["v9", "v9", "v1", "v1"]


@pytest.mark.check("RG-95")
def test_instances_move_in_waves_and_each_once() -> None:
    both = Both()
    both.define("v1", propagateWhen=[GATE])
    both.create(8)
    both.process.passes.clear()
    both.define("v2", propagateWhen=[GATE])

    written = [
        [action.ref.name for action in one.done if action.ref.kind == "ConfigMap"]
        for one in both.process.passes
    ]
    moved = [name for names in written for name in names]
    assert moved[0] == "a0-cm" and sorted(moved) == [f"a{number}-cm" for number in range(8)]
    assert [one.because for one in both.process.passes if one.because.startswith("moving")] == [
        "moving ns1/a0 to revision 2",
        "moving ns1/a1 to revision 2",
        "moving ns1/a2, ns1/a3 to revision 2",
        "moving ns1/a4, ns1/a5, ns1/a6, ns1/a7 to revision 2",
    ]
    assert both.images() == ["v2"] * 8


def test_a_pinned_instance_keeps_its_revision_alive() -> None:
    both = Both()
    both.define("v1", revisionManagement={"historyLimit": 0})
    both.create(2)
    both.cluster.patch(app("a0"), {"metadata": {"annotations": {"kro.run/rgd-revision": "1"}}})
    both.run()
    both.define("v2", revisionManagement={"historyLimit": 0})
    both.define("v3", revisionManagement={"historyLimit": 0})

    assert both.images() == ["v1", "v3"]
    both.cluster.patch(app("a0"), {"metadata": {"annotations": {"kro.run/rgd-revision": None}}})
    both.run()
    assert both.images() == ["v3", "v3"]
    assert [ref.name for ref in both.cluster.objects if ref.kind == "ResourceGraphDefinitionRevision"] == [
        "app-rev-3"
    ]


def test_instances_are_deleted_after_their_definition() -> None:
    both = Both()
    both.define("v1")
    both.create(2)
    both.cluster.delete(rgd("app"))
    both.run()
    assert both.cluster.at(rgd("app")) is None and both.cluster.at(cm("a0-cm")) is not None
    assert both.cluster.get(app("a0"))["status"]["state"] == "ACTIVE"

    for name in ("a0", "a1"):
        both.cluster.delete(app(name))
    both.run()
    assert both.images() == [] and not [one for one in both.cluster.objects.values() if meta.is_deleting(one)]
