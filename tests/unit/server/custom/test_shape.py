"""Decoding, preparation and storage of custom objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from lamina.server.kinds.custom.shape import CustomShape
from lamina.server.kinds.kind import Findings
from tests.unit.server.custom.golden import objects, ours

Made = dict[str, Any]

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def shape(name: str, version: str = "v1") -> CustomShape:
    found = ours.kinds_of(ours.create_definition(objects.DEFINITIONS[name])[0])[version].shape
    assert isinstance(found, CustomShape)
    return found


def stored(**content: Any) -> Made:
    return {"metadata": {"name": "x", "generation": 4, "uid": "u"}, **content}


def test_what_is_unknown_is_reported_in_order_metadata_first() -> None:
    findings = Findings()
    body = {
        "zeta": 1,
        "metadata": {"name": "x", "bogus": 1},
        "spec": {"one": {"metadata": {"wrong": 1}, "spec": {"b": 1, "a": "x"}}, "extra": {}},
    }
    assert shape("embedding").decode(body, findings) == {
        "metadata": {"name": "x"},
        "spec": {"one": {"metadata": {}, "spec": {"a": "x"}}},
    }
    assert findings.sentences == [
        'unknown field "metadata.bogus"',
        'unknown field "spec.extra"',
        'unknown field "spec.one.spec.b"',
        'unknown field "zeta"',
        'unknown field "spec.one.metadata.wrong"',
    ]


def test_the_main_endpoint_leaves_status_alone() -> None:
    old = stored(spec={"replicas": 1}, status={"phase": "a"})
    new = stored(spec={"replicas": 1}, status={"phase": "b"})
    shape("stateful").prepare_update(new, old, "")
    assert new == old


def test_status_counts_where_it_is_not_written_apart() -> None:
    old = stored(spec={}, status={"phase": "a"})
    new = stored(spec={}, status={"phase": "b"})
    shape("plain").prepare_update(new, old, "")
    assert new["metadata"]["generation"] == 5


def test_metadata_does_not_count() -> None:
    old = stored(spec={"replicas": 1})
    new = stored(spec={"replicas": 1})
    new["metadata"]["labels"] = {"a": "b"}
    shape("stateful").prepare_update(new, old, "")
    assert new["metadata"]["generation"] == 4


def test_the_status_endpoint_changes_nothing_else_and_keeps_the_dict_it_was_given() -> None:
    old = stored(spec={"replicas": 1}, status={"phase": "a"})
    new = stored(spec={"replicas": 9}, status={"phase": "b"}, other=1)
    metadata = new["metadata"]
    metadata["labels"] = {"a": "b"}
    metadata["managedFields"] = [{"manager": "me"}]
    shape("stateful").prepare_update(new, old, "status")
    assert new["metadata"] is metadata
    assert new == {
        "metadata": {**old["metadata"], "managedFields": [{"manager": "me"}]},
        "spec": {"replicas": 1},
        "status": {"phase": "b"},
    }


def test_a_status_left_out_is_taken_away() -> None:
    new = stored()
    shape("stateful").prepare_update(new, stored(status={"phase": "a"}), "status")
    assert "status" not in new


def test_each_endpoint_says_what_it_never_owns() -> None:
    assert shape("stateful").reset_fields("") == (("status",),)
    assert shape("stateful").reset_fields("status") == (("spec",),)
    assert shape("stateful").reset_fields("scale") == ()
    assert shape("plain").reset_fields("") == ()


def test_an_object_older_than_its_schema_is_pruned_and_defaulted_when_read() -> None:
    old = stored(
        spec={
            "gone": 1,
            "inner": {"b": 2, "gone": 1},
            "defaultedItems": ["a", None],
            "defaultedNullable": None,
        }
    )
    assert shape("defaulted").read(old)["spec"] == {
        "inner": {"a": "x", "b": 2},
        "defaulted": "d",
        "defaultedItems": ["a", "i"],
        "defaultedNullable": None,
        "defaultedStruct": {"a": "x"},
    }


def test_a_default_taken_from_the_schema_belongs_to_the_object_alone() -> None:
    form = shape("defaulted")
    first, second = form.read(stored(spec={})), form.read(stored(spec={}))
    first["spec"]["defaultedStruct"]["a"] = "changed"
    assert second["spec"]["defaultedStruct"] == {"a": "x"}


def test_whole_floats_are_stored_as_integers() -> None:
    obj = stored(spec={"a": [1.0, 2.5, {"b": 1e3}], "c": "1.0,"})
    assert shape("free").store(obj)["spec"] == {"a": [1, 2.5, {"b": 1000}], "c": "1.0,"}
    assert all(type(one) is int for one in (shape("free").store(obj)["spec"]["a"][0],))


def test_versions_are_shown_and_stored_by_the_stored_versions_schema() -> None:
    written = shape("versions", "v2").store(stored(spec={"new": "n", "size": 2}))
    assert written["spec"] == {"size": 2}
    assert shape("versions", "v1").read(stored(spec={"size": 2}))["spec"] == {"size": 2, "shared": "from v1"}
    assert shape("versions", "v2").read(stored(spec={"size": 2, "old": "o"}))["spec"] == {
        "size": 2,
        "shared": "from v1",
    }


def test_a_row_has_a_cell_for_each_column() -> None:
    form = shape("stateful")
    obj = stored(spec={})
    obj["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    assert [column.name for column in form.columns] == ["Name", "Age"]
    assert form.cells(obj, NOW) == ["x", "24h"]
