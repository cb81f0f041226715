"""Which revision an instance has: new revisions, pins and policies."""

import pytest

from lamina.objects import meta
from tests.unit.families.resourcegraph.instances.world import (
    CONFIG,
    SPEC,
    World,
    app,
    chain,
    cm,
    config_map,
    data,
    described,
    instance,
    node,
    with_image,
    world_with,
)


def test_an_instance_follows_a_new_revision() -> None:
    world = world_with()
    world.publish(with_image("v2"))

    assert data(world.get(cm("a1-cm")))["image"] == "v2"
    assert world.stamps("a1-cm") == ("2", "2")
    status = world.status()
    assert (status["currentRGDRevision"], status["observedRGDRevision"]) == (2, 2)
    assert (status["currentInputRevision"], status["observedInputRevision"]) == (2, 2)


def test_a_revision_that_changes_nothing_restamps_metadata_only() -> None:
    world = world_with()
    generation = meta.generation(world.get(cm("a1-cm")))

    writes = world.writes(
        lambda: world.publish(with_image("v1"), spec={**SPEC, "more": "string | default=x"})
    )

    assert described(writes) == [
        "create ResourceGraphInputRevision a1-input-rev-2",
        "apply ConfigMap a1-cm",
        "patch ResourceGraphInputRevision a1-input-rev-2 status",
        "patch ResourceGraphInputRevision a1-input-rev-1 status",
        "patch App a1 status",
    ]
    assert meta.generation(world.get(cm("a1-cm"))) == generation


@pytest.mark.check("RG-89")
def test_a_pinned_instance_stays_and_its_edits_are_rendered_with_its_revision() -> None:
    world = world_with(instance("a1", annotations={"kro.run/rgd-revision": "1"}), instance("a2"))
    world.publish(with_image("v2"))

    assert data(world.get(cm("a1-cm")))["image"] == "v1"
    assert data(world.get(cm("a2-cm")))["image"] == "v2"
    world.edit(app("a1"), replicas=4)
    assert data(world.get(cm("a1-cm"))) == {"image": "v1", "replicas": "4"}
    assert world.inputs("a1")[2]["spec"]["rgdRevision"] == 1
    assert (world.status("a1")["currentRGDRevision"], world.status("a1")["currentInputRevision"]) == (1, 2)
    assert world.events("InstancePinned")


def test_an_instance_is_moved_back_by_a_pin_and_follows_again_without() -> None:
    world = world_with()
    world.publish(with_image("v2"))
    world.annotate(app(), rgd_revision="1")
    assert data(world.get(cm("a1-cm")))["image"] == "v1" and world.stamps("a1-cm") == ("1", "3")

    world.annotate(app(), rgd_revision=None)
    assert data(world.get(cm("a1-cm")))["image"] == "v2" and world.stamps("a1-cm") == ("2", "4")


@pytest.mark.parametrize(("pin", "reason"), [("99", "PinnedRevisionNotFound"), ("x", "InvalidPin")])
@pytest.mark.check("RG-90")
def test_a_pin_that_cannot_be_used_leaves_children_as_they_are(pin: str, reason: str) -> None:
    world = world_with()
    world.annotate(app(), rgd_revision=pin)
    world.edit(app(), replicas=5)

    assert data(world.get(cm("a1-cm")))["replicas"] == "1"
    assert world.condition("RevisionResolved")[:2] == ("False", reason)
    assert world.condition("Ready")[0] == "False"
    assert world.state() == "ERROR" and world.propagation()["status"] == "Blocked"

    world.annotate(app(), rgd_revision=None)
    assert data(world.get(cm("a1-cm")))["replicas"] == "5"
    assert world.state() == "ACTIVE" and world.condition("RevisionResolved")[0] == "True"


@pytest.mark.check("RG-90")
def test_a_new_instance_with_a_pin_that_cannot_be_used_creates_nothing_until_it_can() -> None:
    world = World()
    world.publish(with_image("v1"))
    world.create(instance(annotations={"kro.run/rgd-revision": "2"}))
    assert world.children() == [] and world.state() == "ERROR"
    assert "available: 1" in world.condition("RevisionResolved")[2]

    world.publish(with_image("v2"))
    assert data(world.get(cm("a1-cm")))["image"] == "v2"


@pytest.mark.check("RG-91")
def test_a_pinned_instance_keeps_a_field_that_newer_revisions_lack() -> None:
    world = World()
    color = node("config", config_map("${schema.spec.name}-cm", color="${schema.spec.color}"))
    world.publish(color, spec={**SPEC, "color": "string | default=red"})
    world.create(
        instance("a1", annotations={"kro.run/rgd-revision": "1"}, color="blue"), instance("a2", color="blue")
    )
    world.publish(CONFIG)

    assert data(world.get(cm("a1-cm"))) == {"color": "blue"}
    assert data(world.get(cm("a2-cm"))) == {"replicas": "1"}


def test_a_spec_that_is_invalid_for_the_revision_is_not_applied() -> None:
    world = world_with()
    world.publish(with_image("v2"), spec={"name": "string", "replicas": "integer | maximum=3"})
    world.edit(app(), replicas=9)

    assert world.condition("RevisionResolved")[:2] == ("False", "SpecInvalidForRevision")
    assert "spec.replicas" in world.condition("RevisionResolved")[2]
    assert data(world.get(cm("a1-cm")))["replicas"] == "1" and world.state() == "ERROR"
    world.edit(app(), replicas=3)
    assert data(world.get(cm("a1-cm")))["replicas"] == "3" and world.state() == "ACTIVE"


def test_a_revision_that_does_not_compile_leaves_children_as_they_are() -> None:
    world = world_with()
    world.publish(node("config", config_map("${nothing.metadata.name}")))

    assert data(world.get(cm("a1-cm")))["image"] == "v1"
    assert world.condition("GraphResolved")[:2] == ("False", "ResolutionFailed")
    assert world.condition("RevisionResolved")[1] == "RevisionFailed" and world.state() == "ERROR"


@pytest.mark.check("RG-92")
def test_with_policy_manual_an_instance_moves_when_a_revision_is_accepted() -> None:
    world = world_with(instance(annotations={"kro.run/update-policy": "Manual"}))
    world.publish(with_image("v2"))

    assert data(world.get(cm("a1-cm")))["image"] == "v1"
    assert world.propagation()["pendingRGDRevision"] == 2
    assert "accept-rgd-revision" in world.propagation()["message"]
    world.edit(app(), replicas=4)
    assert data(world.get(cm("a1-cm"))) == {"image": "v1", "replicas": "4"}

    world.annotate(app(), accept_rgd_revision="latest")
    assert data(world.get(cm("a1-cm")))["image"] == "v2"
    assert "kro.run/accept-rgd-revision" not in meta.annotations(world.get(app()))
    assert "pendingRGDRevision" not in world.propagation() and world.propagation()["status"] == "Completed"


@pytest.mark.check("RG-93")
def test_a_paused_instance_records_edits_and_corrects_drift_only() -> None:
    world = world_with(instance(annotations={"kro.run/update-policy": "Paused"}))
    assert world.children() == []
    world.annotate(app(), update_policy=None)
    assert world.state() == "ACTIVE"
    world.annotate(app(), update_policy="Paused")
    assert world.propagation()["status"] == "Completed"

    world.edit(app(), replicas=4)
    world.publish(with_image("v2"))
    assert data(world.get(cm("a1-cm"))) == {"image": "v1", "replicas": "1"}
    assert world.propagation()["status"] == "Blocked" and "Paused" in world.propagation()["message"]
    assert world.inputs()[2]["status"]["propagationStatus"] == "Pending"
    assert world.status()["currentInputRevision"] == 1 and world.propagation()["pendingRGDRevision"] == 2
    world.patch(cm("a1-cm"), {"data": {"replicas": "7"}})
    assert data(world.get(cm("a1-cm")))["replicas"] == "1"
    world.delete(cm("a1-cm"))
    assert data(world.get(cm("a1-cm")))["replicas"] == "1"

    def resume() -> None:
        world.annotate(app(), update_policy="Auto")

    applied = [one for one in world.writes(resume) if one.ref.kind == "ConfigMap"]
    assert len(applied) == 1
    assert data(world.get(cm("a1-cm"))) == {"image": "v2", "replicas": "4"}
    assert world.propagation()["status"] == "Completed"


def test_a_pause_in_the_middle_leaves_what_was_not_reached() -> None:
    world = World()
    a, b = chain("a", "b")
    world.publish({**a, "readyWhen": ['${a.data.?ready.orValue("") == a.data.replicas}']}, b)
    world.create(instance())
    world.patch(cm("a1-a"), {"data": {"ready": "1"}})
    world.edit(app(), replicas=2)
    world.annotate(app(), update_policy="Paused")

    world.patch(cm("a1-a"), {"data": {"ready": "2"}})
    assert data(world.get(cm("a1-b")))["replicas"] == "1"
    world.patch(cm("a1-a"), {"data": {"replicas": "9", "ready": "2"}})
    assert data(world.get(cm("a1-a")))["replicas"] == "2"
    assert world.propagation()["status"] == "Blocked"

    world.annotate(app(), update_policy=None)
    assert data(world.get(cm("a1-b")))["replicas"] == "2" and world.state() == "ACTIVE"


@pytest.mark.check("RG-94")
def test_an_unknown_policy_is_taken_as_manual() -> None:
    world = world_with(instance(annotations={"kro.run/update-policy": "foo"}))
    world.publish(with_image("v2"))

    assert data(world.get(cm("a1-cm")))["image"] == "v1"
    assert world.condition("RevisionResolved")[:2] == ("False", "InvalidUpdatePolicy")
    assert world.state() == "ACTIVE"
