"""The effective revision of an instance: pin, policy, gate, acceptance, and what is left of a lost status."""

from typing import Any

import pytest

from lamina.families.resourcegraph.instances.effective_revision import (
    Effective,
    Reason,
    Situation,
    effective_revision,
)

NUMBERS = frozenset((1, 2, 3))


def resolve(**fields: Any) -> Effective:
    return effective_revision(Situation(**{"current": 3, "available": NUMBERS, "recorded": 2, **fields}))


@pytest.mark.parametrize(
    ("fields", "number", "pending"),
    [
        ({"recorded": 0}, 3, 0),
        ({"recorded": 0, "is_gated": True}, 3, 0),
        ({"recorded": 0, "policy": "Manual"}, 3, 0),
        ({}, 3, 0),
        ({"policy": "Auto"}, 3, 0),
        ({"policy": ""}, 3, 0),
        ({"is_gated": True}, 2, 3),
        ({"is_gated": True, "is_admitted": True}, 3, 0),
        ({"is_gated": True, "recorded": 3}, 3, 0),
        ({"policy": "Manual"}, 2, 3),
        ({"policy": "Manual", "recorded": 3}, 3, 0),
        ({"policy": "Manual", "accepted": "latest"}, 3, 0),
        ({"policy": "Manual", "accepted": "1"}, 1, 3),
        ({"policy": "Paused"}, 2, 3),
        ({"policy": "Paused", "is_gated": True, "is_admitted": True}, 2, 3),
        ({"pin": "1"}, 1, 0),
        ({"pin": "3"}, 3, 0),
        ({"pin": "1", "policy": "Manual"}, 1, 0),
        ({"pin": "1", "is_gated": True}, 1, 0),
        ({"pin": "1", "recorded": 0}, 1, 0),
        ({"pin": "1", "policy": "Paused"}, 1, 0),
        ({"recorded": 0, "stamped": 2, "policy": "Manual"}, 2, 3),
        ({"recorded": 0, "stamped": 2, "is_gated": True}, 2, 3),
        ({"recorded": 0, "stamped": 2}, 3, 0),
        ({"recorded": 1, "stamped": 2, "policy": "Manual"}, 1, 3),
    ],
)
def test_an_instance_has_one_effective_revision(fields: dict[str, Any], number: int, pending: int) -> None:
    found = resolve(**fields)

    assert (found.number, found.pending, found.reason) == (number, pending, Reason.RESOLVED)
    assert bool(found.waits) == bool(pending)


@pytest.mark.parametrize("pin", ["x", "", "0", "-1", "1.0", "01", " 1", "²"])
@pytest.mark.check("RG-90")
def test_a_pin_that_is_no_positive_integer_is_invalid(pin: str) -> None:
    found = resolve(pin=pin)

    assert (found.number, found.reason) == (0, Reason.INVALID_PIN)
    assert "1, 2, 3" in found.message


@pytest.mark.check("RG-90")
def test_a_pin_to_a_revision_that_does_not_exist_lists_those_that_do() -> None:
    found = resolve(pin="99")

    assert (found.number, found.reason) == (0, Reason.PINNED_NOT_FOUND)
    assert "99" in found.message and "1, 2, 3" in found.message


def test_of_many_revisions_the_newest_are_listed() -> None:
    found = resolve(pin="99", available=frozenset(range(1, 31)))

    assert "available: …, 19, 20," in found.message and "30; set" in found.message


@pytest.mark.check("RG-94")
def test_an_unknown_policy_is_reported_and_taken_as_manual() -> None:
    found = resolve(policy="foo")

    assert (found.number, found.pending, found.reason) == (2, 3, Reason.INVALID_POLICY)
    assert '"foo"' in found.message and "Auto, Manual, Paused" in found.message


def test_a_revision_that_is_accepted_and_does_not_exist_moves_nothing() -> None:
    found = resolve(policy="Manual", accepted="9")

    assert (found.number, found.reason, found.is_consumed) == (2, Reason.INVALID_ACCEPTANCE, False)


@pytest.mark.parametrize(
    ("fields", "consumed"),
    [
        ({"policy": "Manual", "accepted": "3"}, False),
        ({"policy": "Manual", "accepted": "3", "recorded": 3}, True),
        ({"policy": "Manual", "accepted": "latest", "recorded": 3}, True),
        ({"policy": "Auto", "accepted": "latest"}, True),
        ({"policy": "Paused", "accepted": "latest"}, False),
        ({"pin": "1", "accepted": "latest"}, False),
    ],
)
def test_an_acceptance_is_consumed_once_it_is_recorded(fields: dict[str, Any], consumed: bool) -> None:
    assert resolve(**fields).is_consumed is consumed


@pytest.mark.parametrize("fields", [{"policy": "Manual"}, {"is_gated": True}, {"policy": "Paused"}])
def test_an_instance_that_stays_on_a_revision_that_is_gone_is_told_so(fields: dict[str, Any]) -> None:
    found = resolve(available=frozenset((3,)), **fields)

    assert (found.number, found.reason) == (0, Reason.NOT_FOUND)
    assert "revision 2 does not exist" in found.message


def test_a_current_revision_that_does_not_exist_yet_is_waited_for() -> None:
    assert resolve(available=frozenset((1, 2))).reason is Reason.NOT_FOUND


def test_only_an_unpinned_instance_with_policy_auto_follows() -> None:
    assert resolve().follows
    assert not resolve(pin="1").follows
    assert not resolve(policy="Manual").follows


@pytest.mark.parametrize(
    ("fields", "number"),
    [
        ({"current": 2}, 2),
        ({"current": 2, "is_gated": True}, 2),
        ({}, 3),
        ({"is_gated": True, "is_admitted": True}, 3),
        ({"policy": "Manual", "accepted": "2"}, 2),
        ({"policy": "Manual", "accepted": "latest"}, 3),
        ({"pin": "1"}, 1),
    ],
)
def test_an_instance_leaves_a_revision_whose_number_has_other_content(
    fields: dict[str, Any], number: int
) -> None:
    found = resolve(is_replaced=True, **fields)

    assert (found.number, found.is_resolved, found.is_consumed) == (number, True, False)


@pytest.mark.parametrize(
    "fields",
    [
        {"pin": "2"},
        {"pin": "2", "policy": "Paused"},
        {"policy": "Manual"},
        {"policy": "Manual", "current": 2},
        {"policy": "Paused"},
        {"policy": "Paused", "current": 2},
        {"is_gated": True},
    ],
)
def test_an_instance_that_stays_does_not_take_other_content_of_the_same_number(
    fields: dict[str, Any],
) -> None:
    found = resolve(is_replaced=True, **fields)

    assert (found.number, found.reason) == (0, Reason.NOT_FOUND)
    assert "RGD revision 2 is not the one that it was on" in found.message
