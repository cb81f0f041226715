"""The status of definitions and instances, in the words of all families."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lamina.cli.commands.get import counts
from lamina.core.model.queries import Answers, Follow, Refused
from lamina.core.model.refused_reads import Refusals
from lamina.core.model.state import State
from lamina.core.rollout.owner_status import OwnerStatus, TargetStatus
from lamina.core.rollout.readable_status import reported_status
from lamina.families.resourcegraph.api import generated_kind
from lamina.families.resourcegraph.family import family
from lamina.families.resourcegraph.labels import PIN, ROLLBACK, ROLLBACK_INPUT
from lamina.families.resourcegraph.owner_status import owner_status
from lamina.objects import meta
from lamina.objects.types import Made
from tests.unit.families.resourcegraph.commands.objects import GROUP, content, definition, instance
from tests.unit.families.resourcegraph.commands.test_plans import world

WAITS = "propagateWhen of the definition has not admitted it to RGD revision 3 yet"


def said(**reasons: str) -> list[Made]:
    """Return conditions of generation 1; the first word of each is its status, the others its message."""
    found = {kind: text.partition(" ") for kind, text in reasons.items()}
    return [
        {"type": kind, "status": status, "reason": "Some", "message": message, "observedGeneration": 1}
        for kind, (status, _, message) in found.items()
    ]


def status_of(obj: Made, *others: Made) -> OwnerStatus:
    found = owner_status(world(definition(currentRevision=3), obj, *others), meta.ref(obj))
    assert found is not None
    return found


def status_of_instance(annotations: Made | None = None, **status: Any) -> OwnerStatus:
    ready = {"conditions": said(Ready="True", RevisionResolved="True RGD revision 2")}
    return status_of(instance(annotations=annotations, **{"state": "ACTIVE", **ready, **status}))


@pytest.mark.parametrize(
    ("annotations", "status", "state", "message"),
    [
        ({}, {}, State.HEALTHY, "RGD revision 2"),
        ({PIN: "2"}, {}, State.HEALTHY, "pinned to RGD revision 2"),
        ({ROLLBACK_INPUT: "1"}, {}, State.PENDING, "its controller has not carried out the rollback yet"),
        ({}, {"propagation": {"status": "Pending", "message": WAITS}}, State.PENDING, WAITS),
        ({}, {"propagation": {"status": "Blocked", "message": "a gate"}}, State.PAUSED, "a gate"),
        ({}, {"propagation": {"status": "Completed", "message": "Manual"}}, State.HEALTHY, "Manual"),
        (
            {PIN: "9"},
            {"state": "ERROR", "conditions": said(RevisionResolved="False RGD revision 9 does not exist")},
            State.DEGRADED,
            "RGD revision 9 does not exist",
        ),
    ],
)
def test_an_instance_says_why_it_is_in_its_state(
    annotations: Made, status: Made, state: State, message: str
) -> None:
    found = status_of_instance(annotations, **status)

    assert (found.state, found.message) == (state, message)


def test_a_definition_waits_until_its_rollback_is_carried_out() -> None:
    healthy = definition(
        currentRevision=3, conditions=said(Ready="True", Propagated="True 1/1 instances on revision 3")
    )
    asked = meta.with_metadata(healthy, annotations={ROLLBACK: "2"})

    before, during = (owner_status(world(one), meta.ref(one)) for one in (healthy, asked))

    assert before is not None and during is not None
    assert (before.state, before.message) == (State.HEALTHY, "1/1 instances on revision 3")
    assert during.state is State.PENDING


def test_an_invalid_graph_is_not_waited_for_unless_a_kind_may_come() -> None:
    (refused,) = said(GraphAccepted="False unknown field")
    conditions = [{**refused, "reason": "InvalidResourceGraph"}]
    served, unserved = content(), content()
    served["resources"][0]["template"] |= {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Application"}
    unserved["resources"][0]["template"] |= {"apiVersion": "example.com/v1", "kind": "None"}

    found, waiting = (status_of(definition(one, conditions=conditions)) for one in (served, unserved))
    failed = status_of(definition(served, conditions=[refused]))

    assert [one.state for one in (found, waiting, failed)] == [State.DEGRADED] * 3
    assert [one.has_ended for one in (found, waiting, failed)] == [True, False, False]


def listed(name: str, state: str, **fields: Any) -> Made:
    return {"id": name, "kind": "ConfigMap", "name": name, "state": state, **fields}


def test_resources_are_at_the_input_revisions_that_they_are_made_from() -> None:
    found = status_of_instance(
        currentInputRevision=5,
        managedResources=[
            listed("a", "waiting", inputRevision=5, ready=False),
            listed("b", "waiting", inputRevision=4, ready=True),
            listed("c", "write", ready=False),
            listed("d", "held", inputRevision=4, ready=True),
        ],
    )

    targets = [(one.revision, one.state, one.available) for one in found.targets.values()]
    assert targets == [
        (5, State.PROGRESSING, False),
        (4, State.PROGRESSING, True),
        (0, State.PROGRESSING, False),
        (4, State.PAUSED, True),
    ]
    assert found.updated == 1


def test_resources_that_are_not_listed_are_counted() -> None:
    many = [listed(f"c{number}", "synced", inputRevision=1, ready=True) for number in range(100)]
    found = status_of_instance(
        currentInputRevision=1,
        managedResources=many,
        propagation={"status": "Completed", "totalResources": 150},
    )
    assert found.message == "RGD revision 2; status.managedResources lists the first 100 of 150 resources"

    all_listed = {"status": "Completed", "totalResources": 100}
    found = status_of_instance(currentInputRevision=1, managedResources=many, propagation=all_listed)
    assert found.message == "RGD revision 2"


def test_an_instance_is_a_target_of_its_definition_since_it_changed_last() -> None:
    ready = {**said(Ready="True")[0], "lastTransitionTime": "2026-01-01T00:00:05Z"}
    one = instance(
        state="ACTIVE",
        currentRGDRevision=3,
        conditions=[ready],
        propagation={"status": "Completed", "lastTransitionTime": "2026-01-01T00:00:03Z"},
    )
    found = owner_status(world(definition(currentRevision=3), one), meta.ref(definition()))

    assert found is not None
    assert found.targets == {
        "default/my-app": TargetStatus(
            revision=3,
            state=State.HEALTHY,
            since=datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC),
            available=True,
            kind=meta.group_kind(one),
        )
    }


def test_instances_that_may_not_be_listed_are_not_counted() -> None:
    obj = definition(currentRevision=3, conditions=said(Ready="True"))
    cached, refused = world(obj), Refusals()
    kind = cached.kinds.preferred(generated_kind(obj))
    assert kind is not None
    answers = Answers({Follow(kind=kind, refusable=True): Refused(403, "cannot list applications")})

    known = reported_status(family(), cached, meta.ref(obj), Answers(), Refusals())
    found = reported_status(family(), cached, meta.ref(obj), answers, refused)

    assert known is not None and found is not None
    assert (counts(known), counts(found)) == (("0/0", "0/0"), ("?", "?"))
    assert found.unread == ("cannot list applications",)
