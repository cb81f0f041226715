"""What is recorded of the input of an instance, and what is made of it where a part is lost."""

import pytest

from lamina.core.model.plan import Apply
from lamina.families.resourcegraph.api import content
from lamina.families.resourcegraph.hashes import content_hash
from lamina.families.resourcegraph.options import InputStorage, Options
from lamina.objects import meta
from tests.unit.families.resourcegraph.instances.world import (
    INPUT,
    REVISION,
    World,
    app,
    cm,
    config_map,
    data,
    instance,
    node,
    with_image,
    world_with,
)


def test_children_of_a_cluster_without_revisions_get_the_stamps_in_one_write_each() -> None:
    world = world_with()
    stamps = dict.fromkeys(
        [
            "kro.run/rgd-revision",
            "kro.run/input-revision",
            "kro.run/instance-name",
            "kro.run/instance-namespace",
            "kro.run/resource-id",
        ]
    )
    body = {"metadata": {"annotations": stamps}}
    for ref in [ref for ref in world.cluster.objects if ref.kind == INPUT.kind]:
        world.cluster.delete(ref)
    world.cluster.patch(app(), {"status": {"conditions": None, "currentInputRevision": None, "currentRGDRevision": None, "observedInputRevision": None, "observedRGDRevision": None, "inputRevisionHistory": None, "propagation": None}}, subresource="status")  # fmt: skip
    world.cluster.patch(cm("a1-cm"), body)
    before = world.get(cm("a1-cm"))

    def restart() -> None:
        world.start()
        world.run()

    writes = world.writes(restart)

    written = [one for one in writes if one.ref.kind == "ConfigMap"]
    assert len(written) == 1 and isinstance(written[0], Apply)
    assert world.stamps("a1-cm") == ("1", "1")
    assert data(world.get(cm("a1-cm"))) == data(before) and list(world.inputs()) == [1]


def test_a_default_that_a_newer_schema_adds_is_no_new_input() -> None:
    world = world_with(instance(annotations={"kro.run/rgd-revision": "1"}))
    world.cluster.patch(app(), {"spec": {"added": "later"}}, subresource="")
    world.run()

    assert list(world.inputs()) == [1]


@pytest.mark.check("RG-109")
def test_each_edit_is_recorded_as_an_input_revision() -> None:
    world = world_with()
    world.edit(app(), replicas=2)

    first, second = world.inputs()[1], world.inputs()[2]
    owner = world.get(app())
    assert [meta.name(one) for one in (first, second)] == ["a1-input-rev-1", "a1-input-rev-2"]
    assert meta.owner_refs(second) == [
        {
            "apiVersion": "kro.run/v1alpha1",
            "kind": "App",
            "name": "a1",
            "uid": meta.uid(owner),
            "controller": True,
        }
    ]
    assert meta.labels(second) == {
        "kro.run/instance-name": "a1",
        "kro.run/input-revision": "2",
        "kro.run/rgd-revision": "1",
    }
    assert second["spec"] == {
        "inputRevision": 2,
        "rgdRevision": 1,
        "rgdRevisionRef": {
            "name": "app-rev-1",
            "specHash": content_hash(content(world.get(REVISION.ref("", "app-rev-1"))["spec"])),
        },
        "instanceSpec": {"name": "a1", "replicas": 2},
    }
    assert second["status"] == {
        **second["status"],
        "propagationStatus": "Completed",
        "resourcesAtRevision": 1,
        "totalResources": 1,
        "superseded": False,
    }
    assert second["status"]["createdAt"] and second["status"]["specHash"] != first["status"]["specHash"]
    assert first["status"]["superseded"] and first["status"]["propagationStatus"] == "Completed"
    assert [(one["revision"], one["status"]) for one in world.status()["inputRevisionHistory"]] == [
        (2, "Completed"),
        (1, "Superseded"),
    ]


def test_metadata_restarts_and_equal_specs_are_no_new_input() -> None:
    world = world_with()
    world.patch(app(), {"metadata": {"labels": {"team": "one"}, "annotations": {"note": "x"}}})
    world.start()
    world.run()

    assert list(world.inputs()) == [1]


def test_a_spec_that_returns_is_a_new_input_revision_of_the_same_hash() -> None:
    world = world_with()
    world.edit(app(), replicas=2)
    world.edit(app(), replicas=1)

    found = world.inputs()
    assert list(found) == [1, 2, 3]
    assert found[1]["status"]["specHash"] == found[3]["status"]["specHash"]


def test_old_input_revisions_are_deleted_beyond_the_limit() -> None:
    world = World()
    world.publish(with_image("v1"), limit=2)
    world.create(instance())
    for replicas in range(2, 8):
        world.edit(app(), replicas=replicas)

    assert sorted(world.inputs()) == [5, 6, 7]
    assert [one["revision"] for one in world.status()["inputRevisionHistory"]] == [7, 6, 5]


def test_numbers_go_on_where_input_revisions_were_deleted() -> None:
    world = world_with()
    world.edit(app(), replicas=2)
    for ref in [ref for ref in world.cluster.objects if ref.kind == INPUT.kind]:
        world.cluster.delete(ref)
    world.run()

    assert list(world.inputs()) == [3]
    assert world.stamps("a1-cm") == ("1", "3") and world.state() == "ACTIVE"


def test_a_number_is_not_issued_again_where_only_the_newest_input_revisions_were_deleted() -> None:
    world = world_with()
    world.edit(app(), replicas=2)
    world.edit(app(), replicas=1)
    for ref in [ref for ref in world.cluster.objects if ref.kind == INPUT.kind and ref.name[-1] in "23"]:
        world.cluster.delete(ref)
    world.run()

    assert sorted(world.inputs()) == [1, 4] and world.stamps("a1-cm") == ("1", "4")


@pytest.mark.check("RG-115")
def test_instances_of_one_name_and_two_kinds_have_input_revisions_of_their_own() -> None:
    world = World()
    world.publish(with_image("v1"))
    world.publish(node("config", config_map("${schema.spec.name}-other")), kind="Database")
    world.create(instance("a1"))
    world.create(instance("a1", kind="Database"))
    world.edit(app("a1", kind="Database"), replicas=2)

    names = {ref.name for ref in world.cluster.objects if ref.kind == INPUT.kind}
    assert names == {"a1-input-rev-1", "a1-databases-input-rev-1", "a1-input-rev-2"}
    assert list(world.inputs()) == [1]
    world.edit(app("a1"), replicas=3)
    assert world.state() == "ACTIVE" and list(world.inputs()) == [1, 2]
    assert meta.name(world.inputs()[2]) == "a1-apps-input-rev-2"


@pytest.mark.check("RG-111")
def test_with_inline_storage_the_specs_are_in_the_status() -> None:
    world = world_with(options=Options(input_storage=InputStorage.INLINE))
    world.edit(app(), replicas=2)

    assert not [ref for ref in world.cluster.objects if ref.kind == INPUT.kind]
    history = world.status()["inputRevisionHistory"]
    assert [(one["revision"], one["status"], one["instanceSpec"]["replicas"]) for one in history] == [
        (2, "Completed", 2),
        (1, "Superseded", 1),
    ]
    assert world.stamps("a1-cm") == ("1", "2")
    world.start()
    world.run()
    assert len(world.status()["inputRevisionHistory"]) == 2

    world.annotate(app(), rollback_to_input_revision="1")
    assert data(world.get(cm("a1-cm")))["replicas"] == "1" and world.status()["currentInputRevision"] == 3


def test_a_lost_status_is_written_again_from_what_is_recorded() -> None:
    world = world_with()
    world.edit(app(), replicas=2)
    before = world.status()
    world.cluster.patch(app(), {"status": None}, subresource="status")
    assert "status" not in world.get(app())
    world.start()
    world.run()

    after = world.status()
    assert {
        key: after[key]
        for key in ("currentInputRevision", "observedInputRevision", "currentRGDRevision", "state")
    } == {
        key: before[key]
        for key in ("currentInputRevision", "observedInputRevision", "currentRGDRevision", "state")
    }
    assert list(world.inputs()) == [1, 2]


def test_lost_input_revisions_are_made_up_for_by_the_stamps_of_children() -> None:
    world = world_with(instance(annotations={"kro.run/update-policy": "Manual"}))
    world.publish(with_image("v2"))
    for ref in [ref for ref in world.cluster.objects if ref.kind == INPUT.kind]:
        world.cluster.delete(ref)
    world.cluster.patch(app(), {"status": dict.fromkeys(world.status())}, subresource="status")
    world.run()

    assert data(world.get(cm("a1-cm")))["image"] == "v1"
    assert world.status()["currentRGDRevision"] == 1 and list(world.inputs()) == [2]


@pytest.mark.parametrize("storage", list(InputStorage))
@pytest.mark.parametrize("stamp", ["500", "2", "1" * 5000, "x", ""])
@pytest.mark.check("RG-41")
def test_a_stamp_that_was_edited_by_hand_is_written_again(stamp: str, storage: InputStorage) -> None:
    world = world_with(options=Options(input_storage=storage))
    world.patch(cm("a1-cm"), {"metadata": {"annotations": {"kro.run/input-revision": stamp}}})

    assert world.stamps("a1-cm") == ("1", "1") and world.state() == "ACTIVE"
    assert [one["revision"] for one in world.status()["inputRevisionHistory"]] == [1]
    world.edit(app(), replicas=2)
    assert world.stamps("a1-cm") == ("1", "2")


@pytest.mark.check("RG-41")
def test_an_edit_that_comes_with_a_stamp_gets_the_next_number() -> None:
    world = world_with()
    world.cluster.patch(cm("a1-cm"), {"metadata": {"annotations": {"kro.run/input-revision": "500"}}})
    world.edit(app(), replicas=2)

    assert sorted(world.inputs()) == [1, 2] and world.stamps("a1-cm") == ("1", "2")


def test_a_stamp_counts_for_no_paused_instance_either() -> None:
    world = World()
    world.publish(with_image("v1"), node("extra", config_map("${schema.spec.name}-extra")))
    world.create(instance())
    world.annotate(app(), update_policy="Paused")
    world.patch(cm("a1-extra"), {"metadata": {"annotations": {"kro.run/input-revision": "500"}}})
    world.patch(cm("a1-cm"), {"data": {"image": "by hand"}})

    assert data(world.get(cm("a1-cm")))["image"] == "v1" and sorted(world.inputs()) == [1]


def test_the_label_of_an_input_revision_issues_no_number() -> None:
    world = world_with()
    (ref,) = [ref for ref in world.cluster.objects if ref.kind == INPUT.kind]
    world.patch(ref, {"metadata": {"labels": {"kro.run/input-revision": "500"}}})
    world.edit(app(), replicas=2)

    assert sorted(world.inputs()) == [1, 2] and world.state() == "ACTIVE"


@pytest.mark.parametrize("annotation", ["internal.kro.run/apply-order", "kro.run/rgd-revision"])
def test_a_very_long_number_on_a_child_stops_nothing(annotation: str) -> None:
    world = world_with()
    world.patch(cm("a1-cm"), {"metadata": {"annotations": {annotation: "1" * 5000}}}, seconds=0)
    world.delete(app())

    assert not world.has(app()) and not world.has(cm("a1-cm"))


@pytest.mark.parametrize(
    ("annotation", "condition", "reason"),
    [
        ("rgd-revision", "RevisionResolved", "InvalidPin"),
        ("accept-rgd-revision", "RevisionResolved", "InvalidAcceptedRevision"),
        ("rollback-to-input-revision", "RollbackSucceeded", "InvalidRevision"),
    ],
)
def test_a_very_long_number_on_an_instance_is_no_number(annotation: str, condition: str, reason: str) -> None:
    world = world_with(instance(annotations={"kro.run/update-policy": "Manual"}))
    world.patch(app(), {"metadata": {"annotations": {f"kro.run/{annotation}": "1" * 5000}}})

    assert world.condition(condition)[:2] == ("False", reason)
    assert data(world.get(cm("a1-cm")))["image"] == "v1"
