"""What goes with what is taken away, and that a story is told in the order in which it happens."""

from datetime import timedelta
from typing import Any

import pytest

from lamina.errors import Forbidden
from lamina.families.every import chosen
from lamina.merge.last_applied import ANNOTATION
from lamina.objects import meta
from lamina.objects.types import GroupKind, Ref
from lamina.paper.kinds import CONFIG_MAP, POD, make
from lamina.simulation import Manner, Simulation, read_failures
from lamina.simulation.simulation import CHANGE
from lamina.simulation.standins import Readiness
from lamina.testing.builders import config_map, definition, deployment
from tests.simulation.test_simulation import FLOCK, FLOCKS, HOUR, flock, hook, simulation

FLOCK_KIND = meta.ref(definition("Flock"))


def settled(**settings: Any) -> Simulation:
    played = simulation(**settings)
    for manifest in (definition("Flock"), FLOCKS, flock("goose:1")):
        played.apply(manifest)
    played.run(timedelta(minutes=1))
    return played


def test_a_definition_takes_its_objects_with_it_before_it_goes() -> None:
    played = settled()

    played.delete(FLOCK_KIND)
    played.run(HOUR)

    assert played.paper.at(FLOCK) is None
    assert list(played.paper.listed(POD)) == []
    told = [one.because for one in played.story if one.ref == FLOCK_KIND and one.by != CHANGE]
    assert told[0] == "its objects go first"
    assert told[-1] == "none of its objects is left"
    assert [one.state for one in played.endings() if one.ref == FLOCK_KIND] == ["gone"]


def test_a_definition_whose_objects_are_held_is_still_there_and_says_why() -> None:
    played = settled()
    played.paper.patch(FLOCK, {"metadata": {"finalizers": ["example.com/nobody"]}})

    played.delete(FLOCK_KIND)
    played.run(HOUR)

    (ending,) = (one for one in played.endings() if one.ref == FLOCK_KIND)
    assert not ending.well
    assert ending.because == "its finalizers hold it: customresourcecleanup.apiextensions.k8s.io"


def test_an_owner_that_was_to_go_and_is_held_has_not_ended_well() -> None:
    played = settled()
    played.paper.patch(FLOCK, {"metadata": {"finalizers": ["example.com/nobody"]}})

    played.delete(FLOCK)
    played.run(HOUR)

    (ending,) = (one for one in played.endings() if one.ref == FLOCK)
    assert (ending.well, ending.state) == (False, "still there")


def test_objects_of_a_definition_that_goes_are_fetched_where_nobody_looked_at_them() -> None:
    there = settled()
    objects = list(there.paper.objects.values())
    asked: list[GroupKind] = []

    def fetch(kind: Any) -> list[Any]:
        asked.append(kind.group_kind)
        return [one for one in objects if meta.ref(one).kind == kind.kind]

    played = Simulation(families=chosen("none"), kinds=there.paper.kinds, fetch=fetch, call=hook)
    played.delete(FLOCK_KIND)
    played.run(HOUR)

    assert GroupKind("example.com", "Flock") in asked
    assert played.paper.at(FLOCK) is None
    assert played.paper.at(FLOCK_KIND) is None


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_a_namespace_that_no_server_lets_go_is_not_let_go_here(name: str) -> None:
    with pytest.raises(Forbidden, match="this namespace may not be deleted"):
        simulation().delete(Ref("v1", "Namespace", "", name))


def test_what_happens_at_one_moment_is_told_in_the_order_in_which_it_happens() -> None:
    played = settled()

    made = [
        (at, str(action.ref))
        for at, one in enumerate(played.story)
        for action in one.done
        if type(action).__name__ == "Create" and action.ref.kind == "Pod"
    ]
    assert made
    for at, ref in made:
        looked_at = [place for place, one in enumerate(played.story) if str(one.ref) == ref]
        assert at < min(looked_at), f"{ref} is made before anybody looks at it"


def test_what_is_made_again_after_it_went_is_there() -> None:
    played = simulation(objects=[config_map("settings")])

    played.delete(CONFIG_MAP.ref("default", "settings"))
    played.apply(config_map("settings"))
    played.run(HOUR)

    assert [(one.well, one.state) for one in played.endings()] == [(True, "there")]


def test_what_is_on_its_way_out_is_not_made_ready_any_more() -> None:
    held = make(CONFIG_MAP, "settings", finalizers=["example.com/nobody"])
    played = simulation(objects=[held], readiness=[Readiness(CONFIG_MAP, ("Ready",), timedelta(seconds=30))])

    played.delete(meta.ref(held))
    played.run(HOUR)

    assert "status" not in played.paper.get(meta.ref(held))


def test_objects_of_other_namespaces_do_not_fail_with_those_that_are_to() -> None:
    failures = read_failures({"objects": [{"kind": "Pod", "namespace": "there"}]}, "")

    assert failures.holds(POD.ref("there", "p"))
    assert not failures.holds(POD.ref("elsewhere", "p"))
    assert not failures.holds(CONFIG_MAP.ref("there", "p"))


@pytest.mark.parametrize("subresource", ["", "status"])
def test_who_applied_only_a_status_by_the_server_applies_the_rest_as_ever(subresource: str) -> None:
    there = simulation(manner=Manner(server_side=True)).apply(config_map("a", {"colour": "red", "size": "3"}))
    (entry,) = there["metadata"]["managedFields"]
    there["metadata"]["managedFields"] = [{**entry, "subresource": subresource}]
    played = simulation(objects=[there])

    made = played.apply(config_map("a", {"size": "3"}))

    assert (ANNOTATION in meta.annotations(made)) == (subresource == "status")
    assert ("colour" in made["data"]) == (subresource == "status")


def test_what_was_made_and_went_again_has_not_ended_well() -> None:
    played = simulation()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "nobody"}
    played.apply(make(CONFIG_MAP, "settings", ownerReferences=[owner]))
    played.run(HOUR)

    assert [(one.well, one.state) for one in played.endings()] == [(False, "gone")]


def test_what_went_and_came_again_by_another_has_gone() -> None:
    played = simulation()
    played.apply(deployment("web", replicas=1))
    played.run(timedelta(minutes=1))
    (pod,) = played.paper.listed(POD)
    (replicas,) = [ref for ref in played.paper.objects if ref.kind == "ReplicaSet"]

    played.delete(replicas)
    played.run(HOUR)

    assert meta.uid(played.paper.get(replicas))
    (ending,) = [one for one in played.endings() if one.ref.kind == "ReplicaSet"]
    assert (ending.well, ending.state) == (True, "gone")
    assert played.paper.at(meta.ref(pod)) is None
