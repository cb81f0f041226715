"""The entries of managedFields: their order, their number, and other versions."""

from typing import Any

import pytest

from lamina.errors import Conflict
from lamina.merge.managed import Identity, Manager, differ_only_in_time, given_owners, stored_owners
from lamina.merge.schema import Schema, compile_schema
from lamina.objects.types import Obj
from tests.unit.merge.stories import THING, V1, V2, Story, thing_with


def _entry(
    manager: str, operation: str, time: str, version: str = V1, subresource: str = ""
) -> dict[str, Any]:
    entry = {
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:size": {}}},
        "subresource": subresource,
    }
    return {key: value for key, value in entry.items() if value}


def test_appliers_stand_first_then_the_oldest_then_by_name_version_and_subresource() -> None:
    expected = [
        _entry("z", "Apply", ""),
        _entry("b", "Apply", "2026-01-01T00:00:00Z"),
        _entry("a", "Apply", "2026-01-01T00:00:01Z"),
        _entry("a", "Update", "2025-01-01T00:00:00Z"),
        _entry("a", "Update", "2026-01-01T00:00:00Z", V1),
        _entry("a", "Update", "2026-01-01T00:00:00Z", V1, "status"),
        _entry("a", "Update", "2026-01-01T00:00:00Z", V2),
        _entry("b", "Update", "2026-01-01T00:00:00Z"),
    ]
    distinct = [entry for entry in expected if entry.get("time") != "2025-01-01T00:00:00Z"]

    assert stored_owners(reversed(distinct)).as_json() == distinct
    assert stored_owners([expected[7], expected[3]]).as_json() == [expected[3], expected[7]]


def test_what_is_read_is_written_back_as_it_was() -> None:
    entries = [_entry("a", "Apply", ""), _entry("b", "Update", "2026-01-01T00:00:00Z", V1, "status")]

    given = given_owners(entries)

    assert given is not None
    assert given.as_json() == entries
    assert stored_owners(entries).as_json()[0] is entries[0]


def test_an_applier_is_one_manager_whatever_version_it_applies_in() -> None:
    assert Manager("a", "Apply", V1).identity == Manager("a", "Apply", V2).identity
    assert Manager("a", "Update", V1).identity != Manager("a", "Update", V2).identity


@pytest.mark.parametrize(
    ("identity", "called"),
    [
        (Identity("m1", "Apply", "", ""), '"m1"'),
        (Identity("m1", "Apply", "", "status"), '"m1" with subresource "status"'),
        (Identity("ctl", "Update", "apps/v1", ""), '"ctl" using apps/v1'),
        (Identity("ctl", "Update", "apps/v1", "scale"), '"ctl" with subresource "scale" using apps/v1'),
        (Identity('a"b\n', "Apply", "", ""), '"a\\"b\\n"'),
    ],
)
def test_what_a_conflict_calls_a_manager(identity: Identity, called: str) -> None:
    assert str(identity) == called


def test_at_most_ten_updaters_are_told_apart() -> None:
    story = Story()
    for number in range(12):
        labels = {**story.spec["labels"]} if story.live else {}
        story.update(f"writer-{number}", spec={"labels": {**labels, f"l{number}": "x"}})

    assert [entry["manager"] for entry in story.entries] == [
        "ancient-changes",
        *(f"writer-{number}" for number in range(3, 12)),
    ]
    assert story.owned("ancient-changes", "Update") == [
        ".spec",
        ".spec.labels",
        ".spec.labels.l0",
        ".spec.labels.l1",
        ".spec.labels.l2",
    ]
    assert story.entries[0]["time"] == "2026-01-01T00:03:00Z", "that of the youngest in it"


def test_appliers_are_never_merged() -> None:
    story = Story()
    for number in range(12):
        story.apply(f"applier-{number}", spec={"labels": {f"l{number}": "x"}})
    story.update("ctl", spec={**story.spec, "size": 1})

    assert len(story.entries) == 13


def test_entries_that_differ_only_in_time_say_the_same() -> None:
    one, two = _entry("a", "Apply", ""), _entry("a", "Apply", "2026-01-01T00:00:00Z")

    assert differ_only_in_time([one], [two])
    assert not differ_only_in_time([one], [])
    assert not differ_only_in_time([one], [_entry("b", "Apply", "")])


# Versions


def _versions(**schemas: dict[str, Any]) -> Any:
    compiled = {f"ex.example.com/{version}": compile_schema(schema) for version, schema in schemas.items()}

    def find(version: str) -> tuple[Schema, Any] | None:
        def convert(obj: Obj) -> Obj:
            return {**obj, "apiVersion": version}

        return (compiled[version], convert) if version in compiled else None

    return find


def test_an_owner_in_another_version_still_disagrees() -> None:
    story = Story(versions=_versions(v1=THING, v2=THING))
    story.apply("alice", version=V1, spec={"size": 1})

    with pytest.raises(Conflict) as refused:
        story.apply("bob", version=V2, spec={"size": 2})
    story.update("ctl", version=V2, spec={"size": 3})

    assert refused.value.causes[0].message == 'conflict with "alice"'
    assert [(entry["manager"], entry["apiVersion"]) for entry in story.entries] == [("ctl", V2)]


def test_what_was_applied_in_another_version_goes_when_it_is_left_out() -> None:
    story = Story(versions=_versions(v1=THING, v2=THING))
    story.apply("alice", version=V1, spec={"size": 1, "color": "red"})

    story.apply("alice", version=V2, spec={"size": 1})

    assert story.spec == {"size": 1}
    assert [(entry["manager"], entry["apiVersion"]) for entry in story.entries] == [("alice", V2)]


def test_part_of_what_another_version_owns_whole_is_not_taken_away() -> None:
    whole = thing_with(
        labels={"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {}}
    )
    story = Story(versions=_versions(v1=THING, v2=whole))
    story.apply("alice", version=V1, spec={"labels": {"a": "1", "b": "2"}})
    story.update("ctl", version=V2, spec={"labels": {"a": "1", "b": "2"}, "size": 1})

    story.apply("alice", version=V1, spec={"labels": {"a": "1"}})

    assert story.spec["labels"] == {"a": "1", "b": "2"}


def test_entries_in_a_version_that_is_gone_are_dropped() -> None:
    story = Story(versions=_versions(v1=THING, v2=THING))
    story.apply("alice", version=V1, spec={"size": 1})
    story.versions = _versions(v2=THING)

    story.apply("bob", version=V2, spec={"size": 2})

    assert [entry["manager"] for entry in story.entries] == ["bob"]


def test_without_knowing_versions_entries_of_others_stay_as_they_are() -> None:
    story = Story()
    story.apply("alice", version=V1, spec={"size": 1})

    story.update("ctl", version=V2, spec={"size": 2})

    assert [entry["manager"] for entry in story.entries] == ["alice", "ctl"]
