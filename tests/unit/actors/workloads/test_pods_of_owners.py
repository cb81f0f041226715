"""The state and names of pods, and the order of their deletion."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamina.actors.workloads import templates
from lamina.actors.workloads.deletion_order import DELETION_COST, deletion_cost, pods_to_delete
from lamina.actors.workloads.event_recorder import AT_MOST, aggregated
from lamina.actors.workloads.pods import (
    available_in,
    free_names,
    is_active,
    is_available,
    is_finished,
    is_terminating,
    prefix,
)
from lamina.objects import meta
from lamina.objects.digest import SAFE
from lamina.objects.times import stamp
from lamina.objects.types import Made
from lamina.simulation.cluster.kinds import POD, make
from tests.unit.actors.workloads.growing import replica_set, template

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pod(
    name: str = "p",
    *,
    phase: str = "Running",
    node: str = "sim-0",
    ready: float | None = None,
    old: float = 1000,
    restarts: int = 0,
    cost: str | None = None,
    going: bool = False,
) -> Made:
    """Return a pod: `ready` and `old` say for how many seconds it has been so."""
    made = make(POD, name, spec={"nodeName": node} if node else {})
    made["metadata"] |= {"uid": f"uid-{name}", "creationTimestamp": stamp(NOW - timedelta(seconds=old))}
    if cost is not None:
        made["metadata"]["annotations"] = {DELETION_COST: cost}
    if going:
        made["metadata"]["deletionTimestamp"] = stamp(NOW)
    condition = {"type": "Ready", "status": "False"}
    if ready is not None:
        since = stamp(NOW - timedelta(seconds=ready))
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    status: dict[str, Any] = {"phase": phase, "conditions": [condition]}
    status["containerStatuses"] = [{"restartCount": restarts}]
    return {**made, "status": status}


@pytest.mark.parametrize(
    ("phase",     "going", "active", "terminating", "finished"),
    [
        ("Pending",   False, True,  False, False),
        ("Running",   False, True,  False, False),
        ("Unknown",   False, True,  False, False),
        ("Succeeded", False, False, False, True),
        ("Failed",    False, False, False, True),
        ("Running",   True,  False, True,  False),
        ("Failed",    True,  False, False, True),
    ],
)  # fmt: skip
def test_what_a_pod_counts_as(
    phase: str, going: bool, active: bool, terminating: bool, finished: bool
) -> None:
    one = pod(phase=phase, going=going)

    assert (is_active(one), is_terminating(one), is_finished(one)) == (active, terminating, finished)


@pytest.mark.parametrize(
    ("ready", "for_seconds", "left"),
    [
        (None, 0,  None),
        (None, 10, None),
        (0,    0,  0),
        (0,    10, 10),
        (4,    10, 6),
        (10,   10, 0),
        (99,   10, 0),
    ],
)  # fmt: skip
def test_a_pod_is_available_after_a_while(ready: float | None, for_seconds: int, left: float | None) -> None:
    one = pod(ready=ready)

    expected = None if left is None else timedelta(seconds=left)
    assert available_in(one, for_seconds, NOW) == expected
    assert is_available(one, for_seconds, NOW) == (left == 0)


@pytest.mark.parametrize(
    ("rule", "first", "second"),
    [
        ("no node has it",         {"node": "", "ready": 9}, {}),
        ("it is pending",          {"phase": "Pending"}, {"phase": "Running"}),
        ("its phase is unknown",   {"phase": "Unknown"}, {"phase": "Running"}),
        ("it is not ready",        {}, {"ready": 5}),
        ("it costs less",          {"ready": 5000, "cost": "-1"}, {"ready": 1}),
        ("it was ready later",     {"ready": 5}, {"ready": 5000}),
        ("it restarted more",      {"restarts": 3}, {}),
        ("it is newer",            {"old": 1}, {"old": 5000}),
    ],
)  # fmt: skip
def test_a_pod_goes_first_because(rule: str, first: dict[str, Any], second: dict[str, Any]) -> None:
    # The names are such that without the rule the other one would go.
    one, other = pod("z", **first), pod("a", **second)

    assert [meta.name(gone) for gone in pods_to_delete([other, one], 1, NOW)] == ["z"]
    assert [meta.name(gone) for gone in pods_to_delete([one, other], 1, NOW)] == ["z"]


def test_a_pod_goes_first_whose_node_has_more_of_its_kind() -> None:
    alone, crowded = pod("a", node="east", ready=9), pod("z", node="west", ready=9)
    related = [alone, crowded, pod("x", node="west"), pod("y", node="west", going=True)]

    assert pods_to_delete([alone, crowded], 1, NOW, related) == [crowded]


@pytest.mark.parametrize(
    ("written", "cost"),
    [("5", 5), ("-5", -5), ("0", 0), ("+5", 0), ("05", 0), ("x", 0), ("", 0), ("99999999999", 0), ("-2147483648", -2147483648)],
)  # fmt: skip
def test_what_a_deletion_is_said_to_cost(written: str, cost: int) -> None:
    assert deletion_cost(pod(cost=written)) == cost


def test_names_are_made_of_the_safe_alphabet_and_differ() -> None:
    owner = replica_set("web")
    owner["metadata"] |= {"uid": "u", "resourceVersion": "7"}

    chosen = free_names(owner, [], 3000)

    assert len(set(chosen)) == 3000
    assert all(name.startswith("web-") and set(name[4:]) <= set(SAFE) and len(name) == 9 for name in chosen)
    assert chosen == free_names(owner, [], 3000), "the same picture, the same names"


@pytest.mark.parametrize("changed", ["uid", "resourceVersion"])
def test_another_picture_gives_other_names(changed: str) -> None:
    owner = replica_set("web")
    owner["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    other = replica_set("web")
    other["metadata"] |= {"uid": "u", "resourceVersion": "7", changed: "8"}

    assert not set(free_names(owner, [], 5)) & set(free_names(other, [], 5))
    assert not set(free_names(owner, [], 5)) & set(free_names(owner, [pod()], 5))


def test_a_long_name_leaves_room_for_the_rest() -> None:
    owner = replica_set("w" * 80)

    assert {len(name) for name in free_names(owner, [], 3)} == {63}
    assert prefix("web") == "web-"


def test_templates_are_the_same_whatever_mark_they_carry() -> None:
    plain, marked = template(), template(**{"pod-template-hash": "abc"})

    assert templates.is_same(plain, marked)
    assert templates.compute_hash(plain) == templates.compute_hash(marked)
    assert set(templates.compute_hash(plain)) <= set(SAFE) and len(templates.compute_hash(plain)) == 10
    assert templates.compute_hash(plain, 1) != templates.compute_hash(plain)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"volumes": []}, True),
        ({"nodeName": None}, True),
        ({"securityContext": {}}, False),
        ({"hostNetwork": True}, False),
    ],
)
def test_what_says_nothing_makes_no_other_template(change: dict[str, Any], same: bool) -> None:
    other = template()
    other["spec"] = {**other["spec"], **change}

    assert templates.is_same(template(), other) is same
    assert (templates.compute_hash(template()) == templates.compute_hash(other)) is same


@pytest.mark.parametrize(
    ("many", "events", "count"), [(1, 1, 1), (9, 9, 1), (10, 10, 1), (12, 10, 3), (999, 10, 16)]
)
def test_a_burst_is_told_in_few_events(many: int, events: int, count: int) -> None:
    messages = [f"Created pod: web-{number}" for number in range(many)]

    emitted = [one.event for one in aggregated(pod(), "SuccessfulCreate", messages, by="somebody", now=NOW)]

    assert len(emitted) == events
    assert emitted[-1]["count"] == count
    assert sum(event["count"] for event in emitted) == min(many, AT_MOST)
    assert len({meta.name(event) for event in emitted}) == events
