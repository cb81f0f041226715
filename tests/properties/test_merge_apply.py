"""What is true of every apply, after any earlier writes."""

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.errors import ApiError, Conflict
from lamina.merge import fieldset
from lamina.merge.apply import Manager, apply, track_update
from lamina.merge.compare import compare, fields_of
from lamina.merge.fieldset import difference, intersection, union, without
from lamina.merge.merge_values import merge_values
from lamina.merge.schema import compile_schema
from lamina.merge.schema_node import node_of
from tests.unit.merge.stories import THING, V1, Story

_NAMES = st.sampled_from(["a", "b", "c"])
_LOOSE = st.recursive(
    st.one_of(st.booleans(), st.integers(0, 2), _NAMES),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(_NAMES, inner, max_size=2)),
    max_leaves=4,
)


def _unique(items: Iterable[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
    return list({tuple(item.get(key, "TCP") for key in keys): item for item in items}.values())


_PORTS = st.lists(
    st.fixed_dictionaries(
        {"port": st.integers(1, 2)},
        optional={
            "protocol": st.sampled_from(["TCP", "UDP"]),
            "name": _NAMES,
            "target": st.sampled_from([1, "x"]),
        },
    ),
    max_size=3,
).map(lambda items: _unique(items, "port", "protocol"))
_PARTS = st.lists(
    st.fixed_dictionaries(
        {"name": _NAMES},
        optional={"value": _NAMES, "inner": st.fixed_dictionaries({}, optional={"x": st.integers(0, 1)})},
    ),
    max_size=3,
).map(lambda items: _unique(items, "name"))
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "color": _NAMES,
        "flag": st.booleans(),
        "tags": st.lists(_NAMES, max_size=3, unique=True),
        "args": st.lists(_NAMES, max_size=2),
        "ports": _PORTS,
        "parts": _PARTS,
        "labels": st.dictionaries(_NAMES, _NAMES, max_size=2),
        "whole": st.fixed_dictionaries({}, optional={"a": st.integers(0, 1), "b": st.integers(0, 1)}),
        "free": st.dictionaries(_NAMES, _LOOSE, max_size=2),
        "any": _LOOSE,
    },
)
MANAGERS = st.sampled_from(["alice", "bob", "carol"])
STEPS = st.lists(st.tuples(st.sampled_from(["apply", "update"]), MANAGERS, SPECS), max_size=4)


def _applied_steps(steps: Iterable[tuple[str, str, dict[str, Any]]]) -> Story:
    story = Story()
    story.update("creator", spec={"color": "z"})
    for operation, manager, spec in steps:
        if operation == "apply":
            story.apply(manager, spec=spec, force=True)
        else:
            story.update(manager, spec=spec)
    return story


def _is_canonical(fields: dict[str, Any]) -> bool:
    return fieldset.read(fields) == fields and list(fields) == list(fieldset.read(fields)) and all(
        _is_canonical({name: rest for name, rest in below.items() if name != "."}) for below in fields.values()
    )  # fmt: skip


@settings(deadline=None)
@given(STEPS, MANAGERS, SPECS)
def test_applying_twice_changes_nothing(steps: Any, manager: str, spec: dict[str, Any]) -> None:
    story = _applied_steps(steps)
    story.apply(manager, spec=spec, force=True)

    again = story.apply(manager, spec=spec)

    assert not again.changed


@settings(deadline=None)
@given(STEPS, MANAGERS, SPECS)
def test_what_was_stated_is_there_and_is_owned(steps: Any, manager: str, spec: dict[str, Any]) -> None:
    story = _applied_steps(steps)

    story.apply(manager, spec=spec, force=True)

    node = node_of(story.schema)
    stated = fields_of({"spec": spec}, node)
    mine = [entry["fieldsV1"] for entry in story.entries if _who(entry) == (manager, "Apply")]
    assert mine == ([stated] if stated else [])
    assert merge_values(story.live or {}, {"spec": spec}, node).obj is story.live


@settings(deadline=None)
@given(STEPS, MANAGERS, SPECS)
def test_an_apply_is_refused_exactly_when_force_takes_something(
    steps: Any, manager: str, spec: dict[str, Any]
) -> None:
    story, forced = _applied_steps(steps), _applied_steps(steps)
    before = {_who(entry): entry["fieldsV1"] for entry in forced.entries}
    forced.apply(manager, spec=spec, force=True)
    after = {_who(entry): entry["fieldsV1"] for entry in forced.entries}
    still_there = fields_of(forced.live or {}, node_of(forced.schema))
    taken = {
        who: lost
        for who, fields in before.items()
        if who != (manager, "Apply")
        and (
            lost := intersection(
                difference(fields, after.get(who, {})), union(still_there, _holders(still_there))
            )
        )
    }

    if not taken:
        story.apply(manager, spec=spec)
        return
    with pytest.raises(Conflict) as refused:
        story.apply(manager, spec=spec)
    named = {cause.field for cause in refused.value.causes}
    assert {fieldset.show(path) for lost in taken.values() for path in fieldset.paths(lost)} <= named


def _who(entry: dict[str, Any]) -> tuple[str, str]:
    return entry["manager"], entry["operation"]


def _holders(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        element: {".": {}, **_holders(below)} if below else {}
        for element, below in fields.items()
        if element != "."
    }


@settings(deadline=None)
@given(STEPS)
def test_a_missing_field_has_no_owner(steps: Any) -> None:
    story = _applied_steps(steps)

    spec = (story.live or {}).get("spec", {})
    owned = {name for entry in story.entries for name in entry["fieldsV1"].get("f:spec", {})}
    for name in ("size", "color", "flag", "args"):
        assert f"f:{name}" not in owned or name in spec
    tags = {
        element
        for entry in story.entries
        for element in entry["fieldsV1"].get("f:spec", {}).get("f:tags", {})
        if element != "."
    }
    assert tags <= {fieldset.value_element(tag) for tag in spec.get("tags", [])}


@settings(deadline=None)
@given(STEPS)
def test_entries_are_always_in_the_form_and_order_they_are_stored_in(steps: Any) -> None:
    story = _applied_steps(steps)

    keys = [(entry["operation"], entry.get("time", ""), entry["manager"]) for entry in story.entries]
    assert keys == sorted(keys)
    assert all(entry["fieldsV1"] and _is_canonical(entry["fieldsV1"]) for entry in story.entries)


@settings(deadline=None)
@given(STEPS, SPECS)
def test_the_walk_of_apply_agrees_with_the_questions_it_answers(steps: Any, spec: dict[str, Any]) -> None:
    story = _applied_steps(steps)
    live, node = story.live or {}, node_of(story.schema)
    stated = {"spec": spec}

    laid = merge_values(live, stated, node)

    assert laid.fields == fields_of(stated, node)
    comparison = compare(live, laid.obj, node)
    assert laid.changed == comparison.changed
    assert laid.removed == comparison.removed


@settings(deadline=None)
@given(STEPS, MANAGERS, SPECS)
def test_nothing_that_is_given_is_changed(steps: Any, manager: str, spec: dict[str, Any]) -> None:
    live = _applied_steps(steps).live or {}
    stated = {"apiVersion": V1, "kind": "Thing", "metadata": {"name": "web"}, "spec": spec}
    schema = compile_schema(THING)
    before = deepcopy((live, stated))

    apply(live, stated, schema, manager=Manager(manager, "Apply", V1), force=True, now="2026-01-01T00:00:00Z")
    track_update(live, stated, schema, manager=Manager(manager, "Update", V1), now="2026-01-01T00:00:00Z")

    assert (live, stated) == before


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "name", "port"]), inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip
_WRONG_SPECS = st.one_of(
    _JSON,
    st.dictionaries(st.sampled_from(["size", "tags", "ports", "parts", "whole", "free", "bogus"]), _JSON),
)


@settings(deadline=None)
@given(STEPS, _WRONG_SPECS, _JSON)
def test_any_configuration_is_applied_or_refused(steps: Any, spec: Any, metadata: Any) -> None:
    live = _applied_steps(steps).live
    schema = compile_schema(THING)
    for before in (live, None):
        for stated in ({"metadata": {"name": "web"}, "spec": spec}, {"metadata": metadata, "spec": {}}):
            try:
                apply(
                    before,
                    stated,
                    schema,
                    manager=Manager("m", "Apply", V1),
                    force=True,
                    now="2026-01-01T00:00:00Z",
                )
            except ApiError as refused:
                assert 400 <= refused.code < 500
        track_update(before, {"metadata": {}, "spec": spec}, schema, manager=Manager("m", "Update", V1), now="2026-01-01T00:00:00Z")  # fmt: skip


# Sets

_ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"n":1}', 'k:{"n":10}', 'v:"x"', "v:2", "i:0"])
PATHS = st.lists(st.lists(_ELEMENTS, min_size=1, max_size=3), max_size=6)


def _paths(fields: dict[str, Any]) -> set[tuple[str, ...]]:
    return set(fieldset.paths(fields))


@settings(deadline=None)
@given(PATHS, PATHS)
def test_sets_of_paths_are_sets(one: list[list[str]], two: list[list[str]]) -> None:
    first, second = fieldset.of(*one), fieldset.of(*two)
    ours, theirs = set(map(tuple, one)), set(map(tuple, two))

    assert _paths(first) == ours
    assert _paths(union(first, second)) == ours | theirs
    assert _paths(difference(first, second)) == ours - theirs
    assert _paths(intersection(first, second)) == ours & theirs
    assert _paths(without(first, second)) == {
        path for path in ours if not any(path[: len(gone)] == gone for gone in theirs)
    }
    assert (first == second) is (ours == theirs)
    for result in (first, union(first, second), difference(first, second), intersection(first, second), without(first, second)):  # fmt: skip
        assert fieldset.read(result) == result
        assert list(fieldset.paths(fieldset.in_order(result))) == list(fieldset.paths(result))
        assert all(fieldset.has(result, path) for path in _paths(result))
