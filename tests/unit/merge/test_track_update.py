"""Field ownership after an update."""

from typing import Any

import pytest

from tests.unit.merge.stories import V1, Story


def test_a_creator_owns_everything_and_what_holds_it() -> None:
    story = Story()

    story.update(
        "kubectl", metadata={"labels": {"a": "b"}}, spec={"size": 1, "parts": [{"name": "x"}], "tags": []}
    )

    assert story.entries == [
        {
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": V1,
            "time": story.now,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {
                    ".": {},
                    "f:parts": {".": {}, 'k:{"name":"x"}': {".": {}, "f:name": {}}},
                    "f:size": {},
                    "f:tags": {},
                },
            },
        }
    ]


def test_a_writer_owns_what_it_changed_and_others_lose_it() -> None:
    story = Story()
    story.apply("alice", spec={"size": 1, "color": "red"})
    story.update("ctl", spec={"size": 1, "color": "blue", "flag": True})

    story.update("other", spec={"size": 2, "color": "blue", "flag": True})

    assert story.owned("alice") == []
    assert story.owned("ctl", "Update") == [".spec.color", ".spec.flag"]
    assert story.owned("other", "Update") == [".spec.size"]


def test_what_is_removed_has_no_owner() -> None:
    story = Story()
    story.apply("alice", spec={"size": 1, "parts": [{"name": "a", "value": "1"}, {"name": "b"}]})
    then = story.now

    story.update("ctl", spec={"size": 1, "parts": [{"name": "b"}]})

    assert story.owned("alice") == [".spec.size", '.spec.parts[name="b"]', '.spec.parts[name="b"].name']
    assert [(entry["manager"], entry["time"]) for entry in story.entries] == [("alice", then)]


def test_a_write_that_changes_nothing_changes_no_entry() -> None:
    story = Story()
    story.apply("alice", spec={"size": 1})
    before = story.entries

    assert story.update("ctl", spec={"size": 1}) is before


def test_a_writer_keeps_what_it_wrote_before() -> None:
    story = Story()
    story.update("ctl", spec={"size": 1})
    story.update("ctl", spec={"size": 1, "color": "red"})

    assert story.owned("ctl", "Update") == [".spec", ".spec.color", ".spec.size"]
    assert story.entries[0]["time"] == story.now


def test_the_order_of_a_list_has_no_owner() -> None:
    story = Story()
    story.update("ctl", spec={"tags": ["a", "b"], "parts": [{"name": "a"}, {"name": "b"}]})
    before = story.entries

    assert story.update("other", spec={"tags": ["b", "a"], "parts": [{"name": "b"}, {"name": "a"}]}) is before


def test_elements_that_cannot_be_told_apart_are_owned_as_one() -> None:
    story = Story()
    story.update("ctl", spec={"parts": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]})
    assert '.spec.parts[name="a"]' in story.owned("ctl", "Update")
    assert '.spec.parts[name="a"].value' not in story.owned("ctl", "Update")

    story.update("other", spec={"parts": [{"name": "a", "value": "1"}]})

    assert story.owned("ctl", "Update") == [".spec", ".spec.parts"]
    assert '.spec.parts[name="a"].value' in story.owned("other", "Update")


def test_a_map_that_becomes_something_else_is_another_field() -> None:
    story = Story()
    story.update("ctl", spec={"any": {"a": 1}, "size": 1})

    story.update("other", spec={"any": "text", "size": 1})

    assert story.owned("ctl", "Update") == [".spec", ".spec.size"]
    assert story.owned("other", "Update") == [".spec.any"]


def test_a_status_write_owns_status_under_its_own_entry() -> None:
    story = Story()
    story.update("ctl", spec={"size": 1})

    story.update("ctl", subresource="status", status={"ready": 1}, spec={"size": 2}, reset_fields=[["spec"]])

    assert [(entry["manager"], entry.get("subresource")) for entry in story.entries] == [
        ("ctl", None),
        ("ctl", "status"),
    ]
    assert story.entries[1]["fieldsV1"] == {"f:status": {".": {}, "f:ready": {}}}


def test_a_writer_without_a_name_is_unknown() -> None:
    story = Story()
    story.update("", spec={"size": 1})

    assert story.entries[0]["manager"] == "unknown"


def test_an_object_without_entries_stays_without() -> None:
    story = Story()
    story.live = {"metadata": {"name": "web", "uid": "1"}, "spec": {"size": 1}}

    assert story.update("ctl", spec={"size": 2}) == []


def test_an_empty_time_leaves_the_entry_without_one() -> None:
    story = Story()
    story.update("ctl", spec={"size": 1})
    story.now = ""
    story._tick = lambda: None  # type: ignore[method-assign]  # time stands still

    story.update("hpa", subresource="scale", spec={"size": 2})

    assert [(entry["manager"], "time" in entry) for entry in story.entries] == [("hpa", False), ("ctl", True)]


# What a writer says about managedFields itself


def _given(story: Story, entries: Any) -> list[dict[str, Any]]:
    return story.update("ctl", metadata={"managedFields": entries}, spec={**story.spec, "flag": True})


@pytest.fixture
def applied() -> Story:
    story = Story()
    story.apply("alice", spec={"size": 1, "color": "red"})
    return story


def test_one_empty_entry_starts_again_with_nothing(applied: Story) -> None:
    assert _given(applied, [{}]) == []


def test_an_empty_list_in_a_custom_resource_means_nothing(applied: Story) -> None:
    assert [entry["manager"] for entry in _given(applied, [])] == ["alice", "ctl"]


def test_entries_may_be_rewritten_by_hand(applied: Story) -> None:
    moved = {**applied.entries[0], "manager": "carol", "time": "2020-01-01T02:00:00+02:00"}

    entries = _given(applied, [moved])

    assert [(entry["manager"], entry["time"]) for entry in entries] == [
        ("carol", "2020-01-01T00:00:00Z"),
        ("ctl", applied.now),
    ]


def test_rewritten_fields_are_put_into_the_form_fields_have(applied: Story) -> None:
    fields: dict[str, Any] = {
        "f:spec": {"f:ports": {'k:{ "protocol":"TCP", "port":1.0 }': {".": {}}}, "z:new": {}},
        "f:data": {},
    }

    entries = _given(applied, [{**applied.entries[0], "fieldsV1": fields}])

    assert entries[0]["fieldsV1"] == {
        "f:data": {},
        "f:spec": {"f:ports": {'k:{"port":1,"protocol":"TCP"}': {}}},
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"operation": "Nope"},
        {"apiVersion": ""},
        {"fieldsType": "FieldsV2"},
        {"fieldsType": ""},
        {"fieldsV1": {"spec": {}}},
        {"fieldsV1": {"k:nope": {}}},
        {"fieldsV1": {"f:spec": 1}},
        {"time": "yesterday"},
        {"time": 5},
    ],
)
def test_entries_that_make_no_sense_are_passed_over(applied: Story, wrong: dict[str, Any]) -> None:
    entries = _given(applied, [{**applied.entries[0], "manager": "carol", **wrong}])

    assert [entry["manager"] for entry in entries] == ["alice", "ctl"]


def test_what_is_no_entry_at_all_is_passed_over(applied: Story) -> None:
    assert [entry["manager"] for entry in _given(applied, ["x"])] == ["alice", "ctl"]


def test_a_subresource_does_not_get_to_rewrite_entries(applied: Story) -> None:
    entries = applied.update(
        "ctl", subresource="status", metadata={"managedFields": [{}]}, status={"ready": 1}
    )

    assert [entry["manager"] for entry in entries] == ["alice", "ctl"]
