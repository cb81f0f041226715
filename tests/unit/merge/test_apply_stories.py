"""Field ownership and the object after an apply."""

import pytest

from lamina.errors import BadRequest, Cause, Conflict, Unclassified
from tests.unit.merge.stories import V1, Story, thing_with


def test_an_apply_creates_and_owns_exactly_what_it_states() -> None:
    story = Story()

    outcome = story.apply("alice", spec={"size": 3, "ports": [{"port": 80}], "tags": ["x"], "args": ["1"]})

    assert outcome.changed
    assert outcome.obj["spec"] == {"size": 3, "ports": [{"port": 80}], "tags": ["x"], "args": ["1"]}
    assert outcome.managed_fields == [
        {
            "manager": "alice",
            "operation": "Apply",
            "apiVersion": V1,
            "time": story.now,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:spec": {
                    "f:args": {},
                    "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}},
                    "f:size": {},
                    "f:tags": {'v:"x"': {}},
                }
            },
        }
    ]


def test_applying_the_same_again_changes_nothing_not_even_the_time() -> None:
    story = Story()
    first = story.apply("alice", spec={"size": 3, "parts": [{"name": "a", "value": "1"}]})

    second = story.apply("alice", spec={"parts": [{"value": "1", "name": "a"}], "size": 3})

    assert not second.changed
    assert second.managed_fields == first.managed_fields


def test_a_new_value_moves_the_time_of_its_owner() -> None:
    story = Story()
    story.apply("alice", spec={"size": 3})

    story.apply("alice", spec={"size": 4})

    assert story.entries[0]["time"] == story.now


def test_the_same_value_is_shared() -> None:
    story = Story()
    story.apply("alice", spec={"size": 3})

    outcome = story.apply("bob", spec={"size": 3})

    assert outcome.changed
    assert story.owners_of(".spec.size") == ["bob", "alice"]
    assert "time" not in story.entries[0], "bob has changed nothing yet"


def test_another_value_for_a_field_of_another_manager_is_a_conflict() -> None:
    story = Story()
    story.apply("alice", spec={"size": 3})

    with pytest.raises(Conflict) as refused:
        story.apply("bob", spec={"size": 4})

    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "alice": .spec.size'
    assert refused.value.causes == (Cause("FieldManagerConflict", 'conflict with "alice"', ".spec.size"),)


def test_conflicts_are_told_manager_by_manager() -> None:
    story = Story()
    story.apply("m1", spec={"args": ["1"], "size": 3, "ports": [{"port": 80, "name": "a"}]})
    story.update("ctl", spec={**story.spec, "color": "red"})
    story.update("st", subresource="status", status={"ready": 1})

    with pytest.raises(Conflict) as refused:
        story.apply(
            "m2",
            spec={"args": [], "size": 4, "color": "blue", "ports": [{"port": 80, "name": "b"}]},
            status={"ready": 2},
        )

    assert refused.value.message == (
        'Apply failed with 5 conflicts: conflicts with "ctl" using ex.example.com/v1:\n'
        "- .spec.color\n"
        'conflicts with "m1":\n'
        "- .spec.args\n"
        "- .spec.size\n"
        '- .spec.ports[port=80,protocol="TCP"].name\n'
        'conflicts with "st" with subresource "status" using ex.example.com/v1:\n'
        "- .status.ready"
    )
    assert [cause.field for cause in refused.value.causes] == [
        ".spec.color",
        ".spec.args",
        ".spec.size",
        '.spec.ports[port=80,protocol="TCP"].name',
        ".status.ready",
    ]


def test_force_leaves_one_owner() -> None:
    story = Story()
    story.apply("alice", spec={"size": 3, "color": "red"})
    story.update("ctl", spec={**story.spec, "flag": True})

    story.apply("bob", spec={"size": 4, "flag": False}, force=True)

    assert story.spec == {"size": 4, "color": "red", "flag": False}
    assert story.owners_of(".spec.size") == ["bob"]
    assert story.owned("alice") == [".spec.color"]
    assert story.owned("ctl", "Update") == [], "who owns nothing has no entry"


def test_what_is_no_longer_applied_goes() -> None:
    story = Story()
    story.apply("alice", spec={"size": 3, "color": "red", "labels": {"a": "1"}})

    story.apply("alice", spec={"size": 3})

    assert story.spec == {"size": 3}
    assert story.owned("alice") == [".spec.size"]


def test_what_is_no_longer_applied_stays_when_another_manager_owns_it() -> None:
    story = Story()
    story.apply("alice", spec={"size": 3, "color": "red"})
    story.apply("bob", spec={"color": "red"})

    story.apply("alice", spec={"size": 3})

    assert story.spec == {"size": 3, "color": "red"}
    assert story.owners_of(".spec.color") == ["bob"]


def test_what_an_updater_took_over_is_not_the_appliers_to_take_away() -> None:
    story = Story()
    story.apply("alice", spec={"size": 3, "color": "red"})
    story.update("ctl", spec={"size": 3, "color": "blue"})

    story.apply("alice", spec={"size": 3})

    assert story.spec == {"size": 3, "color": "blue"}


def test_elements_of_lists_come_and_go_with_their_appliers() -> None:
    story = Story()
    story.apply("m1", spec={"ports": [{"port": 1}], "tags": ["x"]})
    story.apply("m2", spec={"ports": [{"port": 2}], "tags": ["y"]})
    assert story.spec == {"ports": [{"port": 1}, {"port": 2}], "tags": ["x", "y"]}

    story.apply("m1", spec={"tags": ["x"]})
    assert story.spec == {"ports": [{"port": 2}], "tags": ["x", "y"]}

    story.apply("m2", spec={"tags": ["y"]})
    assert story.spec == {"tags": ["x", "y"]}


def test_an_element_goes_although_another_manager_wrote_a_field_of_it() -> None:
    story = Story()
    story.apply("alice", spec={"parts": [{"name": "a"}, {"name": "b"}]})
    story.update("ctl", spec={"parts": [{"name": "a", "value": "ctl"}, {"name": "b"}]})
    assert story.owned("ctl", "Update") == ['.spec.parts[name="a"].value']

    story.apply("alice", spec={"parts": [{"name": "b"}]})

    assert story.spec == {"parts": [{"name": "b"}]}
    assert story.owned("ctl", "Update") == []


def test_fields_of_one_element_may_have_different_owners() -> None:
    story = Story()
    story.apply("alice", spec={"parts": [{"name": "a", "value": "1"}]})
    story.apply("bob", spec={"parts": [{"name": "a", "inner": {"x": 1}}]})

    story.apply("alice", spec={"parts": [{"name": "a"}]})

    assert story.spec == {"parts": [{"name": "a", "inner": {"x": 1}}]}
    assert story.owned("bob") == [
        '.spec.parts[name="a"]',
        '.spec.parts[name="a"].name',
        '.spec.parts[name="a"].inner.x',
    ]


def test_a_default_of_a_key_counts_before_elements_are_matched() -> None:
    story = Story()
    story.apply("alice", spec={"ports": [{"port": 80, "name": "web"}]})

    story.apply("bob", spec={"ports": [{"port": 80, "protocol": "TCP", "target": "http"}]})

    assert story.spec["ports"] == [{"port": 80, "name": "web", "protocol": "TCP", "target": "http"}]


def test_atomic_things_have_one_owner_and_are_replaced() -> None:
    story = Story()
    story.apply("alice", spec={"whole": {"a": 1, "b": 2}, "args": ["x", "y"]})

    with pytest.raises(Conflict) as refused:
        story.apply("bob", spec={"whole": {"a": 1}, "args": ["x"]})
    story.apply("bob", spec={"whole": {"a": 1}, "args": ["x"]}, force=True)

    assert [cause.field for cause in refused.value.causes] == [".spec.args", ".spec.whole"]
    assert story.spec == {"whole": {"a": 1}, "args": ["x"]}


def test_where_the_schema_says_nothing_maps_are_merged_and_lists_replaced() -> None:
    story = Story()
    story.apply("alice", spec={"free": {"a": {"b": 1}, "l": [1]}, "any": {"p": {"q": True}}})
    story.apply("bob", spec={"free": {"a": {"c": 2}}, "any": {"p": {"r": False}}})
    assert story.spec == {"free": {"a": {"b": 1, "c": 2}, "l": [1]}, "any": {"p": {"q": True, "r": False}}}

    story.apply("alice", spec={"any": 3}, force=True)

    assert story.spec == {"any": 3, "free": {"a": {"c": 2}}}
    assert story.owned("bob") == [".spec.free.a", ".spec.free.a.c"]


def test_one_is_not_true() -> None:
    story = Story()
    story.apply("alice", spec={"any": 1, "free": {"a": [1]}})

    with pytest.raises(Conflict) as refused:
        story.apply("bob", spec={"any": True, "free": {"a": [True]}})

    assert [cause.field for cause in refused.value.causes] == [".spec.any", ".spec.free.a"]


def test_an_applier_and_an_updater_of_one_name_are_two_managers() -> None:
    story = Story()
    story.update("alice", spec={"size": 1})

    with pytest.raises(Conflict):
        story.apply("alice", spec={"size": 2})
    story.apply("alice", spec={"size": 2}, force=True)

    assert [(entry["operation"], entry["manager"]) for entry in story.entries] == [
        ("Apply", "alice"),
        ("Update", "alice"),
    ]
    assert story.owners_of(".spec.size") == ["alice"]
    assert story.owned("alice", "Update") == [".spec"]


def test_without_entries_everything_belongs_to_before_first_apply() -> None:
    story = Story()
    story.live = {
        "metadata": {"name": "web", "uid": "1", "labels": {"a": "b"}},
        "spec": {"size": 1, "color": "red"},
    }

    with pytest.raises(Conflict) as refused:
        story.apply("alice", spec={"size": 2})
    story.apply("alice", spec={"size": 1})

    assert refused.value.causes[0].message == f'conflict with "before-first-apply" using {V1}'
    assert story.owned("before-first-apply", "Update") == [
        ".spec",
        ".metadata.labels",
        ".metadata.labels.a",
        ".spec.color",
        ".spec.size",
    ]
    assert story.owned("alice") == [".spec.size"]


def test_what_the_server_keeps_has_no_owner_and_is_not_changed_by_an_apply() -> None:
    story = Story()
    story.apply("alice", metadata={"namespace": "ns", "labels": {"a": "1"}}, spec={"size": 1})

    outcome = story.apply(
        "alice",
        metadata={"namespace": "ns", "labels": {"a": "1"}, "uid": "other", "creationTimestamp": None},
        spec={"size": 1},
    )

    assert not outcome.changed
    assert outcome.obj["metadata"]["uid"] == "b5a7"
    assert story.owned("alice") == [".metadata.labels.a", ".spec.size"]


def test_fields_an_endpoint_cannot_change_are_not_owned() -> None:
    story = Story()

    story.apply("alice", spec={"size": 1}, status={"ready": 1}, reset_fields=[["status"]])

    assert story.owned("alice") == [".spec.size"]


def test_status_and_object_are_applied_apart() -> None:
    story = Story()
    story.apply("alice", spec={"size": 1})
    story.apply("alice", subresource="status", status={"ready": 1})

    story.apply("alice", spec={"size": 2})

    assert story.live is not None
    assert story.live["status"] == {"ready": 1}
    assert [entry.get("subresource") for entry in story.entries] == ["status", None]


def test_a_stated_null_takes_the_place_of_a_scalar_and_is_owned() -> None:
    story = Story()
    story.update("ctl", spec={"size": 1, "labels": {"a": "1"}})

    story.apply("alice", spec={"size": None, "labels": None}, force=True)

    assert story.spec == {"size": None, "labels": {"a": "1"}}
    assert story.owned("alice") == [".spec.labels", ".spec.size"]
    assert ".spec.size" not in story.owned("ctl", "Update")


def test_nothing_that_was_given_is_changed_and_the_top_of_the_result_is_new() -> None:
    story = Story()
    story.apply("alice", spec={"parts": [{"name": "a"}], "size": 1}, metadata={"labels": {"a": "1"}})
    before = repr(story.live)
    live = story.live

    outcome = story.apply(
        "alice", spec={"parts": [{"name": "b"}], "size": 1}, metadata={"labels": {"b": "1"}}
    )
    outcome.obj["more"] = 1
    outcome.obj["metadata"]["more"] = 1

    assert repr(live) == before


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"bogus": 1}, ".spec.bogus: field not declared in schema"),
        ({"size": "x"}, ".spec.size: expected numeric (int or float), got string"),
        ({"color": 2}, ".spec.color: expected string, got &value.valueUnstructured{Value:2}"),
        ({"flag": "x"}, ".spec.flag: expected boolean, got &{x}"),
        ({"labels": "x"}, ".spec.labels: expected map, got &{x}"),
        ({"ports": "a"}, ".spec.ports: expected list, got &{a}"),
        ({"tags": ["a", "a"]}, '.spec.tags: duplicate entries for key [="a"]'),
        ({"parts": [{"name": "a"}, {"name": "a"}]}, '.spec.parts: duplicate entries for key [name="a"]'),
        (
            {"parts": [{"value": "x"}]},
            '.spec.parts: element 0: associative list with keys has an element that omits all key fields ["name"]'
            " (and doesn't have default values for any key fields)",
        ),
        ({"parts": [None]}, ".spec.parts: element 0: associative list with keys may not have a null element"),
        ({"parts": ["a"]}, ".spec.parts: element 0: associative list with keys may not have non-map elements"),
        ({"whole": {"c": 1}}, ".spec.whole.c: field not declared in schema"),
        ({"args": [1]}, ".spec.args[0]: expected string, got &value.valueUnstructured{Value:1}"),
        (
            {"size": "x", "parts": [{"name": "a", "inner": {"y": 1}}]},
            'errors:\n  .spec.size: expected numeric (int or float), got string\n'
            '  .spec.parts[name="a"].inner.y: field not declared in schema',
        ),
    ],
)  # fmt: skip
def test_what_the_schema_does_not_allow_is_refused_by_name(spec: dict[str, object], complaint: str) -> None:
    story = Story()

    for _ in range(2):
        with pytest.raises(Unclassified) as refused:
            story.apply("alice", spec=spec)
        assert refused.value.message == (
            f"failed to create typed patch object (/web; {V1}, Kind=Thing): {complaint}"
        )
        story.live = {
            "metadata": {"name": "web"},
            "spec": {"parts": [{"name": "a"}], "args": ["x"], "whole": {}},
        }


def test_managed_fields_may_not_be_applied() -> None:
    with pytest.raises(BadRequest, match=r"metadata\.managedFields must be nil"):
        Story().apply("alice", metadata={"managedFields": []})


def test_who_owned_parts_of_what_is_whole_by_now_owns_the_whole() -> None:
    story = Story()
    story.apply("alice", spec={"labels": {"a": "1"}, "parts": [{"name": "a"}]})
    strings = {"additionalProperties": {"type": "string"}}
    later = Story(
        thing_with(
            labels={"type": "object", "x-kubernetes-map-type": "atomic", **strings},
            parts={"type": "array", "items": {"type": "object", **strings}},
        )
    )
    later.live = story.live

    with pytest.raises(Conflict) as refused:
        later.apply("bob", spec={"labels": {"b": "2"}, "parts": []})

    assert [cause.field for cause in refused.value.causes] == [".spec.labels", ".spec.parts"]
