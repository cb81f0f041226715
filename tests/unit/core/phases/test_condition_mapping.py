"""Conditions of objects that are copied to their owner under other types."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lamina.core.model.condition_list import ConditionList
from lamina.core.phases.condition_mapping import is_mapped, mapped, outdated, passed_on, set_mapped
from lamina.core.phases.object_step import observe
from lamina.objects.types import Condition, Made
from tests.unit.core.phases.objects import live, manifest, owner

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def condition(name: str, status: str = "True", **fields: Any) -> Condition:
    made: Condition = {"type": name, "status": status}
    made.update(fields)  # type: ignore[typeddict-item]
    return made


def copies(
    *found: Condition, mappings: tuple[tuple[str, str], ...] = (("Ready", "ex.com/Ready"),)
) -> list[Any]:
    wanted = manifest(mappings=mappings)
    return list(mapped([observe(owner(), wanted, live(conditions=found))]))


def reporting(*found: Condition, generation: int = 2) -> Made:
    return {"metadata": {"generation": generation}, "status": {"conditions": list(found)}}


@pytest.mark.parametrize(("name", "copied"), [("ex.com/Ready", True), ("Ready", False), ("", False)])
def test_a_copied_condition_has_a_prefix(name: str, copied: bool) -> None:
    assert is_mapped(condition(name)) == copied


def test_a_condition_is_copied_under_the_type_that_it_is_mapped_to() -> None:
    [found] = copies(condition("Ready", "False", reason="Broken", message="no"), condition("Other"))

    assert found == {"type": "ex.com/Ready", "status": "False", "reason": "Broken", "message": "no"}


@pytest.mark.parametrize(
    ("source", "copied"),
    [
        ({}, True),
        ({"observedGeneration": 0}, True),
        ({"observedGeneration": 1}, True),
        ({"observedGeneration": 2}, False),
    ],
)
def test_a_condition_of_another_generation_is_not_copied(source: dict[str, Any], copied: bool) -> None:
    assert bool(copies(condition("Ready", **source))) == copied


@pytest.mark.parametrize(
    ("source", "status", "reason"),
    [
        (condition("Ready", "Maybe", reason="Fine"), "Unknown", "Fine"),
        (condition("Ready", "True", reason="not a reason"), "True", "Unspecified"),
        (condition("Ready", "True"), "True", "Unspecified"),
    ],
)
def test_what_no_schema_allows_is_replaced(source: Condition, status: str, reason: str) -> None:
    [found] = copies(source)

    assert (found["status"], found["reason"]) == (status, reason)


def test_nothing_is_copied_of_an_object_that_is_missing_or_has_no_mapping() -> None:
    assert not list(mapped([observe(owner(), manifest(mappings=[("Ready", "ex.com/Ready")]), None)]))
    assert not copies(condition("Ready"), mappings=())


def test_one_condition_may_be_copied_twice() -> None:
    found = copies(condition("Ready"), mappings=(("Ready", "ex.com/A"), ("Ready", "ex.com/B")))

    assert [one["type"] for one in found] == ["ex.com/A", "ex.com/B"]


def test_copies_of_the_current_generation_are_passed_on() -> None:
    obj = reporting(
        condition("ex.com/New", observedGeneration=2),
        condition("ex.com/Old", observedGeneration=1),
        condition("Ready", observedGeneration=2),
    )

    assert [one["type"] for one in passed_on(obj)] == ["ex.com/New"]
    assert list(outdated(obj)) == ["ex.com/Old"]


def test_copies_replace_all_former_ones_but_those_that_are_outdated() -> None:
    made = ConditionList(
        reporting(condition("Ready"), condition("ex.com/Kept"), condition("ex.com/Gone")), NOW
    )

    set_mapped(made, [condition("ex.com/New", reason="Fine")], ["ex.com/Kept"])

    assert [one["type"] for one in made.found] == ["Ready", "ex.com/Kept", "ex.com/New"]
    new = made.get("ex.com/New")
    assert new is not None
    assert new.get("observedGeneration") == 2


def test_a_copy_keeps_its_transition_time_while_its_status_stays() -> None:
    before = condition("ex.com/A", lastTransitionTime="2025-01-01T00:00:00Z")
    made = ConditionList(reporting(before), NOW)

    set_mapped(made, [condition("ex.com/A", reason="Other")])

    [after] = made.found
    assert (after.get("reason"), after.get("lastTransitionTime")) == ("Other", "2025-01-01T00:00:00Z")
