"""The rows of lists of revisions."""

import pytest

from lamina.families.resourcegraph.commands.rows import shown_time, table
from lamina.families.resourcegraph.labels import PIN
from tests.unit.families.resourcegraph.commands.objects import (
    definition,
    facts,
    input_revision,
    instance,
    revision,
)

pytestmark = pytest.mark.check("RG-108")


def test_the_revisions_of_a_definition_are_listed_newest_first() -> None:
    found = table(
        facts(
            definition(currentRevision=3),
            revision(1, created="2025-01-10T08:00:00Z"),
            revision(2, created="2025-01-14T09:00:00Z", instances=3),
            revision(3, created="2025-01-15T10:30:00Z", instances=47),
        )
    )

    assert found.header == ("REVISION", "CREATED", "INSTANCES", "STATUS")
    assert found.rows == (
        ("3", "2025-01-15 10:30:00", "47", "Current"),
        ("2", "2025-01-14 09:00:00", "3", "Active"),
        ("1", "2025-01-10 08:00:00", "0", "Prunable"),
    )
    assert found.data[0] == {
        "revision": 3,
        "name": "application-rev-3",
        "created": "2025-01-15T10:30:00Z",
        "instances": 47,
        "status": "Current",
    }


@pytest.mark.parametrize(
    ("pin", "count", "status"),
    [
        (None, 0, "Prunable"),
        (None, 1, "Active"),
        ("1", 0, "Active"),
        ("2", 0, "Prunable"),
        ("x", 0, "Prunable"),
    ],
)
def test_an_older_revision_is_active_where_an_instance_is_on_it_or_pinned_to_it(
    pin: str | None, count: int, status: str
) -> None:
    pinned = instance(annotations={PIN: pin} if pin is not None else None)

    found = table(
        facts(definition(currentRevision=2), revision(1, instances=count), revision(2), instances=(pinned,))
    )

    assert [row[-1] for row in found.rows] == ["Current", status]


def test_without_a_status_the_newest_revision_is_current() -> None:
    assert [row[-1] for row in table(facts(definition(), revision(1), revision(2))).rows] == [
        "Current",
        "Prunable",
    ]


def test_the_input_revisions_of_an_instance_are_listed_newest_first() -> None:
    found = table(
        facts(
            instance(),
            input_revision(10, 2, "2025-01-14T10:00:00Z", superseded=True),
            input_revision(11, 3, "2025-01-15T09:00:00Z", superseded=True),
            input_revision(12, 3, "2025-01-15T10:35:00Z"),
        )
    )

    assert found.header == ("INPUT-REV", "RGD-REV", "CREATED", "STATUS")
    assert found.rows == (
        ("12", "3", "2025-01-15 10:35:00", "Completed"),
        ("11", "3", "2025-01-15 09:00:00", "Superseded"),
        ("10", "2", "2025-01-14 10:00:00", "Superseded"),
    )


@pytest.mark.parametrize("status", ["Pending", "InProgress", "Failed"])
def test_the_newest_input_revision_has_the_status_of_its_propagation(status: str) -> None:
    assert table(facts(instance(), input_revision(1, 1, status=status))).rows[0][-1] == status


def test_an_object_without_revisions_has_a_message() -> None:
    assert table(facts(definition())).empty == "rgd/application has no revisions"
    assert table(facts(instance())).empty == "application/my-app has no revisions"


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [
        ("2025-01-15T10:30:00Z", "2025-01-15 10:30:00"),
        ("2025-01-15T10:30:00+02:00", "2025-01-15 08:30:00"),
        ("", "<unknown>"),
    ],
)
def test_times_are_in_utc(stamp: str, shown: str) -> None:
    assert shown_time(stamp) == shown
