"""Fields by path."""

from typing import Any

import pytest

from lamina.objects.paths import Path, drop, get, pick, put, shown

OBJ: dict[str, Any] = {"spec": {"list": [{"a": 1}, {"a": 2}], "x": None}, "kind": "K"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("kind",), "K"),
        (("spec", "list", 1, "a"), 2),
        (("spec", "x"), None),
        (("spec", "list", 2), "default"),
        (("spec", "list", -1), "default"),
        (("spec", "list", "a"), "default"),
        (("kind", "deeper"), "default"),
        ((), OBJ),
    ],
)
def test_a_path_leads_to_a_value_or_to_the_default(path: Path, value: Any) -> None:
    assert get(OBJ, path, "default") == value


def test_putting_makes_the_way_and_shares_the_rest() -> None:
    made = put(OBJ, ("status", "a", "b"), 1)

    assert made == {**OBJ, "status": {"a": {"b": 1}}}
    assert made["spec"] is OBJ["spec"]
    assert put(OBJ, ("spec", "list", 0, "a"), 9)["spec"]["list"] == [{"a": 9}, {"a": 2}]
    assert OBJ["spec"]["list"] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("path", [(), ("spec", "list", 2), ("kind", "x"), ("spec", 0)])
def test_there_are_places_where_nothing_can_be_put(path: Path) -> None:
    with pytest.raises(LookupError):
        put(OBJ, path, 1)


def test_picking_keeps_only_what_is_named() -> None:
    assert pick(OBJ, [("kind",), ("spec", "x"), ("spec", "absent")]) == {"kind": "K", "spec": {"x": None}}


def test_dropping_leaves_the_rest() -> None:
    assert drop(OBJ, ("kind",)) == {"spec": OBJ["spec"]}
    assert drop(OBJ, ("spec", "list", 0, "a"))["spec"]["list"] == [{}, {"a": 2}]
    assert drop(OBJ, ("spec", "list", 1))["spec"]["list"] == [{"a": 1}]
    assert drop(OBJ, ("absent", "x")) is OBJ


def test_paths_as_people_write_them() -> None:
    assert shown(("spec", "containers", 0, "image")) == "spec.containers[0].image"
