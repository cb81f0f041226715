"""How a CustomResourceDefinition ends."""

from datetime import timedelta
from typing import Any

from lamina.actors.definitions import DEFINITIONS, FINALIZER
from lamina.actors.garbage import GARBAGE
from lamina.core.plan import DeleteAll
from lamina.errors import Forbidden, PlanFailed
from lamina.objects import conditions, meta
from lamina.objects.types import Made
from lamina.paper import Paper, planned, settle
from lamina.paper.kinds import CONFIG_MAP, DEFINITION, WIDGET, make

HOLD = ["ex.example.com/hold"]


def definition(paper: Paper, *, established: bool = True, scope: str = "Namespaced", **more: Any) -> Made:
    accepted = {"type": "Established", "status": "True" if established else "False"}
    return paper.create(
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


def terminating(paper: Paper, made: Made) -> tuple[str, str, str]:
    found = conditions.find(paper.get(meta.ref(made))["status"]["conditions"], "Terminating")
    assert found is not None
    return found["status"], found.get("reason", ""), found.get("message", "")


def test_a_definition_takes_its_objects_along_from_every_namespace() -> None:
    paper = Paper()
    widgets = definition(paper)
    paper.create(make(WIDGET, "one", "a"))
    paper.create(make(WIDGET, "two", "b"))

    paper.delete(meta.ref(widgets))
    settle(paper, DEFINITIONS)

    assert paper.objects == {}
    assert [action for action in paper.journal if isinstance(action, DeleteAll)] == [
        DeleteAll(kind=WIDGET, namespace="a"),
        DeleteAll(kind=WIDGET, namespace="b"),
    ]


def test_an_object_that_is_held_holds_the_definition_and_that_is_said_first() -> None:
    paper = Paper()
    widgets = definition(paper)
    held = paper.create(make(WIDGET, "one", "a", finalizers=HOLD))

    paper.delete(meta.ref(widgets))
    settle(paper, DEFINITIONS)

    assert terminating(paper, widgets) == (
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    )
    assert meta.is_deleting(paper.get(meta.ref(held)))

    paper.patch(meta.ref(held), {"metadata": {"finalizers": None}})
    settle(paper, DEFINITIONS)

    assert paper.objects == {}


def test_after_a_minute_it_says_that_the_end_could_not_be_confirmed() -> None:
    paper = Paper()
    widgets = definition(paper)
    held = paper.create(make(WIDGET, "one", "a", finalizers=HOLD))
    paper.delete(meta.ref(widgets))
    settle(paper, DEFINITIONS)
    assert planned(paper, DEFINITIONS, meta.ref(widgets)).look_again == timedelta(minutes=1)

    paper.now += timedelta(minutes=2)
    settle(paper, DEFINITIONS)

    assert terminating(paper, widgets)[1] == "InstanceDeletionCheck"
    paper.patch(meta.ref(held), {"metadata": {"finalizers": None}})
    settle(paper, DEFINITIONS)
    assert paper.objects == {}


def test_a_definition_that_was_never_established_has_nothing_to_delete() -> None:
    paper = Paper()
    widgets = definition(paper, established=False, finalizers=HOLD)

    paper.delete(meta.ref(widgets))
    settle(paper, DEFINITIONS)

    assert terminating(paper, widgets) == ("False", "NeverEstablished", "resource was never established")
    assert meta.finalizers(paper.get(meta.ref(widgets))) == HOLD


def test_somebody_elses_finalizer_keeps_the_definition_and_it_says_that_its_objects_are_gone() -> None:
    paper = Paper()
    widgets = definition(paper, finalizers=HOLD)
    paper.create(make(WIDGET, "one", "a"))

    paper.delete(meta.ref(widgets))
    settle(paper, DEFINITIONS)

    assert terminating(paper, widgets) == ("False", "InstanceDeletionCompleted", "removed all instances")
    assert meta.finalizers(paper.get(meta.ref(widgets))) == HOLD


def test_objects_that_memory_has_not_seen_are_asked_for_before_the_end() -> None:
    paper = Paper()
    widgets = definition(paper)
    late = paper.create(make(WIDGET, "late", "a"))
    paper.delete(meta.ref(widgets))
    for action in planned(paper, DEFINITIONS, meta.ref(widgets)).actions:
        paper.perform(action)

    plan = planned(paper, DEFINITIONS, meta.ref(widgets), unseen=[meta.ref(late)])

    assert plan.actions == (DeleteAll(kind=WIDGET, namespace="a"),)


def test_a_failure_to_delete_is_said_on_the_definition() -> None:
    paper = Paper()
    widgets = definition(paper)
    paper.create(make(WIDGET, "one", "a"))
    paper.delete(meta.ref(widgets))

    complaint = DEFINITIONS.complain(
        paper.world(DEFINITIONS), meta.ref(widgets), PlanFailed([Forbidden("not today")]), paper.now
    )
    for action in complaint.actions:
        paper.perform(action)

    assert terminating(paper, widgets) == (
        "True",
        "InstanceDeletionFailed",
        "could not issue all deletes: not today",
    )


def test_what_belongs_to_the_objects_of_a_definition_goes_with_them() -> None:
    paper = Paper()
    widgets = definition(paper)
    widget = paper.create(make(WIDGET, "one", "a"))
    paper.create(make(CONFIG_MAP, "child", "a", ownerReferences=[meta.owner_ref(widget)]))

    paper.delete(meta.ref(widgets))
    settle(paper, DEFINITIONS, GARBAGE)

    assert paper.objects == {}


def test_a_definition_that_stays_is_left_alone() -> None:
    paper = Paper()
    definition(paper)
    paper.create(make(WIDGET, "one", "a"))

    settle(paper, DEFINITIONS)

    assert paper.journal == []
