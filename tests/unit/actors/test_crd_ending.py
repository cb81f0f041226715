"""The deletion of a CustomResourceDefinition with its objects."""

from datetime import timedelta
from typing import Any

from lamina.actors.crd_finalizer import DEFINITIONS, FINALIZER
from lamina.actors.garbage import GARBAGE
from lamina.core.model.plan import DeleteAll
from lamina.errors import Forbidden, PlanFailed
from lamina.objects import conditions, meta
from lamina.objects.types import Made
from lamina.simulation import SimulatedCluster, planned, settle
from lamina.simulation.cluster.kinds import CONFIG_MAP, DEFINITION, WIDGET, make

HOLD = ["ex.example.com/hold"]


def definition(
    cluster: SimulatedCluster, *, established: bool = True, scope: str = "Namespaced", **more: Any
) -> Made:
    accepted = {"type": "Established", "status": "True" if established else "False"}
    return cluster.create(
        make(
            DEFINITION,
            "widgets.ex.example.com",
            finalizers=[FINALIZER, *more.pop("finalizers", [])],
            spec={
                "group": "ex.example.com",
                "scope": scope,
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"long": "and large"}}
                ],
            },
            status={"conditions": [accepted]},
            **more,
        )
    )


def terminating(cluster: SimulatedCluster, made: Made) -> tuple[str, str, str]:
    found = conditions.find(cluster.get(meta.ref(made))["status"]["conditions"], "Terminating")
    assert found is not None
    return found["status"], found.get("reason", ""), found.get("message", "")


def test_a_definition_takes_its_objects_along_from_every_namespace() -> None:
    cluster = SimulatedCluster()
    widgets = definition(cluster)
    cluster.create(make(WIDGET, "one", "a"))
    cluster.create(make(WIDGET, "two", "b"))

    cluster.delete(meta.ref(widgets))
    settle(cluster, DEFINITIONS)

    assert cluster.objects == {}
    assert [action for action in cluster.journal if isinstance(action, DeleteAll)] == [
        DeleteAll(kind=WIDGET, namespace="a"),
        DeleteAll(kind=WIDGET, namespace="b"),
    ]


def test_an_object_that_is_held_holds_the_definition_and_that_is_said_first() -> None:
    cluster = SimulatedCluster()
    widgets = definition(cluster)
    held = cluster.create(make(WIDGET, "one", "a", finalizers=HOLD))

    cluster.delete(meta.ref(widgets))
    settle(cluster, DEFINITIONS)

    assert terminating(cluster, widgets) == (
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    )
    assert meta.is_deleting(cluster.get(meta.ref(held)))

    cluster.patch(meta.ref(held), {"metadata": {"finalizers": None}})
    settle(cluster, DEFINITIONS)

    assert cluster.objects == {}


def test_after_a_minute_it_says_that_the_end_could_not_be_confirmed() -> None:
    cluster = SimulatedCluster()
    widgets = definition(cluster)
    held = cluster.create(make(WIDGET, "one", "a", finalizers=HOLD))
    cluster.delete(meta.ref(widgets))
    settle(cluster, DEFINITIONS)
    assert planned(cluster, DEFINITIONS, meta.ref(widgets)).requeue_after == timedelta(minutes=1)

    cluster.now += timedelta(minutes=2)
    settle(cluster, DEFINITIONS)

    assert terminating(cluster, widgets)[1] == "InstanceDeletionCheck"
    cluster.patch(meta.ref(held), {"metadata": {"finalizers": None}})
    settle(cluster, DEFINITIONS)
    assert cluster.objects == {}


def test_a_definition_that_was_never_established_has_nothing_to_delete() -> None:
    cluster = SimulatedCluster()
    widgets = definition(cluster, established=False, finalizers=HOLD)

    cluster.delete(meta.ref(widgets))
    settle(cluster, DEFINITIONS)

    assert terminating(cluster, widgets) == ("False", "NeverEstablished", "resource was never established")
    assert meta.finalizers(cluster.get(meta.ref(widgets))) == HOLD


def test_another_finalizer_keeps_the_definition_and_it_says_that_its_objects_are_gone() -> None:
    cluster = SimulatedCluster()
    widgets = definition(cluster, finalizers=HOLD)
    cluster.create(make(WIDGET, "one", "a"))

    cluster.delete(meta.ref(widgets))
    settle(cluster, DEFINITIONS)

    assert terminating(cluster, widgets) == ("False", "InstanceDeletionCompleted", "removed all instances")
    assert meta.finalizers(cluster.get(meta.ref(widgets))) == HOLD


def test_objects_that_memory_has_not_seen_are_asked_for_before_the_end() -> None:
    cluster = SimulatedCluster()
    widgets = definition(cluster)
    late = cluster.create(make(WIDGET, "late", "a"))
    cluster.delete(meta.ref(widgets))
    for action in planned(cluster, DEFINITIONS, meta.ref(widgets)).actions:
        cluster.perform(action)

    plan = planned(cluster, DEFINITIONS, meta.ref(widgets), unseen=[meta.ref(late)])

    assert plan.actions == (DeleteAll(kind=WIDGET, namespace="a"),)


def test_a_failure_to_delete_is_said_on_the_definition() -> None:
    cluster = SimulatedCluster()
    widgets = definition(cluster)
    cluster.create(make(WIDGET, "one", "a"))
    cluster.delete(meta.ref(widgets))

    complaint = DEFINITIONS.complain(
        cluster.world(DEFINITIONS), meta.ref(widgets), PlanFailed([Forbidden("not today")]), cluster.now
    )
    for action in complaint.actions:
        cluster.perform(action)

    assert terminating(cluster, widgets) == (
        "True",
        "InstanceDeletionFailed",
        "could not issue all deletes: not today",
    )


def test_what_belongs_to_the_objects_of_a_definition_goes_with_them() -> None:
    cluster = SimulatedCluster()
    widgets = definition(cluster)
    widget = cluster.create(make(WIDGET, "one", "a"))
    cluster.create(make(CONFIG_MAP, "child", "a", ownerReferences=[meta.owner_ref(widget)]))

    cluster.delete(meta.ref(widgets))
    settle(cluster, DEFINITIONS, GARBAGE)

    assert cluster.objects == {}


def test_a_definition_that_stays_is_left_alone() -> None:
    cluster = SimulatedCluster()
    definition(cluster)
    cluster.create(make(WIDGET, "one", "a"))

    settle(cluster, DEFINITIONS)

    assert cluster.journal == []
