"""Corners of sets and deployments: what would leak, hang, or be taken from another owner."""

import pytest

from lamina.objects import conditions, meta
from lamina.objects.types import Made
from tests.unit.families.objectset.revisions import (
    Revisions,
    config_map,
    deployment,
    object_set,
    phase,
    ref,
    template,
)

NAMESPACE: Made = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "team", "namespace": "default"},
}


def object_slice(name: str, *objects: Made) -> Made:
    items = [{"object": one} for one in objects]
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "package-operator.run/v1alpha1",
        "kind": "ObjectSlice",
        "metadata": metadata,
        "objects": items,
    }


def message(obj: Made, name: str) -> str:
    found = conditions.find(conditions.of(obj), name)
    return found.get("message", "") if found is not None else ""


def test_a_namespace_that_is_written_on_a_cluster_scoped_object_is_dropped() -> None:
    world = Revisions()
    world.apply(object_set("v1", template(phase("p", NAMESPACE)), cluster=True))

    found = world.get("ClusterObjectSet", "v1", "")
    assert found is not None
    assert world.condition(found, "Available") == ("True", "Available")
    world.cluster.delete(meta.ref(found))
    world.settle()
    assert world.get("ClusterObjectSet", "v1", "") is None


def test_the_objects_of_a_slice_that_is_gone_are_deleted_by_an_archival() -> None:
    world = Revisions()
    world.apply(object_slice("extra", config_map("b")))
    world.apply(object_set("v1", template(phase("p", config_map("a"), slices=["extra"]))))
    assert world.controlled("v1") == ["a", "b"]
    world.cluster.delete(ref("ObjectSlice", "extra"))
    world.settle()
    assert "extra" in message(world.set("v1"), "Available")

    world.edit(ref("ObjectSet", "v1"), {"spec": {"lifecycleState": "Archived"}})

    assert world.condition(world.set("v1"), "Archived") == ("True", "Archived")
    assert world.config_map("a") is None
    assert world.config_map("b") is None


def test_a_set_whose_slice_is_gone_reports_what_it_has_handed_over() -> None:
    world = Revisions()
    world.apply(object_slice("extra", config_map("b")))
    spec = template(phase("p", config_map("a"), slices=["extra"]))
    world.apply(deployment("web", spec))
    world.cluster.delete(ref("ObjectSlice", "extra"))

    world.apply(deployment("web", template(phase("p", config_map("a", key="two")))))

    first, second = world.sets_of("web")
    assert world.controller("a") == meta.name(second)
    assert world.condition(first, "Archived") == ("True", "Archived")
    assert world.config_map("b") is None


def test_an_object_that_is_to_be_orphaned_waits_for_the_revision_that_contains_it() -> None:
    world = Revisions()
    kept = config_map("x")
    kept["metadata"]["annotations"]["package-operator.run/deletion-policy"] = "Orphan"
    world.apply(object_set("v1", template(phase("p", kept))))
    gated = template(phase("one", config_map("a", healthy=False)), phase("two", kept))
    world.apply(object_set("v2", gated, previous=["v1"]))

    world.edit(ref("ObjectSet", "v1"), {"spec": {"lifecycleState": "Archived"}})

    assert world.controller("x") == "v1"
    world.edit(ref("ConfigMap", "a"), {"metadata": {"annotations": {"name": "a"}}})
    assert world.controller("x") == "v2"
    assert world.condition(world.set("v1"), "Archived") == ("True", "Archived")


def test_a_class_without_a_controller_is_corrected_by_a_new_revision() -> None:
    world = Revisions()
    world.apply(deployment("web", template(phase("p", config_map("a"), **{"class": "nobody"}))))

    world.apply(deployment("web", template(phase("p", config_map("a")))))

    first, second = world.sets_of("web")
    assert world.condition(first, "Archived") == ("True", "Archived")
    assert world.condition(second, "Succeeded") == ("True", "RolloutSuccess")


def test_an_object_is_not_given_up_because_a_newer_revision_has_it_in_another_class() -> None:
    world = Revisions()
    world.apply(deployment("web", template(phase("p", config_map("a", healthy=False)))))

    world.apply(deployment("web", template(phase("p", config_map("a"), **{"class": "other"}))))

    first, _ = world.sets_of("web")
    assert world.controller("a") == meta.name(first)
    assert world.condition(first, "Archived") is None


def test_a_phase_of_another_set_gives_no_right_to_its_objects() -> None:
    world = Revisions()
    world.apply(object_set("web", template(phase("a-b", config_map("x"), **{"class": "default"}))))
    owner = world.controller("x")
    world.apply(object_set("web-a", template(phase("b", config_map("y"), **{"class": "default"}))))

    world.apply(object_set("web-a2", template(phase("p", config_map("x"))), previous=["web-a"]))

    assert owner == "web-a-b"
    assert world.controller("x") == owner
    assert world.condition(world.set("web-a2"), "Available") == ("False", "CollisionDetected")
    assert "remotePhases" not in world.set("web-a")["status"]


def test_two_revisions_of_one_number_do_not_take_an_object_from_each_other() -> None:
    world = Revisions()
    spec = template(phase("p", config_map("x"), protection="None"))
    world.apply(object_set("v1", spec, revision=1))

    world.apply(object_set("v2", spec, previous=["v1"], revision=1))

    assert world.controller("x") == "v1"
    assert world.condition(world.set("v2"), "Available") == ("False", "CollisionDetected")


def test_a_deployment_goes_on_counting_after_the_sets_of_an_earlier_one_of_its_name() -> None:
    world = Revisions()
    world.apply(deployment("web", template(phase("p", config_map("x", key="one")))))
    world.apply(deployment("web", template(phase("p", config_map("x", key="two")))))
    for one in world.sets_of("web"):
        world.cluster.patch(meta.ref(one), {"metadata": {"ownerReferences": None}})
    world.cluster.delete(ref("ObjectDeployment", "web"))
    world.settle()

    world.apply(deployment("web", template(phase("p", config_map("x", key="three")))))

    (newest,) = world.sets_of("web")
    assert newest["spec"]["revision"] == 3
    assert world.controller("x") == meta.name(newest)
    assert (world.config_map("x") or {})["data"] == {"key": "three"}


def test_a_revision_that_is_stated_as_zero_is_numbered_in_the_status() -> None:
    world = Revisions()

    world.apply(object_set("v1", template(phase("p", config_map("x"))), revision=0))

    found = world.set("v1")
    assert (found["spec"]["revision"], found["status"]["revision"]) == (0, 1)
    assert world.condition(found, "Available") == ("True", "Available")


def test_a_number_that_only_the_status_has_is_recorded_in_the_spec() -> None:
    world = Revisions()
    world.cluster.create(
        {**object_set("v1", template(phase("p", config_map("x")))), "status": {"revision": 4}}
    )

    world.settle()

    assert world.set("v1")["spec"]["revision"] == 4


def test_a_mapping_to_no_condition_type_is_refused_before_anything_is_written() -> None:
    world = Revisions()
    mapped = phase("p", config_map("x"))
    mapped["objects"][0]["conditionMappings"] = [{"sourceType": "Ready", "destinationType": "My.Org/Ready"}]

    world.apply(object_set("v1", template(mapped)))

    assert world.config_map("x") is None
    assert 'destinationType "My.Org/Ready"' in message(world.set("v1"), "Available")


def test_a_revision_stays_its_deployments_after_an_edit_of_the_selector() -> None:
    world = Revisions()
    world.apply(deployment("web", template(phase("p", config_map("old"))), labels={"app": "one"}))

    world.apply(deployment("web", template(phase("p", config_map("new"))), labels={"app": "two"}))

    first, second = world.sets_of("web")
    assert world.condition(first, "Archived") == ("True", "Archived")
    assert world.condition(second, "Succeeded") == ("True", "RolloutSuccess")
    assert world.config_map("old") is None


def test_a_phase_fails_as_long_as_one_of_its_objects_is_being_deleted() -> None:
    """No probe says anything about the object; that it exists is not enough."""
    world = Revisions()
    world.apply(object_set("v1", template(phase("p", config_map("x")), probed=False)))
    world.edit(ref("ConfigMap", "x"), {"metadata": {"finalizers": ["team/backup"]}})

    world.cluster.delete(ref("ConfigMap", "x"))
    world.settle()

    assert world.condition(world.set("v1"), "Available") == ("False", "ProbeFailure")
    assert message(world.set("v1"), "Available") == 'Phase "p" failed: ConfigMap default/x: is being deleted'
    world.edit(ref("ConfigMap", "x"), {"metadata": {"finalizers": None}})
    assert world.condition(world.set("v1"), "Available") == ("True", "Available")


def test_the_annotations_of_a_deployment_are_those_of_its_sets_without_records_of_clients() -> None:
    world = Revisions()
    made = deployment("web", template(phase("p", config_map("x"))))
    made["metadata"]["annotations"] = {
        "kubernetes.io/change-cause": "the first one",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "lamina.dev/restore": "record",
    }

    world.apply(made)

    (only,) = world.sets_of("web")
    annotations = dict(meta.annotations(only))
    assert annotations.pop("package-operator.run/hash")
    assert annotations == {"kubernetes.io/change-cause": "the first one"}


def test_a_deployment_whose_template_has_no_phases_any_more_keeps_its_revision() -> None:
    world = Revisions()
    world.apply(deployment("web", template(phase("p", config_map("x")))))
    world.apply(deployment("web", template(phase("p", config_map("x", key="two")))))

    world.apply(deployment("web", template()))

    found = world.get("ObjectDeployment", "web") or {}
    assert found["status"]["revision"] == 2
    assert world.condition(found, "Progressing") == ("True", "Progressing")
    assert world.condition(found, "Available") == ("True", "Available")
    assert [one["spec"]["revision"] for one in world.sets_of("web")] == [1, 2]


def test_all_collisions_of_a_phase_are_reported_and_nothing_of_the_next_one_is_written() -> None:
    world = Revisions()
    world.cluster.create(config_map("x", namespace="default"))
    world.cluster.create(config_map("y", namespace="default"))

    world.apply(
        object_set(
            "v1",
            template(
                phase("p", config_map("x"), config_map("free"), config_map("y")), phase("q", config_map("z"))
            ),
        )
    )

    assert world.condition(world.set("v1"), "Available") == ("False", "CollisionDetected")
    because = "refusing adoption, not owned by previous revision: it exists and has no controller"
    assert message(world.set("v1"), "Available") == (
        f'Phase "p", ConfigMap default/x: {because}, Phase "p", ConfigMap default/y: {because}'
    )
    assert world.config_map("z") is None


@pytest.mark.parametrize("phase_class", ["", "default"], ids=["no class", "class"])
@pytest.mark.parametrize("is_of_the_operator", [True, False], ids=["its own package", "another package"])
def test_the_package_of_the_operator_itself_takes_what_it_contains(
    phase_class: str, is_of_the_operator: bool
) -> None:
    """The label of a set is copied to its objects, and means there what it means in a manifest."""
    world = Revisions()
    world.cluster.create(config_map("x", namespace="default"))
    made = object_set("v1", template(phase("p", config_map("x", key="new"), **{"class": phase_class})))
    package = "package-operator" if is_of_the_operator else "another"
    made["metadata"]["labels"] = {"package-operator.run/package": package}

    world.apply(made)

    assert world.controlled("v1") == (["x"] if is_of_the_operator else [])
    assert (world.config_map("x") or {})["data"] == {"key": "new" if is_of_the_operator else "value"}


def test_what_was_handed_over_from_a_slice_that_is_gone_loses_the_reference_of_the_old_revision() -> None:
    world = Revisions()
    world.apply(object_slice("extra", config_map("b")))
    world.apply(deployment("web", template(phase("p", config_map("a"), slices=["extra"]))))
    newer = phase("p", config_map("b", key="two")), phase("q", config_map("z", healthy=False))
    world.apply(deployment("web", template(*newer)))
    world.cluster.delete(ref("ObjectSlice", "extra"))
    world.settle()

    world.edit(ref("ConfigMap", "z"), {"metadata": {"annotations": {"name": "z"}}})

    first, second = world.sets_of("web")
    found = world.config_map("b")
    assert found is not None
    assert world.condition(first, "Archived") == ("True", "Archived")
    assert [one["name"] for one in meta.owner_refs(found)] == [meta.name(second)]


def test_a_deployment_with_an_invalid_template_is_paused_and_resumed() -> None:
    world = Revisions()
    world.apply(deployment("web", template(phase("p", config_map("x")))))
    web = ref("ObjectDeployment", "web")
    typo = {"metadata": {"labels": {"app": "typo"}}}

    world.edit(web, {"spec": {"paused": True, "template": typo}})

    [paused] = world.sets_of("web")
    assert paused["spec"]["lifecycleState"] == "Paused"
    assert world.condition(world.cluster.get(web), "Paused") == ("True", "Paused")
    assert world.condition(world.cluster.get(web), "Progressing") == ("False", "InvalidTemplate")
    world.edit(ref("ConfigMap", "x"), {"data": {"key": "by hand"}})
    assert (world.config_map("x") or {})["data"] == {"key": "by hand"}

    world.edit(web, {"spec": {"paused": False}})

    assert world.condition(world.cluster.get(web), "Paused") is None
    assert world.condition(world.cluster.get(web), "Progressing") == ("False", "InvalidTemplate")
    assert (world.config_map("x") or {})["data"] == {"key": "value"}


def test_a_set_that_was_archived_before_it_had_a_number_is_not_waited_for() -> None:
    world = Revisions()
    never = object_set("v1", template(phase("p", config_map("a"))), lifecycleState="Archived")
    world.apply(never)
    assert world.condition(world.set("v1"), "Archived") == ("True", "Archived")

    world.apply(object_set("v2", template(phase("p", config_map("a"))), previous=["v1"]))

    assert world.set("v2")["spec"]["revision"] == 1
    assert world.condition(world.set("v2"), "Available") == ("True", "Available")
