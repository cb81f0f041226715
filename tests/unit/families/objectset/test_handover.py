"""Revisions on a simulated cluster: rollouts, handover, archival and teardown."""

import json

import pytest

from lamina.families.objectset.labels import OWNERS, REVISION
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


def test_os_1_a_phase_waits_for_the_one_before_it() -> None:
    world = Revisions()

    world.apply(
        object_set("v1", template(phase("p1", config_map("a", healthy=False)), phase("p2", config_map("b"))))
    )

    found = world.set("v1")
    assert world.config_map("a") is not None
    assert world.config_map("b") is None
    assert world.condition(found, "Available") == ("False", "ProbeFailure")
    assert world.condition(found, "InTransition") == ("True", "InTransition")
    assert world.condition(found, "Succeeded") is None
    assert world.controlled("v1") == ["a"]


def test_os_2_the_next_phase_is_written_once_the_first_one_passes() -> None:
    world = Revisions()
    world.apply(
        object_set("v1", template(phase("p1", config_map("a", healthy=False)), phase("p2", config_map("b"))))
    )

    world.edit(ref("ConfigMap", "a"), {"metadata": {"annotations": {"name": "a"}}})

    found = world.set("v1")
    assert world.condition(found, "Available") == ("True", "Available")
    assert world.condition(found, "Succeeded") == ("True", "RolloutSuccess")
    assert world.condition(found, "InTransition") is None
    assert world.controlled("v1") == ["a", "b"]


def test_os_8_an_object_of_both_revisions_is_handed_over_and_the_old_one_archived() -> None:
    world = Revisions()
    world.apply(deployment("web", template(phase("p1", config_map("cm", data="v1")))))
    before = world.config_map("cm")
    assert before is not None

    world.apply(deployment("web", template(phase("p1", config_map("cm", data="v2")))))

    after = world.config_map("cm")
    first, second = world.sets_of("web")
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["data"] == {"data": "v2"}
    assert world.controller("cm") == second["metadata"]["name"]
    assert world.condition(first, "Archived") == ("True", "Archived")
    assert world.condition(second, "Available") == ("True", "Available")


def test_os_56_a_revision_that_drops_objects_and_fails_loses_none_of_them() -> None:
    world = Revisions()
    world.apply(deployment("web", template(phase("p1", config_map("a"), config_map("x"), config_map("y")))))

    world.apply(deployment("web", template(phase("p1", config_map("a", healthy=False)))))

    first, second = world.sets_of("web")
    assert world.controller("a") == second["metadata"]["name"]
    assert world.controller("x") == first["metadata"]["name"]
    assert first["spec"]["lifecycleState"] == "Active"
    world.edit(ref("ConfigMap", "x"), {"data": {"key": "drift"}})
    assert (world.config_map("x") or {})["data"] == {"key": "value"}

    world.apply(deployment("web", template(phase("p1", config_map("a", key="good")))))

    assert world.config_map("x") is None
    assert world.config_map("y") is None
    assert [world.condition(one, "Archived") for one in world.sets_of("web")] == [
        ("True", "Archived"), ("True", "Archived"), None,
    ]  # fmt: skip


def test_the_objects_of_a_revision_that_has_succeeded_outlive_its_archival_and_the_history_limit() -> None:
    world = Revisions()

    def want(*objects: Made) -> None:
        world.apply(deployment("web", template(phase("p1", *objects)), revisionHistoryLimit=0))

    want(config_map("a"), config_map("db"))
    want(config_map("a", healthy=False), config_map("db"))
    first, second = world.sets_of("web")
    assert world.condition(first, "Archived") == ("True", "Archived")
    assert world.controller("db") == second["metadata"]["name"]

    want(config_map("a", healthy=False, key="another"))
    want(config_map("a", healthy=False, key="a third"))

    assert [one["spec"]["revision"] for one in world.sets_of("web")] == [1, 2, 4]
    assert world.controller("db") == second["metadata"]["name"]

    want(config_map("a"))

    assert world.config_map("db") is None
    assert [one["spec"]["revision"] for one in world.sets_of("web")] == [5]


# The number on an object


def handed_over() -> Revisions:
    """The second revision has taken an object of its first phase over, which fails."""
    world = Revisions()
    world.apply(object_set("v1", template(phase("p1", config_map("a")), phase("p2", config_map("b")))))
    failing = phase("p1", config_map("a", healthy=False, data="v2"))
    world.apply(object_set("v2", template(failing, phase("p2", config_map("b", data="v2"))), previous=["v1"]))
    world.edit(ref("ConfigMap", "a"), {"metadata": {"annotations": {"name": None}}})
    assert (world.controller("a"), world.controller("b")) == ("v2", "v1")
    return world


@pytest.mark.parametrize("edited", [None, "0", "1", "99", "x"])
@pytest.mark.parametrize("name", ["a", "b"])
def test_an_edited_number_neither_takes_an_object_back_nor_gives_it_away(
    name: str, edited: str | None
) -> None:
    world = handed_over()
    before = world.controller(name)
    holders: list[str] = []
    world.cluster.listeners.append(lambda *change: holders.append(world.controller(name)))

    world.edit(ref("ConfigMap", name), {"metadata": {"annotations": {REVISION: edited}}})

    assert set(holders) <= {before}
    found = world.config_map(name)
    assert found is not None
    assert meta.annotations(found)[REVISION] == {"v1": "1", "v2": "2"}[before]


def test_a_high_number_on_an_object_of_a_paused_revision_does_not_stop_a_newer_one() -> None:
    world = Revisions()
    world.apply(object_set("v1", template(phase("p1", config_map("b")))))
    world.edit(ref("ObjectSet", "v1"), {"spec": {"lifecycleState": "Paused"}})
    world.edit(ref("ConfigMap", "b"), {"metadata": {"annotations": {REVISION: "99"}}})

    newer = template(phase("p1", config_map("b", key="v2")), phase("p2", config_map("d")))
    world.apply(object_set("v2", newer, previous=["v1"]))

    assert world.condition(world.set("v2"), "Available") == ("True", "Available")
    assert (world.controller("b"), world.controller("d")) == ("v2", "v2")


# Controllers that are recorded elsewhere


def test_an_object_that_a_hub_elsewhere_controls_by_annotation_has_a_controller() -> None:
    world = Revisions()
    theirs = {"kind": "ObjectSetPhase", "name": "hub-p1", "namespace": "x", "uid": "hub", "controller": True}
    found = config_map("a", namespace="default", key="hub")
    found["metadata"]["annotations"][OWNERS] = json.dumps([theirs])
    world.cluster.create(found)

    world.apply(object_set("v1", template(phase("p1", config_map("a"), protection="IfNoController"))))

    [reported] = [one for one in conditions.of(world.set("v1")) if one["type"] == "Available"]
    assert reported["reason"] == "CollisionDetected"
    assert "ObjectSetPhase hub-p1 controls it" in reported["message"]
    assert world.controller("a") == ""


# A controller flag that was removed


def test_an_object_without_a_controller_is_not_taken_back_from_a_live_revision() -> None:
    world = handed_over()
    live = world.config_map("a")
    assert live is not None
    freed = [{**one, "controller": False} for one in meta.owner_refs(live)]

    world.edit(ref("ConfigMap", "a"), {"metadata": {"ownerReferences": freed}})

    assert world.controller("a") == ""
