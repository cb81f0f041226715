"""A class whose objects are on another cluster than its ObjectSetPhases."""

import json
from datetime import timedelta

import pytest

from lamina.core.model.queries import DryRun
from lamina.errors import NotFound
from lamina.families.objectset.class_phases.controller import phase_class_of, release_phase
from lamina.families.objectset.class_phases.view import PhaseClass
from lamina.families.objectset.controllers import phases
from lamina.families.objectset.labels import OWNERS, TEARDOWN
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made, Ref
from lamina.simulation import Loop, Process, SimulatedCluster
from lamina.simulation.cluster.kinds import KINDS, WIDGET
from tests.unit.families.objectset.revisions import (
    CONTROLLERS,
    NAMESPACE,
    Revisions,
    config_map,
    deployment,
    object_set,
    phase,
    ref,
    template,
)

CLASS = phases(PhaseClass(name="east", cluster="east"))


class TwoClusters(Revisions):
    """A hub, the cluster `east`, and a process for each that serves its class."""

    def __init__(self, *, is_bound: bool = True) -> None:
        super().__init__()
        # Their uids and versions never are those of the hub.
        self.east = SimulatedCluster(tracks_creates=True, uids=1000, version=1000)
        self.loop = Loop(self.cluster, Process(self.cluster, CONTROLLERS))
        self.start(is_bound=is_bound)

    def start(self, *, is_bound: bool = True) -> None:
        """Start the process that serves the class."""
        self.serving = Process(self.cluster, (CLASS,), others={"east": self.east} if is_bound else {})
        self.loop.processes.append(self.serving)

    def stop(self) -> None:
        self.loop.processes.remove(self.serving)
        self.serving.stop()

    def settle(self) -> None:
        self.loop.settle()

    def pass_time(self, seconds: float) -> None:
        self.loop.pass_time(timedelta(seconds=seconds))

    def in_east(self, name: str, kind: str = "ConfigMap", namespace: str = NAMESPACE) -> Made | None:
        return self.east.at(Ref("v1", kind, namespace, name))

    def owners(self, name: str) -> list[Made]:
        found = self.in_east(name)
        assert found is not None
        return list(json.loads(meta.annotations(found)[OWNERS]))

    def message(self, set_name: str) -> str:
        found = conditions.find(conditions.of(self.set(set_name)), "Available")
        return found["message"] if found is not None else ""


def east(*objects: Made, name: str = "p1") -> Made:
    return phase(name, *objects, **{"class": "east"})


def test_its_objects_are_written_to_the_other_cluster_with_their_owners_in_an_annotation() -> None:
    world = TwoClusters()

    world.apply(object_set("v1", template(east(config_map("a")), phase("p2", config_map("b")))))

    there, of_set = world.in_east("a"), world.get("ObjectSetPhase", "v1-p1")
    assert there is not None and of_set is not None
    assert world.config_map("a") is None and world.config_map("b") is not None
    assert not meta.owner_refs(there)
    (owner,) = world.owners("a")
    assert (owner["kind"], owner["name"], owner["namespace"]) == ("ObjectSetPhase", "v1-p1", NAMESPACE)
    assert (owner["uid"], owner["controller"]) == (meta.uid(of_set), True)
    assert world.condition(of_set, "Available") == ("True", "Available")
    assert world.condition(world.set("v1"), "Succeeded") == ("True", "RolloutSuccess")
    assert sorted(world.controlled("v1")) == ["a", "b"]


def test_the_next_phase_waits_for_the_probes_on_the_other_cluster() -> None:
    world = TwoClusters()
    world.apply(
        object_set("v1", template(east(config_map("a", healthy=False)), phase("p2", config_map("b"))))
    )
    assert world.config_map("b") is None
    assert world.condition(world.set("v1"), "Available") == ("False", "ProbeFailure")

    world.east.patch(ref("ConfigMap", "a"), {"metadata": {"annotations": {"name": "a"}}})
    world.settle()

    assert world.config_map("b") is not None


def test_what_is_edited_or_deleted_there_is_restored() -> None:
    world = TwoClusters()
    world.apply(object_set("v1", template(east(config_map("a"), config_map("b")))))
    world.settle()

    world.east.patch(ref("ConfigMap", "a"), {"data": {"key": "drift"}})
    world.east.delete(ref("ConfigMap", "b"))
    world.settle()

    assert (world.in_east("a") or {})["data"] == {"key": "value"}
    assert world.in_east("b") is not None
    assert world.condition(world.set("v1"), "Available") == ("True", "Available")


def test_nothing_is_written_once_all_of_it_is_there() -> None:
    world = TwoClusters()
    world.apply(object_set("v1", template(east(config_map("a")))))
    before = world.cluster.version, world.east.version

    world.pass_time(3600)

    assert (world.cluster.version, world.east.version) == before


def test_an_object_there_is_handed_over_between_revisions_and_the_rest_is_deleted() -> None:
    world = TwoClusters()
    world.apply(deployment("web", template(east(config_map("cm", data="v1"), config_map("old")))))
    before = world.in_east("cm")
    assert before is not None and world.in_east("old") is not None

    world.apply(deployment("web", template(east(config_map("cm", data="v2")))))

    first, second = world.sets_of("web")
    after = world.in_east("cm")
    assert after is not None and meta.uid(after) == meta.uid(before)
    assert after["data"] == {"data": "v2"}
    assert [one["name"] for one in world.owners("cm") if one.get("controller")] == [f"{meta.name(second)}-p1"]
    assert world.in_east("old") is None
    assert world.condition(first, "Archived") == ("True", "Archived")
    assert world.condition(second, "Available") == ("True", "Available")
    assert world.get("ObjectSetPhase", f"{meta.name(first)}-p1") is None
    # The archived revision is no owner any more.
    assert len(world.owners("cm")) == 1


def test_a_revision_that_fails_there_takes_nothing_away() -> None:
    world = TwoClusters()
    world.apply(deployment("web", template(east(config_map("cm", data="v1"), config_map("kept")))))

    world.apply(deployment("web", template(east(config_map("cm", healthy=False)))))
    world.pass_time(3600)

    assert world.in_east("kept") is not None and world.in_east("cm") is not None
    assert world.sets_of("web")[0]["spec"]["lifecycleState"] == "Active"


def test_an_archived_set_deletes_its_objects_there_before_it_says_so() -> None:
    world = TwoClusters()
    world.apply(object_set("v1", template(east(config_map("a")), phase("p2", config_map("b")))))
    world.east.patch(ref("ConfigMap", "a"), {"metadata": {"finalizers": ["example.com/slow"]}})

    world.edit(ref("ObjectSet", "v1"), {"spec": {"lifecycleState": "Archived"}})
    assert world.config_map("b") is None
    assert world.condition(world.set("v1"), "Archived") == ("False", "ArchivalInProgress")

    world.east.patch(ref("ConfigMap", "a"), {"metadata": {"finalizers": None}})
    world.settle()
    assert world.in_east("a") is None
    assert world.condition(world.set("v1"), "Archived") == ("True", "Archived")


def test_a_deleted_set_deletes_its_objects_there() -> None:
    world = TwoClusters()
    world.apply(object_set("v1", template(east(config_map("a")))))

    world.cluster.delete(ref("ObjectSet", "v1"))
    world.settle()

    assert world.in_east("a") is None
    assert world.get("ObjectSet", "v1") is None and world.get("ObjectSetPhase", "v1-p1") is None


def test_what_was_there_before_is_not_taken_over() -> None:
    world = TwoClusters()
    world.east.create({**config_map("a", namespace=NAMESPACE), "data": {"key": "theirs"}})

    world.apply(object_set("v1", template(east(config_map("a")))))

    assert (world.in_east("a") or {})["data"] == {"key": "theirs"}
    assert world.condition(world.set("v1"), "Available") == ("False", "CollisionDetected")


def test_a_namespace_that_is_not_there_is_named_and_looked_for_again() -> None:
    world = TwoClusters()
    world.east.refuse = {DryRun: NotFound(f'namespaces "{NAMESPACE}" not found')}
    world.apply(object_set("v1", template(east(config_map("a")))))
    assert world.condition(world.set("v1"), "Available") == ("False", "PreflightError")
    assert f'ConfigMap {NAMESPACE}/a: namespace "{NAMESPACE}" not found' in world.message("v1")

    world.east.refuse = {}
    world.pass_time(60)

    assert world.in_east("a") is not None
    assert world.condition(world.set("v1"), "Available") == ("True", "Available")


def test_the_kinds_of_the_other_cluster_decide_and_are_followed() -> None:
    world = TwoClusters()
    world.east.kinds = Kinds(one for one in KINDS if one != WIDGET)
    world.stop()
    world.start()
    widget: Made = {"apiVersion": WIDGET.api_version, "kind": "Widget", "metadata": {"name": "w"}}
    world.apply(object_set("v1", template(east(widget), probed=False)))
    assert 'no matches for kind "Widget"' in world.message("v1")

    group, _, version = WIDGET.api_version.partition("/")
    world.east.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{WIDGET.plural}.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": WIDGET.plural, "kind": WIDGET.kind},
                "versions": [{"name": version, "served": True, "storage": True}],
            },
        }
    )
    world.settle()

    assert world.east.at(Ref(WIDGET.api_version, "Widget", NAMESPACE, "w")) is not None


def test_a_cluster_that_is_bound_late_has_reported_nothing_until_then() -> None:
    world = TwoClusters(is_bound=False)
    world.apply(object_set("v1", template(east(config_map("a")), phase("p2", config_map("b")))))
    world.pass_time(60)
    assert "no status reported" in world.message("v1")
    assert world.in_east("a") is None and world.config_map("b") is None
    assert not meta.finalizers(world.get("ObjectSetPhase", "v1-p1") or {})

    world.serving.bind("east", world.east)
    world.settle()

    assert world.in_east("a") is not None and world.config_map("b") is not None
    assert world.condition(world.set("v1"), "Available") == ("True", "Available")


def test_a_cluster_that_is_not_bound_has_nothing_deleted_and_holds_its_phases() -> None:
    world = TwoClusters()
    world.apply(object_set("v1", template(east(config_map("a")))))
    world.stop()
    world.start(is_bound=False)

    world.cluster.delete(ref("ObjectSet", "v1"))
    world.pass_time(3600)
    assert meta.finalizers(world.get("ObjectSetPhase", "v1-p1") or {}) == [TEARDOWN]

    world.serving.bind("east", world.east)
    world.settle()
    assert world.in_east("a") is None and world.get("ObjectSet", "v1") is None


def test_a_phase_of_another_class_is_left_to_its_controller() -> None:
    world = TwoClusters()

    world.apply(object_set("v1", template(phase("p1", config_map("a"), **{"class": "west"}))))

    assert world.in_east("a") is None
    assert 'the controller of class "west"' in world.message("v1")


# A cluster that has been removed


def released(world: TwoClusters, name: str) -> None:
    """Do what is done with every ObjectSetPhase when a cluster has been removed."""
    if world.serving in world.loop.processes:
        world.stop()
    for _ in range(3):
        for one in [obj for found, obj in world.cluster.objects.items() if found.kind == "ObjectSetPhase"]:
            for action in release_phase(name, one).actions:
                world.cluster.perform(action)
    world.settle()


def test_a_removed_cluster_holds_none_of_its_phases_and_is_reported_as_silent() -> None:
    world = TwoClusters()
    world.apply(object_set("v1", template(east(config_map("a")))))

    released(world, "east")

    left = world.get("ObjectSetPhase", "v1-p1")
    assert left is not None and not meta.finalizers(left) and not left.get("status")
    assert "no status reported" in world.message("v1")
    assert world.controlled("v1") == []
    world.cluster.delete(ref("ObjectSet", "v1"))
    world.settle()
    assert world.get("ObjectSet", "v1") is None and world.get("ObjectSetPhase", "v1-p1") is None


def test_a_set_that_was_waiting_for_a_removed_cluster_is_gone() -> None:
    world = TwoClusters()
    world.apply(object_set("v1", template(east(config_map("a")))))
    world.stop()
    world.cluster.delete(ref("ObjectSet", "v1"))
    world.settle()
    assert world.get("ObjectSet", "v1") is not None

    released(world, "east")

    assert world.get("ObjectSet", "v1") is None


@pytest.mark.parametrize("name", ["west", "default"])
def test_phases_of_other_classes_are_held_as_before(name: str) -> None:
    world = TwoClusters()
    world.apply(
        object_set(
            "v1", template(east(config_map("a")), phase("p2", config_map("b"), **{"class": "default"}))
        )
    )

    released(world, name)

    for one in ("v1-p1", "v1-p2"):
        assert TEARDOWN in meta.finalizers(world.get("ObjectSetPhase", one) or {})


def test_the_class_of_a_cluster_has_its_name_unless_it_is_that_of_the_built_in_one() -> None:
    assert phase_class_of("east") == PhaseClass(name="east", cluster="east")
    assert phase_class_of("default") is None


def test_an_object_with_an_owner_reference_on_the_other_cluster_has_a_controller() -> None:
    world = TwoClusters()
    theirs = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "theirs",
        "uid": "theirs",
        "controller": True,
    }
    found = {**config_map("a", namespace=NAMESPACE), "data": {"key": "theirs"}}
    found["metadata"]["ownerReferences"] = [theirs]
    world.east.create(found)

    world.apply(
        object_set(
            "v1", template(phase("p1", config_map("a"), protection="IfNoController", **{"class": "east"}))
        )
    )

    assert world.condition(world.set("v1"), "Available") == ("False", "CollisionDetected")
    assert (world.in_east("a") or {})["data"] == {"key": "theirs"}


@pytest.mark.parametrize("class_", ["", "default"])
def test_a_deleted_object_comes_back_though_a_newer_revision_has_one_of_its_name_elsewhere(
    class_: str,
) -> None:
    world = TwoClusters()
    world.apply(object_set("v1", template(phase("p1", config_map("x"), **{"class": class_}))))
    newer = phase("p0", config_map("g")), east(config_map("x")), phase("p2", config_map("bad", healthy=False))
    world.apply(object_set("v2", template(*newer), previous=["v1"]))
    assert (world.controlled("v1"), world.controlled("v2")) == (["x"], ["g", "x", "bad"])

    world.cluster.delete(ref("ConfigMap", "x"))
    world.settle()

    assert world.config_map("x") is not None
    assert world.controlled("v1") == ["x"]


BY_REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "x", "controller": True}
BY_ANNOTATION = {**BY_REFERENCE, "namespace": "elsewhere"}


@pytest.mark.parametrize(
    ("protection", "held", "is_adopted"),
    [
        ("Prevent",        "",           False),
        ("Prevent",        "reference",  False),
        ("Prevent",        "annotation", False),
        ("IfNoController", "",           True),
        ("IfNoController", "reference",  False),
        ("IfNoController", "annotation", False),
        ("None",           "",           True),
        ("None",           "reference",  True),
        ("None",           "annotation", True),
    ],
)  # fmt: skip
def test_os_31_and_45_the_collision_matrix_holds_on_the_other_cluster(
    protection: str, held: str, is_adopted: bool
) -> None:
    world = TwoClusters()
    found = config_map("a", namespace=NAMESPACE, key="theirs")
    if held == "reference":
        found["metadata"]["ownerReferences"] = [BY_REFERENCE]
    elif held == "annotation":
        found["metadata"]["annotations"][OWNERS] = json.dumps([BY_ANNOTATION])
    world.east.create(found)

    wanted = phase("p1", config_map("a", key="ours"), protection=protection, **{"class": "east"})
    world.apply(object_set("v1", template(wanted)))

    data = (world.in_east("a") or {})["data"]
    reported = world.condition(world.set("v1"), "Available")
    if is_adopted:
        assert (data, reported) == ({"key": "ours"}, ("True", "Available"))
        [controller] = [one for one in world.owners("a") if one.get("controller")]
        assert controller["name"] == "v1-p1"
        return
    assert (data, reported) == ({"key": "theirs"}, ("False", "CollisionDetected"))
    world.east.delete(ref("ConfigMap", "a"))
    world.pass_time(35)
    assert world.condition(world.set("v1"), "Available") == ("True", "Available")
