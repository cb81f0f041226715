"""Conditions, the root of them, and how often counts are written."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lamina.families.resourcegraph.definitions.findings import Finding
from lamina.families.resourcegraph.definitions.status import with_findings, with_state
from lamina.objects import conditions, meta
from lamina.objects.types import Made
from lamina.simulation import planned
from tests.unit.families.resourcegraph.definitions.clusters import APP, Definitions, app, instance, resource

NOW = datetime(2026, 5, 1, tzinfo=UTC)
TRUE = Finding("True", "Yes")
ALL = {
    "GraphRevisionsResolved": TRUE, "GraphAccepted": TRUE, "KindReady": TRUE, "ControllerReady": TRUE,
}  # fmt: skip


def definition(*found: Made, generation: int = 1) -> Made:
    return {
        **app(),
        "metadata": {"name": "app", "generation": generation},
        "status": {"conditions": list(found)},
    }


def condition(type_: str, status: str, *, generation: int = 1, since: str = "", **fields: Any) -> Made:
    time = since or "2026-01-01T00:00:00Z"
    return {
        "type": type_, "status": status, "observedGeneration": generation, "lastTransitionTime": time,
        "reason": f"{type_}Reason", "message": f"about {type_}", **fields,
    }  # fmt: skip


def root(obj: Made, findings: dict[str, Finding]) -> tuple[str, str, str]:
    found = conditions.find(with_findings(obj, findings, NOW), "Ready")
    assert found is not None
    return found["status"], found.get("reason", ""), found.get("message", "")


def test_the_root_is_ready_without_a_message_if_all_that_it_depends_on_is() -> None:
    assert root(definition(), ALL) == ("True", "Ready", "")


@pytest.mark.parametrize("name", ["RevisionCurrent", "RollbackSucceeded", "Propagated"])
def test_the_conditions_about_revisions_do_not_count_for_the_root(name: str) -> None:
    assert root(definition(), {**ALL, name: Finding("False", "No", "no")})[0] == "True"


def test_the_root_copies_the_false_one_before_the_unknown_one() -> None:
    findings = {
        **ALL,
        "GraphAccepted": Finding("Unknown", "Later", "a"),
        "KindReady": Finding("False", "Failed", "b"),
    }

    assert root(definition(), findings) == ("False", "Failed", "b")


def test_of_equally_bad_conditions_the_root_copies_the_newest() -> None:
    obj = definition(
        condition("KindReady", "False", since="2026-02-01T00:00:00Z"),
        condition("GraphAccepted", "False", since="2026-03-01T00:00:00Z"),
    )
    findings = {
        "KindReady": Finding("False", "Older", "a"), "GraphAccepted": Finding("False", "Newer", "b"),
        "GraphRevisionsResolved": TRUE, "ControllerReady": TRUE,
    }  # fmt: skip

    assert root(obj, findings) == ("False", "Newer", "b")


def test_the_root_is_unknown_while_a_condition_is_about_an_older_generation() -> None:
    stale = [condition(name, "True", generation=1) for name in ALL]

    assert root(definition(*stale, generation=2), {"GraphAccepted": TRUE})[:2] == (
        "Unknown", "AwaitingReconciliation",
    )  # fmt: skip


def test_before_anything_is_known_all_conditions_await_reconciliation() -> None:
    found = with_findings(
        definition(), {"GraphAccepted": Finding("False", "InvalidResourceGraph", "why")}, NOW
    )

    assert [(one["type"], one["status"], one["reason"]) for one in found] == [
        ("GraphRevisionsResolved", "Unknown", "AwaitingReconciliation"),
        ("GraphAccepted", "False", "InvalidResourceGraph"),
        ("KindReady", "Unknown", "AwaitingReconciliation"),
        ("ControllerReady", "Unknown", "AwaitingReconciliation"),
        ("Ready", "False", "InvalidResourceGraph"),
    ]


def test_a_condition_of_older_releases_of_upstream_goes() -> None:
    found = with_findings(definition(condition("ResourceGraphAccepted", "True")), ALL, NOW)

    assert conditions.find(found, "ResourceGraphAccepted") is None
    assert found[-1]["type"] == "Ready"


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("GraphAccepted", "Inactive"),
        ("KindReady", "Inactive"),
        ("ControllerReady", "Inactive"),
        ("GraphRevisionsResolved", "Active"),
    ],
)
def test_the_state_is_active_as_long_as_the_accepted_graph_is_served(name: str, state: str) -> None:
    assert with_state(definition(), {**ALL, name: Finding("False", "No")}, NOW)["state"] == state


def test_a_transition_time_is_that_of_the_status_and_not_of_the_message() -> None:
    obj = definition(condition("KindReady", "True", since="2026-02-01T00:00:00Z"))

    [found] = [one for one in with_findings(obj, ALL, NOW) if one["type"] == "KindReady"]

    assert found["lastTransitionTime"] == "2026-02-01T00:00:00Z"
    assert found["reason"] == "Yes"


# What is counted


@pytest.mark.check("RG-107")
def test_every_instance_is_counted_once() -> None:
    there = Definitions()
    there.apply(app())
    there.apply(
        *(instance(f"a{n}") for n in range(5)), instance("p", annotations={"kro.run/rgd-revision": "1"})
    )
    there.apply(app(resource(more="two")))

    history = there.status["revisionHistory"]
    assert [one["instanceCount"] for one in history] == [5, 1]
    assert [there.revision(n)["status"]["instanceCount"] for n in (1, 2)] == [1, 5]


def test_an_instance_that_is_being_deleted_is_not_counted_and_still_keeps_its_revision() -> None:
    there = Definitions()
    there.apply(app(revisionManagement={"historyLimit": 0}))
    there.apply(instance("a1", annotations={"kro.run/update-policy": "Manual"}))
    ref = meta.ref(there.instance("a1"))
    there.cluster.patch(ref, {"metadata": {"finalizers": ["team/backup"]}})
    there.delete(ref)

    there.apply(app(resource(more="two"), revisionManagement={"historyLimit": 0}))

    assert there.numbers == [1, 2]
    assert [one["instanceCount"] for one in there.status["revisionHistory"]] == [0, 0]


def test_counts_are_written_at_most_once_a_second() -> None:
    there = Definitions()
    there.apply(app())
    before = len([one for one in there.cluster.journal if one.ref.kind == "ResourceGraphDefinition"])

    for number in range(40):
        there.apply(instance(f"a{number}"), seconds=0.1)

    writes = [one for one in there.cluster.journal if one.ref.kind == "ResourceGraphDefinition"][before:]
    assert len(writes) <= 6
    there.run(5)
    assert there.status["revisionHistory"][0]["instanceCount"] == 40


def test_the_gauges_of_a_definition_are_its_revision_and_its_instances() -> None:
    there = Definitions()
    there.apply(app())
    there.apply(instance("a1"))
    there.apply(app(resource(more="two")))

    gauges = planned(there.cluster, there.controller, APP).gauges

    assert {(one.name, one.labels, one.value) for one in gauges} == {
        ("rgd_revision_current", (("name", "app"),), 2),
        ("rgd_revision_instances", (("name", "app"), ("revision", "1")), 0),
        ("rgd_revision_instances", (("name", "app"), ("revision", "2")), 1),
        ("instance_propagation_pending", (("name", "app"),), 0),
        ("propagation_duration_seconds", (("name", "app"),), 2),
    }


def test_the_duration_of_a_propagation_grows_until_all_instances_have_completed_it() -> None:
    there = Definitions()
    there.apply(app(), instance("a1", sick=2))
    assert duration(there) == 0

    there.apply(app(resource(more="two")), seconds=10)
    assert duration(there) == 10

    there.apply(instance("a1"), seconds=10)
    ended = duration(there)
    there.run(60)

    assert 10 <= ended <= 20
    assert duration(there) == ended


def duration(there: Definitions) -> float:
    gauges = planned(there.cluster, there.controller, APP).gauges
    [found] = [one.value for one in gauges if one.name == "propagation_duration_seconds"]
    return found


def test_fields_of_the_status_that_shadow_those_of_the_controller_are_reported() -> None:
    there = Definitions()

    there.apply(app(schema={"status": {"propagation": "${config.metadata.name}"}}))

    [event] = there.events("StatusFieldShadowed")
    assert "propagation" in event
