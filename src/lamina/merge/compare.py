"""
The fields of a value, and those that differ between two values.

Three functions, which differ in when a map or list is itself a member:

    fields_of   the fields that an applier of a value owns: leaves, elements
                of lists, and keys of maps; a declared field that holds others
                is only part of their paths
    added       the fields that a writer of a new value owns: everything,
                maps and lists included
    compare     the fields that a write changed, and those it removed

Results are field sets. Below the top they are subtrees: what a field set holds
at an element, with `.` or emptiness for its own membership; None for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lamina.merge.fieldset import FieldSet, show, sorted_elements
from lamina.merge.schema import MISSING
from lamina.merge.schema_node import ATOMIC, Node, UntypableError
from lamina.merge.typed_check import refuse_problems
from lamina.objects.diff import is_same


class Comparison(NamedTuple):
    """The fields that are new or different on the right side, and those that only the left side has."""

    changed: FieldSet
    removed: FieldSet


# Fields of an applied value


def fields_of(value: Mapping[str, Any], node: Node) -> FieldSet:
    """
    Return the fields that an applier of this configuration owns, in no order.

    Raises UntypableError where the value does not fit the schema.
    """
    found: FieldSet = {}
    declared, nodes, values = node.declared, node.fields, node.values
    for name, held in value.items():
        known = declared
        if declared:
            try:
                below = nodes[name]
            except KeyError:
                known = False
        if not known:
            if values is None:
                raise UntypableError(f"there is no field {name}")
            below = values
        kind = held.__class__
        if kind in below.scalars:
            found[f"f:{name}"] = {}
            continue
        if kind is dict and held and below.maps and not below.atomic:
            inside = fields_of(held, below)
        elif kind is list and below.lists and below.listing != ATOMIC:
            inside = elements_of(held, below)
        else:
            refuse_problems(held, below)
            found[f"f:{name}"] = {}
            continue
        if inside:
            found[f"f:{name}"] = inside if known else {".": {}, **inside}
        elif not known:
            found[f"f:{name}"] = {}
    return found


def elements_of(items: list[Any], node: Node) -> FieldSet:
    """Return the fields that an applier of these elements of a set or an associative list owns."""
    found: FieldSet = {}
    below = node.items
    for item in items:
        element = node.element(item)
        if element in found:
            raise UntypableError(f"duplicate entries for key {show([element])}")
        if item.__class__ is dict and below.maps and not below.atomic:
            inside = fields_of(item, below)
            found[element] = {".": {}, **inside} if inside else {}
        else:
            if item.__class__ not in below.scalars:
                refuse_problems(item, below)
            found[element] = {}
    return found


# Fields of a new value


def added(value: Any, node: Node) -> FieldSet:
    """Return the subtree of a new value. The value itself is always a member."""
    kind = value.__class__
    inside: FieldSet
    if kind is dict and value and not node.atomic:
        inside = {}
        for name in sorted(value):
            element, below, _ = node.way(name)
            if below is not None:
                held = value[name]
                inside[element] = added(held, below) if held.__class__ in (dict, list) else {}
    elif kind is list and value and node.listing != ATOMIC:
        inside = {}
        twice: set[str] = set()
        for item in value:
            element = node.element(item)
            if element in inside:
                twice.add(element)
            inside[element] = added(item, node.items)
        for element in twice:
            inside[element] = {}
        inside = sorted_elements(inside)
    else:
        return {}
    return {".": {}, **inside} if inside else {}


def everything(new: Mapping[str, Any], node: Node) -> FieldSet:
    """Return the fields of a new object: the result of comparing it with an empty one."""
    found: FieldSet = {}
    for name in sorted(new):
        held = new[name]
        element, below, zero = node.way(name)
        if below is None or (held is None and node.named):
            continue
        if zero is MISSING:
            found[element] = added(held, below) if held.__class__ in (dict, list) else {}
        elif zero == {} and held.__class__ is dict and not below.atomic:
            # A struct that is always there: only its content is new.
            if inside := everything(held, below):
                found[element] = inside
        else:
            came, _ = compare_values(zero, held, below)
            if came is not None:
                found[element] = came
    return found


# Fields that differ


def compare(before: Mapping[str, Any], after: Mapping[str, Any], node: Node) -> Comparison:
    """Return where two objects differ; parts that are the same Python object are skipped."""
    changed, removed = _compare_maps(before, after, node)
    return Comparison(changed or {}, removed or {})


def compare_values(before: Any, after: Any, node: Node) -> tuple[FieldSet | None, FieldSet | None]:
    """Return where two values of a field differ, as subtrees of what changed and of what was removed."""
    one, two = before.__class__, after.__class__
    if one is dict or two is dict:
        return _compare_with_map(before, after, node)
    if (one is list or two is list) and node.listing != ATOMIC and (before or after):
        lists = (one is list or before is None) and (two is list or after is None)
        if lists:
            return compare_lists(before or [], after or [], node)
    return (None, None) if is_same(before, after) else ({}, None)


def _compare_with_map(before: Any, after: Any, node: Node) -> tuple[FieldSet | None, FieldSet | None]:
    one, two = before.__class__, after.__class__
    if node.atomic or not (before or after):
        return (None, None) if is_same(before, after) else ({}, None)
    if (one is dict or before is None) and (two is dict or after is None):
        return _compare_maps(before or {}, after or {}, node)
    # One is a map and the other is of another type: the field changed, and
    # the content of the map was added or removed.
    came = added(after, node) if two is dict else {}
    gone = _inside(added(before, node)) if one is dict else None
    return came, gone or None


def _inside(subtree: FieldSet) -> FieldSet:
    return {element: below for element, below in subtree.items() if element != "."}


def _compare_maps(
    before: Mapping[str, Any], after: Mapping[str, Any], node: Node
) -> tuple[FieldSet | None, FieldSet | None]:
    changed: FieldSet = {}
    removed: FieldSet = {}
    exact = node.exact
    for name in {**before, **after}:
        old, new = before.get(name, MISSING), after.get(name, MISSING)
        if old is new or (exact and old == new):
            continue
        below = node.child(name)
        if below is None:
            continue
        if old is MISSING or new is MISSING:
            if (new if old is MISSING else old) is None and node.named:
                continue
            zero = node.zero(name)
            if zero is MISSING:
                if old is MISSING:
                    changed[f"f:{name}"] = added(new, below)
                else:
                    removed[f"f:{name}"] = added(old, below)
                continue
            old, new = (zero, new) if old is MISSING else (old, zero)
        came, gone = compare_values(old, new, below)
        if came is not None:
            changed[f"f:{name}"] = came
        if gone is not None:
            removed[f"f:{name}"] = gone
    return (sorted_elements(changed) or None), (sorted_elements(removed) or None)


def compare_lists(before: list[Any], after: list[Any], node: Node) -> tuple[FieldSet | None, FieldSet | None]:
    """Return where two sets or associative lists differ, as subtrees."""
    if node.exact and before == after:
        return None, None
    old, new = _by_element(before, node), _by_element(after, node)
    changed: FieldSet = {}
    removed: FieldSet = {}
    for element, theirs in new.items():
        ours = old.get(element, [])
        came, gone = _compare_elements(ours, theirs, node.items)
        if came is not None:
            changed[element] = came
        if gone is not None:
            removed[element] = gone
    for element, ours in old.items():
        if element not in new:
            removed[element] = added(ours[0], node.items) if len(ours) == 1 else {}
    return (sorted_elements(changed) or None), (sorted_elements(removed) or None)


def _compare_elements(
    before: list[Any], after: list[Any], node: Node
) -> tuple[FieldSet | None, FieldSet | None]:
    """Compare the elements that one path element stands for, which is more than one where they are not unique."""
    match len(before), len(after):
        case 1, 1:
            return compare_values(before[0], after[0], node)
        case 0, 1:
            return added(after[0], node), None
        case 0, _:
            return {}, None
        case 1, _:
            return {}, added(before[0], node)
        case _, 1:
            return added(after[0], node), {}
        case _:
            return (None, None) if is_same(before, after) else ({}, None)


def _by_element(items: list[Any], node: Node) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(node.element(item), []).append(item)
    return found
