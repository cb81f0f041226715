"""Deletion in a simulation: garbage collection, finalizers, final states, and the order of what is reported."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.errors import Forbidden
from lamina.families.registry import chosen
from lamina.merge.last_applied import ANNOTATION
from lamina.objects import meta
from lamina.objects.types import GroupKind, Ref
from lamina.simulation.cluster.kinds import CONFIG_MAP, POD, make
from lamina.simulation.scenario import ApplyOptions, Simulation, read_failures
from lamina.simulation.scenario.readiness_stub import Readiness
from lamina.simulation.scenario.simulation import CHANGE
from lamina.testing.builders import config_map, definition, deployment
from tests.simulation.test_simulation import FLOCK, FLOCKS, HOUR, flock, hook, simulation

FLOCK_KIND = meta.ref(definition("Flock"))


def settled(**settings: Any) -> Simulation:
    played = simulation(**settings)
    for manifest in (definition("Flock"), FLOCKS, flock("goose:1")):
        played.apply(manifest)
    played.run(timedelta(minutes=1))
    return played


def test_the_objects_of_a_definition_are_deleted_before_it_is_gone() -> None:
    played = settled()

    played.delete(FLOCK_KIND)
    played.run(HOUR)

    assert played.cluster.at(FLOCK) is None
    assert list(played.cluster.listed(POD)) == []
    told = [one.because for one in played.timeline if one.ref == FLOCK_KIND and one.by != CHANGE]
    assert told[0] == "its objects are deleted first"
    assert told[-1] == "none of its objects is left"
    assert [one.state for one in played.final_states() if one.ref == FLOCK_KIND] == ["deleted"]


def test_a_definition_whose_objects_are_held_is_being_deleted_and_says_why() -> None:
    played = settled()
    played.cluster.patch(FLOCK, {"metadata": {"finalizers": ["example.com/nobody"]}})

    played.delete(FLOCK_KIND)
    played.run(HOUR)

    (found,) = (one for one in played.final_states() if one.ref == FLOCK_KIND)
    assert not found.healthy
    assert found.because == "waits for finalizers: customresourcecleanup.apiextensions.k8s.io"


def test_a_deleted_owner_that_is_held_by_a_finalizer_has_not_ended_well() -> None:
    played = settled()
    played.cluster.patch(FLOCK, {"metadata": {"finalizers": ["example.com/nobody"]}})

    played.delete(FLOCK)
    played.run(HOUR)

    (found,) = (one for one in played.final_states() if one.ref == FLOCK)
    assert (found.healthy, found.state) == (False, "Deleting")


def test_objects_of_a_deleted_definition_are_fetched_even_if_unread() -> None:
    there = settled()
    objects = list(there.cluster.objects.values())
    asked: list[GroupKind] = []

    def fetch(kind: Any) -> list[Any]:
        asked.append(kind.group_kind)
        return [one for one in objects if meta.ref(one).kind == kind.kind]

    played = Simulation(families=chosen("none"), kinds=there.cluster.kinds, fetch=fetch, call=hook)
    played.delete(FLOCK_KIND)
    played.run(HOUR)

    assert GroupKind("example.com", "Flock") in asked
    assert played.cluster.at(FLOCK) is None
    assert played.cluster.at(FLOCK_KIND) is None


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_a_namespace_that_no_server_deletes_is_not_deleted(name: str) -> None:
    with pytest.raises(Forbidden, match="this namespace may not be deleted"):
        simulation().delete(Ref("v1", "Namespace", "", name))


def test_simultaneous_changes_are_reported_in_their_order() -> None:
    played = settled()

    made = [
        (at, str(action.ref))
        for at, one in enumerate(played.timeline)
        for action in one.done
        if type(action).__name__ == "Create" and action.ref.kind == "Pod"
    ]
    assert made
    for at, ref in made:
        looked_at = [place for place, one in enumerate(played.timeline) if str(one.ref) == ref]
        assert at < min(looked_at), f"{ref} is created before the first read"


def test_an_object_that_is_created_again_after_its_deletion_is_healthy() -> None:
    played = simulation(objects=[config_map("settings")])

    played.delete(CONFIG_MAP.ref("default", "settings"))
    played.apply(config_map("settings"))
    played.run(HOUR)

    assert [(one.healthy, one.state) for one in played.final_states()] == [(True, "Healthy")]


def test_an_object_that_is_being_deleted_is_not_made_ready() -> None:
    held = make(CONFIG_MAP, "settings", finalizers=["example.com/nobody"])
    played = simulation(objects=[held], readiness=[Readiness(CONFIG_MAP, ("Ready",), timedelta(seconds=30))])

    played.delete(meta.ref(held))
    played.run(HOUR)

    assert "status" not in played.cluster.get(meta.ref(held))


def test_a_failure_of_pods_in_a_namespace_concerns_no_other_objects() -> None:
    failures = read_failures({"objects": [{"kind": "Pod", "namespace": "there"}]}, "")

    assert failures.never_ready(POD.ref("there", "p"))
    assert not failures.never_ready(POD.ref("elsewhere", "p"))
    assert not failures.never_ready(CONFIG_MAP.ref("there", "p"))


@pytest.mark.parametrize("subresource", ["", "status"])
def test_after_a_server_side_apply_of_the_status_alone_the_rest_is_applied_client_side(
    subresource: str,
) -> None:
    there = simulation(apply_options=ApplyOptions(server_side=True)).apply(
        config_map("a", {"colour": "red", "size": "3"})
    )
    (entry,) = there["metadata"]["managedFields"]
    there["metadata"]["managedFields"] = [{**entry, "subresource": subresource}]
    played = simulation(objects=[there])

    made = played.apply(config_map("a", {"size": "3"}))

    assert (ANNOTATION in meta.annotations(made)) == (subresource == "status")
    assert ("colour" in made["data"]) == (subresource == "status")


def test_an_object_that_is_collected_after_its_creation_has_not_ended_well() -> None:
    played = simulation()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "nobody"}
    played.apply(make(CONFIG_MAP, "settings", ownerReferences=[owner]))
    played.run(HOUR)

    assert [(one.healthy, one.state) for one in played.final_states()] == [(False, "deleted")]


def test_an_object_that_another_manager_creates_again_counts_as_deleted() -> None:
    played = simulation()
    played.apply(deployment("web", replicas=1))
    played.run(timedelta(minutes=1))
    (pod,) = played.cluster.listed(POD)
    (replicas,) = [ref for ref in played.cluster.objects if ref.kind == "ReplicaSet"]

    played.delete(replicas)
    played.run(HOUR)

    assert meta.uid(played.cluster.get(replicas))
    (found,) = [one for one in played.final_states() if one.ref.kind == "ReplicaSet"]
    assert (found.healthy, found.state) == (True, "deleted")
    assert played.cluster.at(meta.ref(pod)) is None
